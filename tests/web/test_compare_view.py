"""Two matrices side by side and as a difference: every number in the DOM is the library's."""

from typing import Any

import pytest
import torch

import regard
from tests.support import RIVER
from tests.web.tables import open_twin, read_number, rows_of

pytestmark = pytest.mark.browser
SHOWN = 2e-4 + 5e-5  # both sides' own difference, and four decimals


@pytest.fixture(scope="module")
def ablated(minilm: Any) -> Any:
    """The same text before and after an ablation."""
    return minilm.trace(RIVER), minilm.trace(RIVER, interventions=[regard.ablate(regard.head(1, 3))])


def test_maps_and_their_difference(page_of: Any, ablated: Any) -> None:
    before, after = ablated
    page = page_of([before, after])
    page.open_view("Compare")
    page.choose("layer", "0")  # nothing changes there: no rounding has a full colour
    page.tab.wait_for_selector("section[aria-label=Difference] :text('0.01')")
    page.choose_head("3", "mean")
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
    page.choose("layer", "2")  # while the cell has the focus and the table is open: no error is logged
    page.tab.wait_for_selector("section[aria-label=Difference]")


def test_other_tokens_have_no_difference_and_it_says_why(page_of: Any, bank: Any) -> None:
    page = page_of(list(bank))
    page.open_view("Compare")
    assert "not the same" in page.tab.inner_text("[data-reason]")
    assert page.tab.locator("section[aria-label=Difference]").count() == 0


def test_two_heads_of_a_text_are_chosen_freely(page_of: Any, bank: Any) -> None:
    page = page_of(bank[0])
    page.open_view("Compare")
    page.tab.select_option("[data-choose='layer A']", label="2")
    page.tab.select_option("[data-choose='head A']", "11")
    page.tab.select_option("[data-choose='layer B']", label="3")
    page.tab.select_option("[data-choose='head B']", "mean")
    open_twin(page.tab)
    a, b = bank[0].attention[2].dense()[11], bank[0].attention[3].dense().mean(0)
    row = next(row for row in rows_of(page.tab, "Weights of A and B") if row[:2] == ["11 bank", "10 river"])
    shown = torch.tensor([read_number(cell) for cell in row[2:]])
    assert float((shown - torch.stack([a[11, 10], b[11, 10], b[11, 10] - a[11, 10]])).abs().max()) <= SHOWN


@pytest.mark.parametrize("width", [390, 1000])
def test_it_is_for_everyone_and_for_a_phone(page_of: Any, ablated: Any, width: int) -> None:
    page = page_of(list(ablated), word="bank", width=width)
    page.open_view("Compare")
    page.tab.wait_for_selector("section[aria-label=Difference] canvas")
    page.suits_everyone(width)
