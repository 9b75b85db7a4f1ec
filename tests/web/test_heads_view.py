"""Every head as a small map: scores are the library's, heads are sorted by them and opened by a click or Enter."""

from typing import Any

import pytest
import torch

from regard.explain.weights.head_scores import head_scores
from tests.web.tables import open_twin, read_number, rows_of

pytestmark = pytest.mark.browser


def heads_in_order(tab: Any) -> list[str]:
    found: list[str] = tab.evaluate("[...document.querySelectorAll('[data-head]')].map(each => each.dataset.head)")
    return found


def test_scores_are_the_librarys(page_of: Any, bank: Any) -> None:
    page = page_of(bank[0])
    page.open_view("Heads")
    open_twin(page.tab)
    rows = rows_of(page.tab, "Scores of heads")
    scores = head_scores(bank[0]).by_name()
    assert len(rows) == 72
    for row in rows:
        layer, head = (int(part.split()[1]) for part in row[0].split(", "))
        for cell, table in zip(row[1:], scores.values(), strict=True):
            expected = float(table[layer, head])
            assert cell == "–" if expected != expected else read_number(cell) == pytest.approx(expected, abs=6e-5)


def test_heads_are_sorted_and_filtered_by_a_score(page_of: Any, bank: Any) -> None:
    page = page_of(bank[0])
    page.open_view("Heads")
    previous = head_scores(bank[0]).previous
    assert heads_in_order(page.tab) == [f"{layer}-{head}" for layer in range(6) for head in range(12)]
    page.tab.select_option("[data-choose=score]", label="previous")
    page.tab.check("text=sort by it")
    order = previous.flatten().argsort(descending=True).tolist()
    assert heads_in_order(page.tab)[:10] == [f"{n // 12}-{n % 12}" for n in order[:10]]
    page.tab.fill("[data-choose=least]", "0.25")
    kept = int((previous >= 0.25).sum())
    assert 0 < kept < 72
    assert len(heads_in_order(page.tab)) == kept
    assert page.tab.inner_text("[data-kept]").startswith(f"{kept} of 72 heads")
    assert "the previous token" in page.tab.inner_text("[role=tabpanel]")


def test_a_map_is_the_heads_weights(page_of: Any, bank: Any) -> None:
    page = page_of(bank[0])
    page.open_view("Heads")
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


def test_a_click_opens_a_head_for_all_views(page_of: Any, bank: Any) -> None:
    page = page_of(bank[0])
    page.open_view("Heads")
    page.tab.click("[data-head='3-5']")
    assert page.tab.inner_text("[role=tab][aria-selected=true]") == "Numbers"
    assert page.tab.input_value("[data-choose=head]") == "5"
    page.tab.hover("[data-unit='11']")
    shown = page.number("[data-value='10']")
    assert shown == pytest.approx(float(bank[0].attention[3][5, 11, 10]), abs=2e-4)


def test_keys_alone_open_a_head(page_of: Any, bank: Any) -> None:
    page = page_of(bank[0])
    page.tab.focus("role=tab[name=Numbers]")
    while page.tab.inner_text("[role=tab][aria-selected=true]") != "Heads":
        page.tab.keyboard.press("ArrowRight")
    while page.tab.evaluate("document.activeElement.dataset.head") is None:
        page.tab.keyboard.press("Tab")
    for key in ("Home", "ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowUp", "ArrowLeft"):
        page.tab.keyboard.press(key)
    assert page.tab.evaluate("document.activeElement.dataset.head") == "1-1"
    page.tab.keyboard.press("Enter")
    page.tab.wait_for_selector("[data-unit]")
    assert page.tab.evaluate("document.activeElement.innerText") == "Numbers"
    assert page.tab.input_value("[data-choose=head]") == "1"
    assert page.tab.eval_on_selector("[data-choose=layer]", "s => s.selectedOptions[0].text") == "1"


@pytest.mark.parametrize("width", [390, 1000])
def test_it_is_for_everyone_and_for_a_phone(page_of: Any, bank: Any, width: int) -> None:
    page = page_of(list(bank), word="bank", width=width)
    page.open_view("Heads")
    page.tab.wait_for_selector("[data-head='0-0'] canvas")
    assert page.violations() == []
    assert page.tab.evaluate("document.documentElement.scrollWidth") <= width
