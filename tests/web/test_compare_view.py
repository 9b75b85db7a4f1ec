"""Two calls side by side and as a difference: every number in the DOM is the library's, by mouse and by keyboard."""

from typing import Any

import pytest
import torch

import regard
from tests.support import RIVER
from tests.web.tables import by_number, open_twin, read_number, rows_of

pytestmark = pytest.mark.browser
SHOWN = 2e-4 + 5e-5  # both sides' own difference, and four decimals


@pytest.fixture(scope="module")
def ablated(minilm: Any) -> Any:
    """The same text before and after an ablation."""
    return minilm.trace(RIVER), minilm.trace(RIVER, interventions=[regard.ablate(regard.head(1, 3))])


def same(rows: list[list[str]], column: int, expected: torch.Tensor) -> None:
    found = by_number(rows, 1, column)
    assert sorted(found) == list(range(len(expected)))
    assert float((torch.tensor([found[n] for n in range(len(expected))]) - expected).abs().max()) <= SHOWN


def test_two_heads_of_a_text_and_their_difference(page_of: Any, bank: Any) -> None:
    page = page_of(bank[0])
    page.open_view("Compare")
    page.tab.select_option("[data-choose='layer A']", label="2")
    page.tab.select_option("[data-choose='head A']", "11")
    page.tab.select_option("[data-choose='layer B']", label="3")
    page.tab.select_option("[data-choose='head B']", "mean")
    page.tab.click("section[aria-label=A] [data-unit='11']")
    rows = rows_of(page.tab, "What “bank” looks at: the largest differences first")
    a, b = bank[0].attention[2].dense()[11, 11], bank[0].attention[3].dense()[:, 11].mean(0)
    same(rows, 2, a)
    same(rows, 3, b)
    same(rows, 4, b - a)
    sizes = [abs(read_number(row[4])) for row in rows]
    assert sizes == sorted(sizes, reverse=True)
    assert page.number("[data-moved]") == pytest.approx(float((b - a).abs().sum() / 2), abs=1e-3)


def test_before_and_after_an_ablation_go_in_pairs_of_layers(page_of: Any, ablated: Any) -> None:
    before, after = ablated
    page = page_of([before, after], word="bank")
    page.open_view("Compare")
    assert "before and after" in page.tab.inner_text("[data-choose=comparison] >> option >> nth=0")
    page.choose("layer", "4")
    page.choose("head", "6")
    page.tab.click("section[aria-label=A] [data-unit='10']")
    page.tab.check("text=is looked at by")
    rows = rows_of(page.tab, "What looks at “river”: the largest differences first")
    a, b = before.attention[4].dense()[6, :, 10], after.attention[4].dense()[6, :, 10]
    assert float((b - a).abs().max()) > 0.01  # the ablation reaches layer 4
    same(rows, 2, a)
    same(rows, 3, b)
    same(rows, 4, b - a)


def test_maps_and_their_difference(page_of: Any, ablated: Any) -> None:
    before, after = ablated
    page = page_of([before, after])
    page.open_view("Compare")
    page.choose("layer", "3")
    page.choose("head", "mean")
    page.tab.check("text=the maps")
    open_twin(page.tab)
    rows = rows_of(page.tab, "Weights of A and B")
    length = len(before.tokens)
    assert len(rows) == length**2
    a, b = before.attention[3].dense().mean(0), after.attention[3].dense().mean(0)
    for row in rows:
        i, j = (int(cell.split()[0]) for cell in row[:2])
        shown = torch.tensor([read_number(cell) for cell in row[2:]])
        assert float((shown - torch.stack([a[i, j], b[i, j], b[i, j] - a[i, j]])).abs().max()) <= SHOWN
    page.tab.focus("section[aria-label=Difference] [role=application]")
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):  # the first key reaches the first cell
        page.tab.keyboard.press(key)
    said = page.tab.inner_text("section[aria-label=Difference] [data-says]")
    assert said.startswith(f"1 {before.tokens[1].text} · 1 {before.tokens[1].text}: difference ")
    assert float(said.split()[-1]) == pytest.approx(float(b[1, 1] - a[1, 1]), abs=SHOWN)


