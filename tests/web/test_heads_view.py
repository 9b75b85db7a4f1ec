"""Every head as a small map in the Matrix, and its scores in the Overview: opened by a click or by keys."""

from typing import Any

import pytest
import torch

from regard.explain.weights.head_scores import head_scores
from regard.explain.wording import number

pytestmark = pytest.mark.browser


def test_scores_are_the_librarys(page_of: Any, bank: Any) -> None:
    page = page_of(bank[0], overview=True)
    scores = head_scores(bank[0]).previous
    page.tab.select_option("[data-choose=score]", label="previous")
    for layer, head in ((0, 2), (3, 5), (5, 11)):
        says = page.tab.get_attribute(f"[data-head='0-{layer}-{head}']", "aria-label")
        assert says == f"layer {layer}, head {head}: previous {number(float(scores[layer, head]))}"
    assert "the previous token" in page.tab.inner_text("[aria-label=Heads]")


def test_a_map_is_the_heads_weights(page_of: Any, bank: Any) -> None:
    page = page_of(bank[0])
    page.open_view("Matrix")
    canvas = page.tab.wait_for_selector("[data-head='2-11'] canvas")
    length = len(bank[0].tokens)
    assert canvas.evaluate("c => [c.width, c.height]") == [length, length]
    blue = canvas.evaluate(
        "c => [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data].filter((_, n) => n % 4 == 0)"
    )
    red = torch.tensor(blue, dtype=torch.float32).view(length, length)[:, 1:-1]  # special tokens are grey
    weights = bank[0].attention[2].dense()[11][:, 1:-1]
    dark, light = weights > 0.3 * weights.max(), weights < 0.01 * weights.max()
    assert dark.any()
    assert light.any()
    assert float(red[dark].max()) < float(red[light].min())  # a light page: the larger, the darker


def test_a_click_and_keys_open_a_head_for_all_views(page_of: Any, bank: Any) -> None:
    page = page_of(bank[0])
    page.open_view("Matrix")
    page.tab.click("[data-head='2-4']")
    assert page.tab.input_value("[data-choose=head]") == "4"
    for key in ("ArrowDown", "ArrowRight"):
        page.tab.keyboard.press(key)
    assert page.tab.evaluate("document.activeElement.dataset.head") == "3-5"
    page.open_view("Numbers")
    assert page.tab.input_value("[data-choose=head]") == "5"
    page.tab.hover("[data-unit='11']")
    assert page.number("[data-value='10']") == pytest.approx(float(bank[0].attention[3][5, 11, 10]), abs=2e-4)


@pytest.mark.parametrize("width", [390, 1000])
def test_it_is_for_everyone_and_for_a_phone(page_of: Any, bank: Any, width: int) -> None:
    page = page_of(list(bank), word="bank", width=width)
    page.open_view("Matrix")
    page.tab.wait_for_selector("[data-head='0-0']")
    page.suits_everyone(width)
