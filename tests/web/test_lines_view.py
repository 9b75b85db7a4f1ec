"""Lines between two columns of tokens: every number in the DOM is the library's, by mouse and by keyboard alone."""

from typing import Any

import pytest
import torch

from tests.support import own_models
from tests.web.tables import by_number, read_number, rows_of

pytestmark = pytest.mark.browser
SHOWN = 1e-4 + 5e-5  # the page's own difference, and four decimals


def same(rows: list[list[str]], column: int, expected: torch.Tensor) -> None:
    found = by_number(rows, 1, column)
    assert sorted(found) == list(range(len(expected)))
    numbers = torch.tensor([found[n] for n in range(len(expected))])
    assert float((numbers - expected).abs().max()) <= SHOWN


def test_hovering_shows_what_a_token_looks_at_in_every_head(page_of: Any, bank: Any) -> None:
    page = page_of(bank[0])
    page.open_view("Lines")
    page.choose("layer", "3")
    page.choose("head", "mean")
    page.tab.click("[data-left='3']")
    rows_of(page.tab, f"What “{bank[0].tokens[3].text}” looks at, layer 3")  # all of them from now on
    page.tab.hover("[data-left='11']")
    rows = rows_of(page.tab, "What “bank” looks at, layer 3")
    weights = bank[0].attention[3].dense()[:, 11]
    same(rows, 2, weights.mean(0))
    for head in range(12):
        same(rows, 3 + head, weights[head])
    assert page.tab.locator("[data-blocks]").count() == len(bank[0].tokens)
    largest = int(weights[:, 1:-1].mean(0).argmax()) + 1  # special tokens stand apart
    darkest = page.tab.evaluate(
        "[...document.querySelectorAll('[data-right]:not(.apart)')].map(each => [each.style.color, each.dataset.right])"
        ".filter(([colour]) => colour == 'rgb(255, 255, 255)').map(([, n]) => n)"
    )
    assert str(largest) in darkest


def test_heads_are_chosen_together_and_alone(page_of: Any, bank: Any) -> None:
    page = page_of(bank[0], word="river")
    page.open_view("Lines")
    page.choose("layer", "0")
    page.choose("head", "mean")
    for head in range(12):
        if head not in (2, 5):
            page.tab.click(f"[data-turn='{head}']")
    weights = bank[0].attention[0].dense()[:, 10]
    page.tab.wait_for_selector("text=mean of heads 2, 5")
    rows = rows_of(page.tab, "What “river” looks at, layer 0")
    assert len(rows[0]) == 5
    same(rows, 2, weights[[2, 5]].mean(0))
    same(rows, 4, weights[5])
    page.tab.click("[data-turn='2']")  # head 5 alone is the choice of all views
    assert page.tab.input_value("[data-choose=head]") == "5"
    same(rows_of(page.tab, "What “river” looks at, layer 0"), 2, weights[5])
    page.tab.click("[data-turn='5']")  # the last one stays
    assert page.tab.get_attribute("[data-turn='5']", "aria-pressed") == "true"
    page.tab.click("button:text-is('all')")
    assert page.tab.input_value("[data-choose=head]") == "mean"


def test_keys_alone_choose_a_token(page_of: Any, bank: Any) -> None:
    page = page_of(bank[0])
    page.open_view("Lines")
    page.choose("layer", "0")
    page.choose("head", "mean")
    page.tab.focus("[data-left][tabindex='0']")
    for key in ("End", "ArrowUp", "ArrowUp"):
        page.tab.keyboard.press(key)
    last = len(bank[0].tokens) - 3
    assert page.tab.evaluate("document.activeElement.dataset.left") == str(last)
    word = bank[0].tokens[last].text
    same(rows_of(page.tab, f"What “{word}” looks at, layer 0"), 2, bank[0].attention[0].dense()[:, last].mean(0))


