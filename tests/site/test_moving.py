"""Numbers that a reader moves in a lesson: what the page computes is what torch computes, to the digits shown."""

import json
from typing import Any

import pytest
import torch

from tests.site.test_pages import SITE, pytestmark

__all__ = ["pytestmark"]


@pytest.fixture
def opened(chromium: Any) -> Any:
    """Open a lesson; gives its widget of a kind and the numbers that the lesson computed for it."""
    page = chromium.new_page()

    def widget(lesson: str, kind: str) -> tuple[Any, dict[str, Any]]:
        page.goto((SITE / "lessons" / lesson).absolute().as_uri())
        box = page.locator(f".moving[data-kind={kind}]")
        return box, json.loads(box.get_attribute("data-numbers"))

    yield widget
    page.close()


def numbers(box: Any) -> torch.Tensor:
    """The numbers of a widget's table, a row for each word."""
    rows = box.locator("tr").all()[1:]
    return torch.tensor([[float(cell) for cell in row.locator("td").all_inner_texts() if cell.strip()] for row in rows])


def close(shown: torch.Tensor, expected: torch.Tensor, digits: int) -> None:
    torch.testing.assert_close(shown.double(), expected, atol=0.5001 * 10**-digits, rtol=0)


def test_the_divisor_of_the_scores(opened: Any) -> None:
    box, given = opened("5_queries_keys_values.html", "temperature")
    products = torch.tensor(given["products"], dtype=torch.float64)
    close(numbers(box)[:, 2], (products / given["divisor"]).softmax(0), 4)
    sharpest = 0.0
    for end, divisor in (("End", 100.0), ("Home", 0.5)):
        box.locator("input").press(end)
        close(numbers(box)[:, 1], products / divisor, 2)
        close(numbers(box)[:, 2], (products / divisor).softmax(0), 4)
        sharpest, before = float(numbers(box)[:, 2].max()), sharpest
        assert sharpest > before
    box.locator("button").click()
    close(numbers(box)[:, 2], (products / given["divisor"]).softmax(0), 4)


def test_the_dragged_query(opened: Any) -> None:
    box, given = opened("5_queries_keys_values.html", "query")
    key, value = (torch.tensor(given[name], dtype=torch.float64) for name in ("key", "value"))
    plane = box.locator("svg")
    area = plane.bounding_box()
    plane.hover(position={"x": area["width"] / 4, "y": area["height"] / 3})
    box.page.mouse.down()
    box.page.mouse.up()
    for moves in ([], ["ArrowRight"] * 3, ["ArrowDown", "ArrowLeft"]):
        for name in moves:
            plane.press(name)
        query, output = (
            torch.tensor([float(number) for number in part.strip("()").split(", ")], dtype=torch.float64)
            for part in box.locator("p").last.inner_text().removeprefix("query ").split(" → output ")
        )
        weights = (key @ query / 2**0.5).softmax(0)
        close(numbers(box), torch.stack([key @ query / 2**0.5, weights], 1), 3)
        close(output, weights @ value, 3)


def test_the_causal_mask(opened: Any) -> None:
    box, given = opened("7_a_transformer_that_writes.html", "mask")
    scores = torch.tensor(given["scores"], dtype=torch.float64)
    later = torch.ones_like(scores, dtype=torch.bool).triu(1)
    close(numbers(box), scores.masked_fill(later, -torch.inf).softmax(1), 3)
    box.locator("input").uncheck()
    close(numbers(box), scores.softmax(1), 3)
    assert float(numbers(box)[later].max()) > 0.01
