"""The first view of one long text, in a browser: the text as a page of a book, a map, and every head as a small map."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.explain.wording import number
from regard.views.save_page import put_together
from tests.support import make_tiny

pytestmark = pytest.mark.browser
TEXT = """Call me Ishmael. Some years ago, having little or no money in my purse, and nothing particular to interest me
on shore, I thought I would sail about a little and see the watery part of the world. Whenever it is a damp, drizzly
November in my soul, then I account it high time to get to sea as soon as I can. I quietly take to the ship."""
CHOSEN = "[data-token][aria-selected=true]"
SIZE = "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"


@pytest.fixture
def opened(page_of: Any) -> Any:
    """Open the page of an answer, and wait for its weights and maps."""

    def show(found: Any, **how: Any) -> Any:
        page = page_of(found, overview=True, width=1300, **how)
        page.tab.set_viewport_size({"width": 1300, "height": 850})
        page.tab.emulate_media(reduced_motion="reduce")
        page.tab.reload()
        page.tab.wait_for_selector("[data-head]:last-child canvas >> nth=-1")
        page.tab.wait_for_selector("[data-key]")
        page.tab.wait_for_timeout(200)
        return page

    return show


def listed(tab: Any) -> tuple[list[int], list[str]]:
    """The tokens of the largest weights, and the numbers next to them."""
    rows = tab.locator("[data-key]").all()
    return [int(row.get_attribute("data-key")) for row in rows], [row.inner_text().split()[-1] for row in rows]


def shown_is(tab: Any, trace: Any, layer: int, head: int, token: int) -> None:
    row = trace.attention[layer][head, token]
    keys, said = listed(tab)
    assert keys == row.argsort(descending=True)[:8].tolist()
    assert said == [number(float(row[key])) for key in keys]
    assert tab.inner_text("[data-rest]") == number(float(1 - row[keys].sum()))
    assert tab.inner_text("[data-caption]").startswith(f"layer {layer}, head {head} · “")


def test_it_opens_at_the_sentence_and_goes_everywhere(opened: Any, minilm: Any) -> None:
    found = regard.see(TEXT, model=minilm)
    first, second = found.summary.highlights[0].links[:2]
    trace = found.traces[0]
    row = trace.attention[first.layer][first.head, first.query]
    assert row.topk(2).indices.tolist() == [first.key, second.key]
    head = f"layer {first.layer}, head {first.head}"
    assert found.findings()[0] == (
        f"“watery” attends unusually strongly to “sea”, {first.key - first.query} tokens later "
        f"({number(first.weight)}, {head}) and “ship” ({number(float(row[second.key]))}, {head})."
    )
    page = opened(found)
    tab = page.tab
    assert tab.evaluate(SIZE) == [1300, 850]
    assert found.findings()[0] == re.sub("[\u2068\u2069]", "", tab.inner_text("h1"))
    shown_is(tab, trace, first.layer, first.head, first.query)
    assert tab.locator(".arcs path").count() > 0
    assert page.violations() == []
    for key in ("ArrowLeft", "ArrowDown", "]"):
        tab.keyboard.press(key)
        tab.wait_for_timeout(150)
    there = (first.layer + 1) % 6, (first.head + 1) % 12, first.query - 1
    shown_is(tab, trace, *there)
    tab.hover("[data-head='0-0-0']")
    tab.wait_for_timeout(150)
    shown_is(tab, trace, 0, 0, there[2])
    tab.mouse.move(2, 2)
    said = json.loads(tab.evaluate("decodeURIComponent(location.hash.slice(1))"))
    assert (said["view"], said["head"], said["token"]) == ("overview", there[1], there[2])
    tab.reload()
    tab.wait_for_timeout(500)
    shown_is(tab, trace, *there)
    tab.keyboard.press("/")
    tab.fill("[data-find]", "november")
    assert tab.inner_text(CHOSEN) == "November"
    tab.keyboard.press("Escape")
    tab.focus(CHOSEN)
    tab.keyboard.press("End")
    assert tab.evaluate("document.activeElement.dataset.token") == str(len(trace.tokens) - 1)
    tab.click("[data-side]")
    tab.wait_for_timeout(150)
    keys, numbers = listed(tab)
    assert numbers[0] == number(float(trace.attention[there[0]][there[1], keys[0], -1]))
    tab.keyboard.press("Escape")
    tab.wait_for_timeout(150)
    shown_is(tab, trace, first.layer, first.head, first.query)
    tab.set_viewport_size({"width": 390, "height": 400})  # its word is in the last line, what it looks at further down
    tab.wait_for_timeout(150)
    low = "book.scrollTop = each.offsetTop + each.offsetHeight + 4 - book.clientHeight"
    tab.locator(CHOSEN).evaluate(f"each => {{ const book = each.parentElement; {low} }}")
    tab.wait_for_selector("[data-far]")
    book, callout = (tab.locator(each).bounding_box() for each in (".book", "[data-far]"))
    assert book["y"] + book["height"] <= callout["y"]  # it covers no text


def test_windows_a_phone_paper_and_a_picture(opened: Any, minilm: Any, tmp_path: Path) -> None:
    found = regard.see(minilm.trace(f"{TEXT} {TEXT}", window=64))
    several = regard.see([minilm.trace(TEXT, window=64)] * 2).findings()
    assert [each.split(", “")[0] for each in several] == [
        f"In text {each} of 2" for each in ("1, window 1", "1, window 2", "2, window 1")
    ]
    page = opened(found)
    assert re.match("In window 1 of 5, \u2068?“", page.tab.inner_text("h1"))
    assert page.tab.locator("h1 .word").count() > 0
    tab, opening = page.tab, found.page().opening
    tab.select_option("[data-choose=text]", "1")
    tab.wait_for_timeout(300)
    token = int(tab.get_attribute(CHOSEN, "data-token"))
    shown_is(tab, found.traces[1], opening["call"], opening["head"], token)
    tab.click("[data-more]")
    with tab.expect_download() as waited:
        tab.click("[data-save=svg]")
    waited.value.save_as(tmp_path / "long.svg")
    assert "Ishmael" in (tmp_path / "long.svg").read_text("utf-8")
    tab.set_viewport_size({"width": 390, "height": 844})
    tab.wait_for_timeout(200)
    assert tab.evaluate(SIZE)[0] == 390
    page.suits_paper()


def test_a_text_of_two_thousand_tokens_scrolls_in_its_column(opened: Any, minilm: Any, tmp_path: Path) -> None:
    make_tiny(tmp_path / "gpt2", minilm, "gpt2", max_position_embeddings=4096)
    found = regard.see(" ".join([TEXT] * 25), model=tmp_path / "gpt2", layer=0, head=1)
    assert len(found.traces[0].tokens) > 2000
    shorter = regard.see(" ".join([TEXT] * 7), model=tmp_path / "gpt2")
    assert put_together(shorter.traces[0]).findings == shorter.findings() != []  # of more than 512 tokens as well
    tab = opened(found).tab
    assert tab.evaluate(SIZE) == [1300, 850]
    token = found.page().opening["token"]
    shown_is(tab, found.traces[0], found.page().opening["call"], found.page().opening["head"], token)
    tab.keyboard.press("/")
    tab.fill("[data-find]", "Ishmael")
    seen = "each => { const [own, box] = [each, each.parentElement].map(e => e.getBoundingClientRect());"
    assert tab.locator(CHOSEN).evaluate(f"{seen} return own.top >= box.top && own.bottom <= box.bottom }}")
