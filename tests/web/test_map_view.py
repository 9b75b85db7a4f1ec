"""One head's matrix: every weight and mean it shows is the library's, by mouse and by keyboard alone."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.explain.wording import fixed
from regard.questions.map.whole import matrix
from tests.support import make_tiny
from tests.web.tables import read_number, rows_of

pytestmark = pytest.mark.browser
SMOLLM2 = next(iter(sorted(Path(os.environ.get("REGARD_SMOLLM2") or "none").glob("*.gguf"))), None)
WITHIN = 3e-4  # of the library's weights: queries and keys are rounded to 16 bits
LONG = "The river was high, and the man who had come to fish sat down on the bank to wait for the money. " * 20


def opened(page: Any, layer: int, head: int | str) -> Any:
    """The map of a head, at rest, with the table of the largest weights."""
    page.open_view("Matrix")
    page.choose_head(str(layer), str(head))
    rest(page)
    page.tab.check("[value=largest]")
    return page.tab


def rest(page: Any) -> None:
    page.tab.wait_for_timeout(60)
    page.tab.wait_for_selector("[data-state=exact]")


def carried(page: Any) -> Any:
    """What the page says it carries."""
    return json.loads(page.tab.evaluate("document.getElementById('regard-data').textContent"))


def press(page: Any, *keys: str) -> None:
    page.tab.focus("role=application")
    for key in keys:
        page.tab.keyboard.press(key)
    rest(page)


def cursor(tab: Any) -> tuple[int, int, float]:
    """Query, key and weight that the readout tells."""
    tab.wait_for_selector("[data-weight]:not(:has-text('…'))")
    readout = tab.locator(".readout")
    query, key = (int(readout.get_attribute(f"data-{name}")) for name in ("query", "key"))
    weight = float(tab.get_attribute("[data-weight]", "title"))
    assert tab.inner_text("[data-weight]") in ("<0.01", fixed(weight, 2))
    return query, key, weight


def largest(tab: Any) -> list[tuple[list[int], list[int], float]]:
    """The table of the largest that are shown: queries, keys and number."""
    rows = rows_of(tab, tab.inner_text("caption:has-text('The largest')"), exact=True)
    return [(tokens(query), tokens(key), read_number(number)) for query, key, number in rows]


def tokens(cell: str) -> list[int]:
    """The tokens [first, end) that a cell names: "river (4)", or "0–63" where it is of several."""
    numbers = [int(each) for each in re.findall(r"\d+", cell.rpartition("(")[2])]
    return [numbers[0], numbers[-1] + 1]


def as_the_library_has_them(found: list[tuple[list[int], list[int], float]], weights: torch.Tensor) -> None:
    """Compare the table's rows with the means of the library's weights, and its first with their largest."""
    assert found
    for queries, keys, value in found:
        assert value == pytest.approx(float(weights[slice(*queries), slice(*keys)].mean()), abs=WITHIN, rel=1e-3)
    assert [value for _, _, value in found] == sorted((value for _, _, value in found), reverse=True)
    rows, cols = (found[0][side][1] - found[0][side][0] for side in (0, 1))
    assert found[0][2] == pytest.approx(float(blocks(weights, rows, cols).max()), abs=WITHIN, rel=1e-3)


def blocks(weights: torch.Tensor, rows: int, cols: int) -> torch.Tensor:
    """The means of whole blocks."""
    weights = weights[: len(weights) // rows * rows, : weights.shape[1] // cols * cols]
    return weights.unflatten(1, (-1, cols)).mean(2).unflatten(0, (-1, rows)).mean(1)


def test_a_cell_under_the_mouse_has_the_librarys_weight(page_of: Any, bank: Any) -> None:
    weights = bank[0].attention[3][5]
    page = page_of(bank[0])
    tab = opened(page, 3, 5)
    tab.locator(".map canvas").scroll_into_view_if_needed()
    box = tab.locator(".map canvas").bounding_box()
    margin = tab.locator(".side").evaluate("side => parseFloat(side.style.getPropertyValue('--margin'))")  # names
    cell = (box["width"] - margin - 2) / weights.shape[1]
    for query, key in ((0, 0), (11, 10), (5, 3)):
        tab.mouse.move(box["x"] + margin + (key + 0.5) * cell, box["y"] + margin + (query + 0.5) * cell)
        rest(page)
        assert cursor(tab)[:2] == (query, key)
        assert cursor(tab)[2] == pytest.approx(float(weights[query, key]), abs=WITHIN)
        assert bank[0].tokens[query].text in tab.inner_text(".readout")
    tab.mouse.down()
    tab.mouse.up()
    assert tab.evaluate("document.querySelector('[role=tab][aria-selected=true]').textContent").strip() == "Matrix"
    assert tab.inner_text(".context .key") == bank[0].tokens[3].text
    page.open_view("Numbers")
    assert tab.get_attribute("[data-unit='5']", "aria-selected") == "true"


def test_keys_alone_move_zoom_choose_and_go_home(page_of: Any, bank: Any) -> None:
    weights = bank[0].attention[2][4]
    page = page_of(bank[0])
    tab = opened(page, 2, 4)
    press(page, "ArrowDown", "ArrowRight")
    query, key, _ = cursor(tab)
    press(page, "ArrowDown", "ArrowRight", "ArrowRight")
    assert cursor(tab)[:2] == (query + 1, key + 2)
    assert cursor(tab)[2] == pytest.approx(float(weights[query + 1, key + 2]), abs=WITHIN)
    whole = tab.inner_text(".map + * + * caption, caption")
    press(page, "+")
    assert tab.inner_text("caption") != whole
    assert cursor(tab)[:2] == (query + 1, key + 2)
    press(page, *["ArrowUp"] * 30, *["ArrowLeft"] * 30)  # out of the window that was: it follows
    assert cursor(tab)[:2] == (0, 0)
    assert re.search(r"queries 0–\d+ and keys 0–", tab.inner_text("caption"))
    press(page, "Home")
    assert tab.inner_text("caption") == whole
    press(page, "ArrowDown", "ArrowDown", "ArrowDown", "Enter")
    page.open_view("Numbers")
    assert tab.get_attribute("[data-unit='3']", "aria-selected") == "true"


@pytest.mark.parametrize("head", [6, "mean"])
def test_the_tables_are_those_of_the_library(page_of: Any, bank: Any, head: int | str) -> None:
    maps = bank[0].attention[1].dense()
    weights = maps.mean(0) if head == "mean" else maps[head]
    page = page_of(bank[0])
    tab = opened(page, 1, head)
    as_the_library_has_them(largest(tab), weights)
    press(page, "ArrowDown")
    query = cursor(tab)[0]
    tab.check("[value=row]")
    tab.click("button:has-text('all ')")
    found = {
        int(cell.get_attribute("data-value")): float(cell.get_attribute("title"))
        for cell in tab.query_selector_all("td[data-value]")
    }
    assert sorted(found) == list(range(len(weights)))
    assert max(abs(found[n] - float(weights[query, n])) for n in found) < WITHIN + 5e-5


def test_coarse_cells_are_means_and_zooming_reaches_single_weights(page_of: Any, minilm: Any) -> None:
    trace = minilm.trace(LONG)
    weights = trace.attention[4][7]
    page = page_of(trace, width=390, layers=[4])
    tab = opened(page, 4, 7)
    found = largest(tab)
    assert {tuple(b - a for a, b in each[:2]) for each in found} == {(2, 2)}
    as_the_library_has_them(found, weights)
    press(page, "ArrowDown")
    query, key, weight = cursor(tab)
    mean = float(tab.get_attribute("[data-mean]", "title"))
    assert "mean of 2 × 2 weights" in tab.inner_text("[data-cell]")
    assert mean == pytest.approx(float(weights[query // 2 * 2 :, key // 2 * 2 :][:2, :2].mean()), abs=WITHIN)
    assert weight == pytest.approx(float(weights[query, key]), abs=WITHIN)
    press(page, "+", "+")
    assert tab.locator("[data-cell]").count() == 0
    queries, keys = re.findall(r"(\d+)–(\d+)", tab.inner_text("caption"))
    window = weights[int(queries[0]) : int(queries[1]) + 1, int(keys[0]) : int(keys[1]) + 1]
    assert window.shape[0] < len(weights) // 2
    assert largest(tab)[0][2] == pytest.approx(float(window.max()), abs=WITHIN)
    press(page, "-", "-")  # made of the finer tiles that are there
    as_the_library_has_them(largest(tab), weights)


def test_what_takes_long_is_coarse_at_first_and_can_be_stopped_and_go_on(page_of: Any, minilm: Any) -> None:
    trace = minilm.trace(LONG)
    page = page_of(trace, layers=[4])
    opened(page, 4, 0)
    page.tab.evaluate(  # as a hand would, but before it is over
        """() => new MutationObserver((_, observer) => {
            const stop = [...document.querySelectorAll("button")].find((each) => each.textContent === "stop");
            if (stop) observer.disconnect(), stop.click();
        }).observe(document.body, { subtree: true, childList: true })"""
    )
    page.choose("head", "mean")
    page.tab.wait_for_selector("[data-state=stopped]")
    said = page.tab.inner_text(".state")
    done, count = (int(number) for number in re.findall(r"(\d+) of (\d+) pieces are exact, each of 12 heads", said)[0])
    assert 0 <= done < count
    page.tab.wait_for_timeout(300)
    assert page.tab.inner_text(".state") == said
    assert page.tab.locator("caption:has-text('The largest')").count() == 0  # the largest are not known as yet
    assert page.tab.get_attribute("progress", "max") == str(count)
    page.tab.click("button:text-is('continue')")
    rest(page)
    as_the_library_has_them(largest(page.tab), trace.attention[4].dense().mean(0))


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("gpt2", {}),
        ("gemma2", {"num_key_value_heads": 1, "head_dim": 8, "attn_logit_softcapping": 0.7, "sliding_window": 5}),
        ("mistral", {"num_key_value_heads": 1, "sliding_window": 4}),
        ("bloom", {"n_head": 3, "n_layer": 2}),
    ],
)
def test_masks_windows_softcaps_and_alibi(page_of: Any, minilm: Any, tmp_path: Path, kind: str, changes: Any) -> None:
    make_tiny(tmp_path / kind, minilm, kind, **changes)
    trace = regard.load(tmp_path / kind).trace("The man sat on the bank and waited for money.")
    page = page_of(trace)
    if kind == "bloom":  # its mask is added to the scores
        assert {call["mask"]["kind"] for call in carried(page)["calls"]} == {"runs"}
    visible = [trace.attention[layer].dense()[2] > 0 for layer in (0, 1)]
    for layer in (0, 1):
        weights = trace.attention[layer][2]
        tab = opened(page, layer, 2)
        as_the_library_has_them(largest(tab), weights)
        press(page, "Home", *["ArrowUp"] * 12, *["ArrowRight"] * 12)
        query, key, weight = cursor(tab)
        assert (query, key, weight) == (0, len(weights) - 1, 0)
        assert "masked" in tab.inner_text(".readout")
        tab.check("[value=row]")
        tab.click("button:has-text('all ')")
        marks = {
            int(row.locator("[data-value]").get_attribute("data-value")): "masked" in row.inner_text()
            for row in tab.locator("tbody tr").all()
        }
        assert marks == {key: not bool(allowed) for key, allowed in enumerate(visible[layer][0].tolist())}
        tab.check("[value=largest]")
        press(page, *["ArrowDown"] * 12, *["ArrowLeft"] * 12)  # the last query may attend to the first key, or not
        assert ("masked" in tab.inner_text(".readout")) is not bool(visible[layer][-1][0])
        page.open_view("Numbers")
        page.tab.click("[data-unit='1']")
        page.tab.wait_for_selector(f"caption:has-text('What “{trace.tokens[1].text.strip()}” looks at')")
        assert page.tab.locator("tbody td:text-is('masked')").count() > 0
        page.tab.click("[data-unit='1']")


def test_it_opens_at_the_link_of_the_first_sentence(page_of: Any, bank: Any) -> None:
    found = matrix(bank[0], 2, far=3)
    pair = found.main_pair
    assert pair is not None
    row = bank[0].attention[2][pair.head, pair.query.token].clone()
    row[[0, pair.query.token, -1]] = 0
    assert row.max() > pair.weight  # of a nearer key
    page = page_of(found)
    rest(page)
    assert cursor(page.tab)[:2] == (pair.query.token, pair.key.token)


@pytest.mark.skipif(SMOLLM2 is None, reason="REGARD_SMOLLM2 names no folder with a GGUF file")
def test_a_large_map_is_exact_from_the_whole_to_single_weights(page_of: Any) -> None:
    trace = regard.load(SMOLLM2).trace(LONG * 3, layers=[5], logits=False)
    weights = trace.attention[0][7] if len(trace.attention) == 1 else trace.attention[5][7]
    assert len(weights) > 1200
    page = page_of(trace)
    page.open_view("Matrix")
    page.choose("head", "7")
    rest(page)
    page.tab.check("[value=largest]")
    tab = page.tab
    as_the_library_has_them(largest(tab), weights)
    press(page, *["+"] * 8)
    press(page, *["ArrowDown"] * 3)
    query, key, weight = cursor(tab)
    assert weight == pytest.approx(float(weights[query, key]), abs=WITHIN)
    assert tab.locator("[data-cell]").count() == 0


@pytest.mark.parametrize("width", [390, 1000])
def test_it_is_for_everyone_and_for_a_phone(page_of: Any, bank: Any, width: int) -> None:
    page = page_of(bank[0], width=width)
    opened(page, 0, 3)
    press(page, "ArrowDown")
    page.suits_everyone(width)