def test_between_a_translation_and_its_source_each_side_has_its_own_tokens(page_of: Any) -> None:
    pair = own_models.pair().trace(own_models.TEXTS[0], target=own_models.TARGETS[0])
    weights = pair.decoder.cross[0].dense()
    page = page_of(pair, numbers="float32")
    page.open_view("Lines")
    page.choose("text", "2")
    page.choose("layer", "0, cross")
    page.choose("head", "mean")
    assert page.tab.locator("[data-left]").count() == weights.shape[1]
    assert page.tab.locator("[data-right]").count() == weights.shape[2]
    page.tab.click("[data-left='2']")
    name = page.tab.eval_on_selector("[data-left='2']", "each => each.title").strip() or "␣"
    said = f"What “{name}” looks at, layer 0, cross, as it was"
    same(rows_of(page.tab, f"{said} written (the row before it)"), 2, weights[:, 1].mean(0))
    page.tab.check("text=as it is read")
    same(rows_of(page.tab, f"{said} read (its own row)"), 2, weights[:, 2].mean(0))
    page.tab.check("text=is looked at by")
    page.tab.click("[data-left='1']")
    name = page.tab.eval_on_selector("[data-left='1']", "each => each.title").strip() or "␣"
    same(
        rows_of(page.tab, f"What looks at “{name}”, layer 0, cross, each as it was read (its own row)"),
        2,
        weights[:, :, 1].mean(0),
    )


def test_of_a_long_text_a_part_is_shown_and_what_is_outside_of_it(page_of: Any, minilm: Any) -> None:
    trace = minilm.trace(" ".join(["the man on the river bank took money from a bank near the sea"] * 32))
    assert len(trace.tokens) > 400
    page = page_of(trace, layers=[1])
    page.open_view("Lines")
    page.choose("head", "mean")
    assert page.tab.locator("[data-left]").count() == 60
    page.tab.focus("[data-left][tabindex='0']")
    page.tab.keyboard.press("Home")
    page.tab.wait_for_selector("[data-left='0']")
    for _ in range(4):
        page.tab.click("button:text-is('later')")
    page.tab.click("[data-left='150']")
    weights = trace.attention[1].dense()[:, 150].mean(0)
    page.tab.wait_for_selector("text=All others have")
    largest = sorted(weights.argsort(descending=True, stable=True)[:24].tolist())
    shown = page.tab.locator("[data-right]").evaluate_all("all => all.map(each => Number(each.dataset.right))")
    assert shown == largest  # wherever they are
    tops = [
        page.tab.eval_on_selector(each, "e => e.offsetTop") for each in ("[data-left='150']", "[data-right] >> nth=12")
    ]
    assert abs(tops[0] - tops[1]) <= 44  # beside the token that the lines leave
    name = f"{trace.tokens[largest[0]].text} ({largest[0]})"  # of a part, numbers tell which
    assert page.tab.inner_text(f"[data-right='{largest[0]}']") == name
    others = read_number(page.tab.inner_text("[data-part]").split("All others have ")[1].split(" of ")[0])
    assert others == pytest.approx(1 - float(weights[largest].sum()), abs=1e-3)
    same(rows_of(page.tab, f"What “{trace.tokens[150].text}” looks at, layer 1"), 2, weights)
    page.tab.click("button:text-is('later')")
    assert page.tab.get_attribute("[data-left] >> nth=0", "data-left") == "150"
    page.tab.focus("[data-left='150']")
    page.tab.keyboard.press("End")  # the part follows the token
    last = str(len(trace.tokens) - 1)
    assert page.tab.evaluate("document.activeElement.dataset.left") == last


@pytest.mark.parametrize("width", [390, 1000])
def test_it_is_for_everyone_and_for_a_phone(page_of: Any, bank: Any, width: int) -> None:
    page = page_of(list(bank), word="bank", width=width)
    page.open_view("Lines")
    page.tab.wait_for_selector("[data-row]")
    assert page.violations() == []
    assert page.tab.evaluate("document.documentElement.scrollWidth") <= width