def test_other_tokens_have_no_difference_and_it_says_why(page_of: Any, bank: Any) -> None:
    page = page_of(list(bank))
    page.open_view("Compare")
    assert "not the same" in page.tab.inner_text("[data-reason]")
    for side in "AB":
        page.tab.select_option(f"[data-choose='layer {side}']", label="0")
        page.tab.select_option(f"[data-choose='head {side}']", "mean")
    page.tab.click("section[aria-label=B] [data-unit='4']")
    same(rows_of(page.tab, f"B: What “{bank[1].tokens[4].text}” looks at"), 2, bank[1].attention[0][:, 4].mean(0))
    page.tab.click("section[aria-label=A] [data-unit='11']")
    same(rows_of(page.tab, "A: What “bank” looks at"), 2, bank[0].attention[0][:, 11].mean(0))
    assert page.tab.locator("section[aria-label=Difference]").count() == 0


def test_picking_a_word_picks_it_in_the_other_text_too(page_of: Any, bank: Any) -> None:
    page = page_of(list(bank))
    page.open_view("Compare")
    for side in "AB":
        page.tab.select_option(f"[data-choose='layer {side}']", label="0")
        page.tab.select_option(f"[data-choose='head {side}']", "mean")
    names = [[token.text for token in trace.tokens] for trace in bank]
    here, there = (all_of.index("bank") for all_of in names)
    pick(page, "A", here)
    same(rows_of(page.tab, "A: What “bank” looks at"), 2, bank[0].attention[0][:, here].mean(0))
    same(rows_of(page.tab, "B: What “bank” looks at"), 2, bank[1].attention[0][:, there].mean(0))
    said = page.tab.inner_text("[data-picked]")
    assert f"(token {here})" in said
    assert f"(token {there}), the same word" in said
    assert page.tab.get_attribute(f"section[aria-label=B] [data-unit='{there}']", "aria-selected") == "true"
    pick(page, "A", names[0].index("river"))
    page.tab.wait_for_selector("[data-picked]:has-text('does not have')")
    assert page.tab.locator("section[aria-label=B] [aria-selected=true]").count() == 0
    page.tab.wait_for_selector("[role=region][aria-label^='B: ']", state="detached")
    pick(page, "B", names[1].index("money"))  # one of B's own beside it
    rows_of(page.tab, "B: What “money” looks at")
    assert "the same word" not in page.tab.inner_text("[data-picked]")
    rows_of(page.tab, "A: What “river” looks at")
    second = [n for n, name in enumerate(names[0]) if name == "a"][1]
    pick(page, "A", second)  # the second of both
    assert f"(token {[n for n, name in enumerate(names[1]) if name == 'a'][1]})" in page.tab.inner_text("[data-picked]")


def pick(page: Any, side: str, token: int) -> None:
    """Choose a token of one side, where it is not chosen already."""
    unit = page.tab.locator(f"section[aria-label={side}] [data-unit='{token}']")
    if unit.get_attribute("aria-selected") != "true":
        unit.click()


def test_keys_alone_compare_a_token(page_of: Any, bank: Any) -> None:
    page = page_of(bank[0])
    page.choose("layer", "0")
    page.choose("head", "mean")
    page.tab.focus("role=tab[name=Numbers]")
    page.tab.keyboard.press("ArrowRight")
    while page.tab.inner_text("[role=tab][aria-selected=true]") != "Compare":
        page.tab.keyboard.press("ArrowRight")
    while page.tab.evaluate("document.activeElement.dataset.unit") is None:
        page.tab.keyboard.press("Tab")
    for key in ("Home", "ArrowRight", "ArrowRight", "ArrowRight"):
        page.tab.keyboard.press(key)
    rows = rows_of(page.tab, f"What “{bank[0].tokens[3].text}” looks at: the largest differences first")
    a, b = (bank[0].attention[layer].dense()[:, 3].mean(0) for layer in (0, 1))
    same(rows, 4, b - a)


@pytest.mark.parametrize("width", [390, 1000])
def test_it_is_for_everyone_and_for_a_phone(page_of: Any, ablated: Any, width: int) -> None:
    page = page_of(list(ablated), word="bank", width=width)
    page.open_view("Compare")
    page.tab.wait_for_selector("[data-moved]")
    assert page.violations() == []
    page.tab.check("text=the maps")
    page.tab.wait_for_selector("section[aria-label=Difference] canvas")
    assert page.violations() == []
    assert page.tab.evaluate("document.documentElement.scrollWidth") <= width
