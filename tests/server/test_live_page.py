"""The served page in a real browser: typed, traced, ablated, zoomed, linked, lost and found again."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
import torch

import regard
from regard import ablate, attend, edge, head, patch
from regard.explain.wording import number
from regard.questions.generate.answer import generated
from tests.support import MONEY, RIVER, SHARED
from tests.support.served import served
from tests.web.conftest import AXE, Opened
from tests.web.saved import apart, drawn_alone, pixels, save, stands_alone

pytestmark = pytest.mark.browser
SIZE = 1201
STORIES = SHARED / "models" / "stories260K"
needs_stories = pytest.mark.skipif(not STORIES.is_dir(), reason=f"no model folder {STORIES}")


@pytest.fixture(scope="module")
def map_file(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, torch.Tensor]:
    """A saved attention map, and its dense weights."""
    draws = torch.Generator().manual_seed(1)
    query, key, value = (2 * torch.randn(3, SIZE, 8, generator=draws) for _ in range(3))
    weights = attend(query, key, value, causal=True).weights
    file = tmp_path_factory.mktemp("maps") / "a map.safetensors"
    weights.save(file)
    return file, weights.dense()


@pytest.fixture(scope="module")
def server(map_file: tuple[Path, torch.Tensor]) -> Iterator[str]:
    """The link of a server with the default model, a text and a map."""
    file, _ = map_file
    with served("--open", str(file), RIVER) as (_, port, token):
        yield f"http://127.0.0.1:{port}/?token={token}"


def traced(page: Opened, title: str, view: str = "Numbers") -> None:
    """Wait until the page shows a text, and open one of its views; "" leaves it as it is."""
    page.tab.wait_for_selector(f".topbar [title*='{title}']", timeout=60_000)
    if view and page.tab.locator(f"role=tab[name={view}]").count():
        page.open_view(view)


def visited(visit: Any, server: str, view: str = "Numbers") -> Opened:
    """The page of the server's own text at one of its views."""
    page: Opened = visit(server)
    traced(page, RIVER[:20], view)
    return page


def said(page: Opened) -> str:
    """What the page's sentences say, without the marks around foreign words."""
    return " ".join(re.sub("[\u2068\u2069]", "", page.tab.inner_text("header")).split())


def table_weights(page: Opened) -> dict[int, float]:
    """The weights of the tokens view's table, by token."""
    if page.tab.locator("button:has-text('all ')").count():
        page.tab.click("button:has-text('all ')")
    cells = page.tab.eval_on_selector_all("[data-value]", "all => all.map(c => [c.dataset.value, c.innerText])")
    return {int(token): float(weight) for token, weight in cells}


def test_a_typed_text_is_traced_and_shown_with_the_librarys_weights(server: str, visit: Any, minilm: Any) -> None:
    page = visited(visit, server)
    assert "token=" not in page.tab.url
    page.tab.fill("textarea", MONEY)
    page.tab.keyboard.press("Control+Enter")
    traced(page, MONEY[:30])
    page.choose_head("3", "7")
    page.tab.click(".tokens [data-unit='4']")
    page.tab.wait_for_timeout(300)
    trace = minilm.trace(MONEY)
    found = table_weights(page)
    assert len(found) == len(trace.tokens)
    for token, weight in found.items():
        assert abs(weight - float(trace.attention[3][7, 4, token])) <= 1e-4


def test_the_first_screen_is_a_live_example_with_the_librarys_numbers(serve: Any, visit: Any, minilm: Any) -> None:
    _, port, token = serve()
    page = visit(f"http://127.0.0.1:{port}/?token={token}", 1300, 850)
    page.tab.wait_for_selector("[data-head] [style]", timeout=60_000)
    assert page.tab.evaluate("document.documentElement.scrollHeight") == 850
    text = page.tab.input_value("textarea")
    seen = regard.see(text, model=minilm)
    assert seen.findings()[0] in said(page)
    link = seen.summary.highlights[0].links[0]
    page.tab.wait_for_timeout(1500)  # while the arcs grow
    assert number(link.weight) in page.tab.locator("[data-weight='0']").all_text_contents()
    assert page.tab.locator("[data-example]:visible").count() == 3
    assert page.tab.inner_text("body").count(minilm.name) == 1
    page.tab.click("[data-example]:has-text('Two senses')")
    page.tab.wait_for_selector("[data-head='1-0-0'] [style]", timeout=60_000)
    texts = ["We sat on the river bank.", "I made a deposit at the bank."]
    bank = regard.see(texts, "bank", references=["river", "deposit"], model=minilm)
    page.tab.click("[data-fold]")
    assert all(finding in said(page) for finding in bank.findings())
    # the word is followed in other texts too, by the keyboard alone, and where they do not have it, it is left out
    page.tab.fill("[aria-label='Text 1']", RIVER)
    page.tab.fill("[aria-label='Text 2']", MONEY)
    page.tab.keyboard.press("Control+Enter")
    traced(page, RIVER[:20], "")
    found = regard.see([RIVER, MONEY], "bank", references=["river", "deposit"], model=minilm)
    page.tab.wait_for_selector(f"h1:has-text('{found.findings()[0].split()[0]}')")
    assert found.findings()[0] in said(page)
    page.tab.fill("[aria-label='Text 1']", "The dog barked.")
    page.tab.fill("[aria-label='Text 2']", "A cat slept.")
    page.tab.press("[aria-label='Reference words']", "Control+Enter")
    traced(page, "The dog barked", "")
    assert page.tab.input_value("[aria-label='Follow a word']") == ""


def test_a_link_and_a_head_are_cut_in_words_and_taken_back(server: str, visit: Any, minilm: Any) -> None:
    page = visit(server)
    page.tab.emulate_media(reduced_motion="reduce")
    traced(page, RIVER[:20], "")
    page.tab.fill("[aria-label='Follow a word']", "bank")
    page.tab.keyboard.press("Control+Enter")
    link = regard.see(RIVER, "bank", model=minilm).summary.occurrences[0].link
    says = f"“bank” → “{link.text}” in layer {link.layer}, head {link.head}"
    page.tab.click(f"[data-act]:text-is('cut {says}')", timeout=60_000)
    page.tab.wait_for_selector("h1:has-text('Without “')", timeout=60_000)
    before = minilm.trace(RIVER)
    bank = before.word("bank")[0].tokens[0]
    cut = edge(bank, link.token, layers=link.layer, heads=link.head)
    after = minilm.trace(RIVER, interventions=[ablate(cut)])
    cosine = torch.cosine_similarity(*(t.last_hidden_state[bank].double() for t in (before, after)), dim=0)
    assert f"Without {says}, “bank” ends at cosine {number(float(cosine))} to before." in said(page)
    names = page.tab.inner_text(".names")
    assert "text 1: as is, " in names
    assert f"text 2: without {says}, " in names
    row = [number(float(each)) for each in after.attention[link.layer][link.head, bank]]
    page.tab.wait_for_selector("[data-weight='1']")
    shown = set(page.tab.locator("[data-weight='1']").all_text_contents())
    assert set() < shown <= {*row, "<0.01"}
    assert page.tab.input_value("[aria-label='Follow a word']") == "bank"
    page.tab.reload()  # the address has all of it
    page.tab.wait_for_selector(f".cut:has-text('without {says}')", timeout=60_000)
    page.open_view("Numbers")
    page.choose_head("1", "2")
    page.tab.click("[data-cut]:text-is('cut layer 1, head 2')")
    page.tab.wait_for_selector("[aria-label='take back: layer 1, head 2']", timeout=60_000)
    assert f"Without {says} and without layer 1, head 2, “bank” ends at cosine " in said(page)
    page.tab.click("button:has-text('take all back')")
    page.tab.wait_for_selector("h1:not(:has-text('Without'))", timeout=60_000)
    assert regard.see(RIVER, "bank", model=minilm).findings()[0] in said(page)


def test_one_of_two_texts_is_changed(server: str, visit: Any, minilm: Any) -> None:
    page = visit(server)
    page.tab.click("[data-example]:has-text('Two senses')", timeout=60_000)
    page.tab.click("[data-head='1-3-2']", timeout=60_000)
    page.tab.click("section:has([data-head='1-3-2']) [data-acts]")
    page.tab.click("section:has([data-head='1-3-2']) [data-act]:has-text('cut layer 3, head 2')")
    page.tab.wait_for_selector("h1:has-text('Without layer 3, head 2')", timeout=60_000)
    text = "I made a deposit at the bank."
    assert all("deposit" in each for each in page.tab.locator("[data-sentence]").all_inner_texts())
    before, after = minilm.trace(text), minilm.trace(text, interventions=[ablate(head(3, 2))])
    bank = before.word("bank")[0].tokens[0]
    cosine = torch.cosine_similarity(*(t.last_hidden_state[bank].double() for t in (before, after)), dim=0)
    assert f"Without layer 3, head 2, “bank” ends at cosine {number(float(cosine))} to before." in said(page)
    assert page.tab.locator("[data-cosine]").count() == 4  # two reference words, as is and changed
    page.tab.click("button:has-text('take it back')")
    page.tab.wait_for_selector("[aria-label='Text 2']")
    traced(page, "We sat on", "")
    page.tab.wait_for_selector("[data-sentence='0']:has-text('river')")
    page.tab.click("[data-acts] >> nth=0")
    page.tab.click("[data-act]:has-text('why is “bank” similar to “river”?')")
    page.tab.wait_for_selector("text=back to the attention", timeout=60_000)


def test_a_typed_word_is_followed_through_the_layers_of_every_text(server: str, visit: Any) -> None:
    page = visited(visit, server, "")
    page.tab.click("[aria-label='another text']")
    page.tab.fill("[aria-label='Text 2']", MONEY)
    page.tab.fill("[aria-label='Follow a word']", "bank")
    page.tab.fill("[aria-label='Reference words']", "river, money")
    page.tab.keyboard.press("Enter")
    page.tab.wait_for_selector("[data-cosine='river 1']", timeout=60_000)
    page.tab.fill("[aria-label='Follow a word']", "zebra")
    page.tab.click("button:text-is('Trace')")
    page.tab.wait_for_selector("[role=alert]:has-text('zebra')")
    page.tab.fill("[aria-label='Follow a word']", "")
    page.tab.click("button:text-is('Trace')")
    page.tab.wait_for_selector("[data-cosine]", state="detached")


def address_at_rest(page: Opened) -> str:
    """The address once the map is exact and the address has not changed for half a second."""
    page.tab.wait_for_selector(".map[data-state=exact][data-sight]", timeout=60_000)
    address = None
    while address != (address := page.tab.url):
        page.tab.wait_for_timeout(500)
    return address


def test_a_link_and_a_reload_show_the_same_again(server: str, visit: Any) -> None:
    page = visited(visit, server)
    page.tab.fill("textarea", 'A dog\'s "bark" # is & worse? שלום')
    page.tab.click("button:has-text('Trace')")
    traced(page, "A dog")
    page.open_view("Matrix")
    page.choose_head("4", "9")
    link = address_at_rest(page)
    page.tab.reload()
    for _ in range(2):
        traced(page, "A dog", "")
        page.tab.wait_for_selector("[data-choose=head]", timeout=60_000)
        assert address_at_rest(page) == link
        assert page.tab.locator("[role=tab][aria-selected=true]").inner_text() == "Matrix"
        assert page.tab.locator("[data-choose=head]").input_value() == "9"
        page.tab.goto("about:blank")
        page.tab.goto(link)


def test_what_is_refused_is_said_and_what_was_shown_stays(server: str, visit: Any) -> None:
    page = visited(visit, server)
    page.tab.fill("textarea", "word " * 700)
    page.tab.click("button:has-text('Trace')")
    assert "at most 512" in page.tab.wait_for_selector(".trouble").inner_text()
    traced(page, RIVER[:20])
    page.tab.click("[data-options]")
    page.tab.check("input[type=checkbox]:near(:text('in windows of 512'))")
    page.tab.click("button:has-text('Trace')")
    page.tab.wait_for_selector("[data-choose=text] option:has-text('window 2 of 2')", state="attached", timeout=60_000)
    assert page.tab.locator(".trouble").count() == 0


def test_a_file_is_read_as_content_and_no_text_is_refused_here(server: str, visit: Any, tmp_path: Path) -> None:
    page = visited(visit, server)
    (tmp_path / "a.txt").write_text("The ship left the harbour.", encoding="utf-8")
    page.tab.click("[data-options]")
    page.tab.set_input_files("input[type=file]", tmp_path / "a.txt")
    page.tab.click("button:has-text('Trace')")
    traced(page, "The ship left")
    (tmp_path / "b.bin").write_bytes(b"\xff\xfe\x00")
    page.tab.set_input_files("input[type=file]", tmp_path / "b.bin")
    assert "isn't a UTF-8 text file" in page.tab.wait_for_selector("form [role=alert]").inner_text()


def test_a_map_is_zoomed_into_with_exact_means_and_weights(server: str, visit: Any, map_file: Any) -> None:
    page, (_, dense) = visit(server), map_file
    traced(page, RIVER[:20])
    page.tab.click("button:has-text('a map')")
    traced(page, "a map")
    assert page.tab.locator("[role=tab]").count() == 0  # one view, which needs no tabs
    assert "can't save it as a file" in page.tab.locator("p:has-text('works offline')").inner_text()
    page.choose("head", "1")
    area = page.tab.locator(".map")
    page.tab.wait_for_selector(".map[data-state=exact]", timeout=60_000)
    area.focus()
    for key in ("ArrowDown", "ArrowRight"):
        page.tab.keyboard.press(key)
    page.tab.wait_for_timeout(300)
    place = page.tab.locator(".readout")
    query, key = (int(place.get_attribute(f"data-{name}")) for name in ("query", "key"))
    assert abs(float(page.tab.get_attribute("[data-weight][title]", "title")) - float(dense[1, query, key])) <= 1e-6
    said = page.tab.locator("[data-cell]").inner_text()
    ranges = [[int(n) for n in part.split("–")] for part in said.split("queries ")[1].split(":")[0].split(", keys ")]
    rows, cols = (slice(each[0], each[-1] + 1) for each in ranges)
    assert float(page.tab.get_attribute("[data-mean]", "title")) == pytest.approx(
        float(dense[1, rows, cols].mean()), rel=2e-3
    )
    for _ in range(6):
        page.tab.keyboard.press("+")
    page.tab.wait_for_selector(".map[data-state=exact]", timeout=60_000)
    assert "Every cell is one weight." in page.tab.locator(".state").inner_text()
    page.tab.check("[value=largest]")
    *places, _ = page.tab.locator("tbody tr").first.locator("th, td").all_inner_texts()
    found = [int(place.rpartition("(")[2].rstrip(")")) for place in places]
    weight = float(page.tab.get_attribute("tbody [data-value='0']", "title"))
    assert weight == pytest.approx(float(dense[1, found[0], found[1]]), rel=1e-3)


def sight(page: Opened) -> tuple[list[float], list[str | None]]:
    """The middle and the width of what a map shows, and its cursor's query and key, when nothing moves any more."""
    page.tab.wait_for_selector(".map[data-state=exact][data-sight]", timeout=60_000)
    page.tab.wait_for_timeout(600)
    place = page.tab.locator(".readout")
    seen = page.tab.get_attribute(".map", "data-sight").split()
    return [float(each) for each in seen], [place.get_attribute(f"data-{name}") for name in ("query", "key")]


def test_a_link_and_a_reload_show_the_same_part_of_a_map(server: str, visit: Any) -> None:
    page = visited(visit, server)
    page.tab.click("button:has-text('a map')")
    traced(page, "a map")
    page.choose("head", "1")
    page.tab.wait_for_selector(".map[data-state=exact]", timeout=60_000)  # a matrix that comes is shown whole
    page.tab.focus(".map")
    for key in ("ArrowDown", "ArrowRight", "+", "+", "+", "Shift+ArrowDown"):
        page.tab.keyboard.press(key)
    seen, place = sight(page)
    assert seen[2] == pytest.approx(SIZE / 8, rel=1e-3)
    assert None not in place
    page.tab.reload()
    traced(page, "a map")
    assert sight(page) == (pytest.approx(seen, abs=0.01), place)
    other = visit(f"{server}{page.tab.evaluate('location.hash')}", width=390)
    traced(other, "a map")
    assert sight(other) == (pytest.approx(seen, abs=0.01), place)  # as many keys, on a smaller screen
    other.tab.focus(".map")
    other.tab.keyboard.press("Home")
    assert sight(other)[0] == pytest.approx([SIZE / 2, SIZE / 2, SIZE], abs=0.01)


def chosen(page: Opened) -> dict[str, Any]:
    """What fields of the view that is shown hold, by what they are called."""
    return page.tab.eval_on_selector_all(
        "[role=tabpanel] :is(input, select)",
        "all => Object.fromEntries(all.map((each, n) => [`${n} ${each.closest('label')?.textContent ?? ''}`, "
        "['checkbox', 'radio'].includes(each.type) ? each.checked : each.value]))",
    )


def test_a_reload_shows_what_was_chosen_in_each_view(server: str, visit: Any) -> None:
    page = visited(visit, server)

    def again(view: str) -> set[Any]:
        before = chosen(page)
        page.tab.reload()
        page.tab.wait_for_selector(f"[role=tab][aria-selected=true]:has-text('{view}')", timeout=60_000)
        page.tab.wait_for_timeout(300)
        assert chosen(page) == before
        return set(before.values())

    page.tab.check("label:has-text('whole words') input")
    assert True in again("Numbers")
    page.open_view("Matrix")
    page.tab.check("label:has-text('two side by side') input")
    again("Matrix")
    page.open_view("Overview")
    page.tab.select_option("[data-choose=score]", index=5)
    assert "3" in again("Overview")
    page.open_view("Matrix")
    page.open_view("Overview")
    assert "3" in chosen(page).values()  # still there
    wrong = quote(
        json.dumps({"texts": [RIVER], "view": "overview", "choices": {"heads score": "x", "compare": [], "none": 1}})
    )
    other = visit(f"{server}#{wrong}")
    traced(other, RIVER[:20], "")
    assert other.tab.input_value("[data-choose=score]", timeout=60_000) == ""


def test_a_map_keeps_its_place_between_views_until_another_token_is_chosen(server: str, visit: Any) -> None:
    page = visited(visit, server)
    page.open_view("Matrix")
    page.tab.wait_for_selector(".map[data-state=exact]", timeout=60_000)
    page.tab.focus(".map")
    for key in ("ArrowDown", "ArrowRight", "+"):
        page.tab.keyboard.press(key)
    before = sight(page)
    page.open_view("Numbers")
    page.open_view("Matrix")
    assert sight(page) == (pytest.approx(before[0], abs=0.01), before[1])
    page.open_view("Numbers")
    page.tab.click(".tokens [data-unit='2']")
    page.open_view("Matrix")
    seen, place = sight(page)
    assert seen[2] == pytest.approx(before[0][2], abs=0.01)
    assert place == ["2", "3"]  # where its row is largest, special tokens aside


def test_a_view_in_a_damaged_link_is_the_whole_map(server: str, visit: Any) -> None:
    for wrong in (
        "5",
        '{"i":"x","shape":[1201,1201]}',
        '{"i":1e9,"j":-5,"span":1e-9,"shape":[1201,1201],"place":{"i":-1}}',
    ):
        address = quote(f'{{"texts": [], "file": "file-0", "map": {wrong}}}')
        page = visit(f"{server}#{address}")
        traced(page, "a map")
        seen, place = sight(page)
        assert 0 <= seen[0] <= SIZE
        assert 0 <= seen[1] <= SIZE
        assert place == [None, None]


def test_a_text_too_long_for_an_address_is_there_after_a_reload(server: str, visit: Any) -> None:
    words = ["the bank of a river", *("x" * 110 + str(n) for n in range(300))]  # unknown, a token each
    page, text = visit(server), " ".join(words)
    traced(page, RIVER[:20])
    page.tab.fill("textarea", text)
    page.tab.keyboard.press("Control+Enter")
    traced(page, "the bank of a river x")
    page.open_view("Numbers")
    page.choose_head("3", "5")
    note = page.tab.wait_for_selector("p:has-text('too long for an address')").inner_text()
    assert "a reload of this tab shows it again" in note
    assert len(page.tab.evaluate("location.hash")) < 500
    page.tab.reload()
    traced(page, "the bank of a river x")
    assert page.tab.input_value("textarea") == text
    assert [page.tab.input_value(f"label:has-text('{name}') select") for name in ("Layer", "Head")] == ["3", "5"]
    link = f"{server}{page.tab.evaluate('location.hash')}"
    other = visit(link)
    assert "this tab no longer has it" in other.tab.wait_for_selector("[role=alert]").inner_text()
    other.tab.fill("textarea", RIVER)
    other.tab.keyboard.press("Control+Enter")
    traced(other, RIVER[:20])
    assert other.tab.locator("[role=alert]").count() == 0


def test_views_are_saved_as_pictures_under_the_servers_own_policy(server: str, visit: Any, tmp_path: Path) -> None:
    page = visited(visit, server)
    page.choose_head("1", "2")
    page.tab.wait_for_timeout(300)
    page.file = tmp_path / "live.html"
    page.tab.click("[data-more]")
    drawing, picture = save(page), save(page, "png")
    stands_alone(drawing)
    assert drawing.texts[:2] == [RIVER, "Numbers · layer 1, head 2 · What “write” looks at"]
    assert picture.name == "regard-numbers-layer-1-head-2-write.png"
    mean, much = apart(pixels(picture.content), drawn_alone(page, drawing, sharp=2))
    assert mean <= 2
    assert much <= 0.005
    page.tab.click("button:has-text('a map')")
    traced(page, "a map")
    page.tab.wait_for_selector(".map[data-state=exact]", timeout=60_000)
    page.tab.click("[data-more]")
    mapped = save(page)
    assert len(mapped.all("image")) == 1
    assert drawn_alone(page, mapped).std() > 20


@pytest.mark.parametrize("width", [390, 1000])
def test_everyone_can_use_it(server: str, visit: Any, width: int) -> None:
    page = visit(server, width)
    page.tab.emulate_media(reduced_motion="reduce")
    page.tab.evaluate(AXE.read_text())
    for state in ("form", "[data-head] [style]"):  # before an answer, and with one
        page.tab.wait_for_selector(state, timeout=60_000)
        page.tab.focus("textarea")  # on a phone, all that one may choose is shown while one types
        for name in ("another text", "Follow a word"):
            box = page.tab.locator(f"[aria-label='{name}']").bounding_box()
            assert box["x"] + box["width"] <= width
            assert width > 390 or min(box["width"], box["height"]) >= 44
    page.tab.click("[data-example]:has-text('Two senses')", timeout=60_000)
    page.tab.wait_for_selector("[data-head='1-0-0'] [style]", timeout=60_000)
    page.tab.focus("textarea")
    page.tab.click("[data-options]")
    page.suits_everyone(width)
    page.tab.click("[data-act]:has-text('cut')")
    page.tab.wait_for_selector(".cut", timeout=60_000)
    page.tab.wait_for_selector("[data-head='1-0-0'] [style]", timeout=60_000)
    page.suits_everyone(width)
    page.tab.click("button:has-text('take it back')")
    page.tab.click("[data-acts] >> nth=0", timeout=60_000)
    page.tab.click("[data-act]:has-text('why')")
    page.tab.wait_for_selector("text=back to the attention", timeout=60_000)
    page.suits_everyone(width)
    page.tab.fill("textarea >> nth=0", " ")
    page.tab.fill("textarea >> nth=1", " ")
    page.tab.click("button:text-is('Trace')")
    page.tab.wait_for_selector("form [role=alert]")
    page.suits_everyone(width)
    page.tab.click("button:has-text('a map')")
    page.tab.wait_for_selector(".map[data-state=exact]", timeout=60_000)
    page.tab.focus(".map")
    page.tab.keyboard.press("ArrowDown")
    page.tab.wait_for_selector("[data-weight]:not(:has-text('…'))")
    page.suits_everyone(width)


def test_a_click_while_a_matrix_is_gone_through_neither_begins_anew_nor_is_refused(
    serve: Any, visit: Any, tmp_path: Path
) -> None:
    query, key, value = torch.randn(3, 4, 24_000, 8).unbind()
    attend(query, key, value, causal=True).weights.save(tmp_path / "long.safetensors")
    _, port, token = serve("--open", str(tmp_path / "long.safetensors"))
    page = visit("about:blank")  # what is asked for is counted from the first request on
    passes, refused = [], []
    page.tab.on("request", lambda each: passes.append(each.url) if each.url.endswith("/pass") else None)
    page.tab.on("response", lambda each: refused.append(each.url) if each.status >= 400 else None)
    page.tab.goto(f"http://127.0.0.1:{port}/?token={token}")
    page.tab.wait_for_selector("[data-state=passing] ~ .below .state progress")
    for chosen in ("2", "mean", "1"):
        page.choose("head", chosen)
        page.tab.wait_for_timeout(150)
    assert page.tab.locator("[data-state=passing]").count() == 1
    page.tab.wait_for_selector("[data-state=exact]", timeout=60_000)
    assert (len(passes), refused) == (1, [])


def test_a_stopped_server_is_said_and_a_new_link_goes_on(visit: Any, serve: Any) -> None:
    process, port, token = serve(RIVER)
    page = visit(f"http://127.0.0.1:{port}/?token={token}")
    traced(page, RIVER[:20])
    page.choose("head", "3")
    process.kill()
    process.wait()
    page.tab.click("button:has-text('Trace')")
    page.tab.wait_for_selector("text=It was probably stopped")
    traced(page, RIVER[:20])
    page.errors.clear()  # Chromium tells of connections that are refused
    _, again, token = serve("--port", str(port), RIVER)
    assert again == port
    page.tab.click("button:has-text('try again')")
    page.tab.wait_for_selector("text=out of date")
    page.tab.fill(".closed input", "http://evil.example/?token=1")
    page.tab.click("button:has-text('continue')")
    page.tab.wait_for_selector("text=isn't a link from regard serve")
    page.tab.fill(".closed input", f"http://127.0.0.1:{port}/?token={token}")
    page.tab.click("button:has-text('continue')")
    traced(page, RIVER[:20])
    assert page.tab.locator("[data-choose=head]").input_value() == "3"


def test_numbers_are_fetched_only_when_they_are_looked_at(server: str, visit: Any) -> None:
    page = visit("about:blank")
    asked: list[str] = []
    page.tab.on("request", lambda request: asked.append(request.url))
    page.tab.goto(server)
    page.tab.wait_for_selector("[data-head] [style]", timeout=60_000)
    numbers = {url for url in asked if "/numbers/" in url}
    assert len(numbers) == 6 * 6 + 1  # queries, keys and sums of six layers, unusual links; nothing of the steps
    assert all(url.startswith((server.split("/?")[0], "blob:")) for url in asked)
    assert np.all([url.count("token=") == 0 for url in asked[1:]])


@pytest.mark.shared
@needs_stories
def test_a_model_goes_on_writing_and_an_ablation_changes_what_it_writes(visit: Any, serve: Any) -> None:
    text = "Once upon a time, there was a little"
    _, port, token = serve("--model", str(STORIES), text)
    page = visit(f"http://127.0.0.1:{port}/?token={token}")
    traced(page, text)
    page.tab.click("[data-options]")
    page.tab.fill("input[type=number]", "12")
    page.tab.click("button:has-text('Continue writing')")
    page.tab.wait_for_selector("[data-likely]", timeout=60_000)
    written = regard.load(STORIES).generate(text, max_new_tokens=12, do_sample=False)
    assert " ".join(written.text.split())[:80] in page.tab.title()
    page.tab.click("[data-head='0-0-1']")
    page.tab.click("[data-acts] >> nth=0")
    page.tab.click("[data-act]:text-is('cut layer 0, head 1')")
    page.tab.wait_for_selector(".cut")
    cut = regard.load(STORIES).generate(text, max_new_tokens=12, do_sample=False, interventions=[ablate(head(0, 1))])
    assert " ".join(written.new.split()) in said(page)
    assert " ".join(cut.new.split()) in said(page)
    assert cut.new != written.new


def test_the_chosen_token_is_patched_from_the_other_text(server: str, visit: Any, minilm: Any) -> None:
    page = visited(visit, server, "")
    page.tab.click("[aria-label='another text']")
    page.tab.fill("[aria-label='Text 2']", MONEY)
    page.tab.click("button:text-is('Trace')")
    page.tab.wait_for_selector("[data-choose=text]", timeout=60_000)
    page.open_view("Numbers")
    page.tab.select_option("[data-choose=layer]", index=2)
    bank, there = ([token.text for token in minilm.trace(text).tokens].index("bank") for text in (RIVER, MONEY))
    page.tab.click(f".tokens [data-unit='{bank}']")
    page.tab.click("[data-cut]:text-is('patch from text 2 after layer 2')")
    page.tab.wait_for_selector("h1:has-text('With “')", timeout=60_000)
    trace = minilm.trace(MONEY)
    after = minilm.trace(RIVER, interventions=[patch("hidden_states", layer=2, source=trace, at=bank, source_at=there)])
    states = [each.last_hidden_state[bank] for each in (minilm.trace(RIVER), after)]
    cosine = float(torch.cosine_similarity(*states, dim=0))
    assert f"“bank” ends at cosine {number(cosine)} to before" in said(page)


@needs_stories
def test_what_is_written_is_steered_on_the_page(serve: Any, visit: Any) -> None:
    model, text = regard.load(STORIES), "Once upon a time there was a little"
    _, port, token = serve("--model", str(STORIES))
    page = visit(f"http://127.0.0.1:{port}/?token={token}")
    page.tab.click("[data-example]:has-text('to continue')")
    page.tab.click("summary:has-text('Steer')", timeout=60_000)
    form = page.tab.wait_for_selector("form[aria-label=Steer]")
    for label, value in (("towards", "a big dog"), ("away", "a small bird"), ("strength", "3")):
        page.tab.fill(f"form[aria-label=Steer] label:has-text('{label}') input", value)
    form.query_selector("button").click()
    page.tab.wait_for_selector("button:has-text('write it unsteered')", timeout=60_000)
    both = model.trace(["a big dog", "a small bird"])
    push = regard.steer((both[0], both[1]), layer=len(both[0].attention) // 2, strength=3)
    options: dict[str, Any] = {"max_new_tokens": 20, "do_sample": False}
    found = generated(model.generate(text, **options), model.generate(text, interventions=[push], **options), str(push))
    assert found.findings()[0] in page.tab.inner_text("h1").replace("\u2068", "").replace("\u2069", "")
    assert str(STORIES) not in page.tab.content()
    page.tab.reload()
    page.tab.wait_for_selector("button:has-text('write it unsteered')", timeout=60_000)
    page.tab.click("button:has-text('write it unsteered')")
    page.tab.wait_for_selector("button:has-text('write it unsteered')", state="detached")


def test_a_score_is_split_where_it_is_looked_at_and_linked(server: str, visit: Any, minilm: Any) -> None:
    page = visited(visit, server, "")
    link = regard.see(RIVER, model=minilm).summary.highlights[0].links[0]
    page.tab.click("[data-acts] >> nth=0", timeout=60_000)
    page.tab.click(f"[data-act]:text-is('why “{link.query_text}” → “{link.key_text}”?')")
    page.tab.wait_for_selector("text=back to the attention", timeout=60_000)
    score = regard.score_sources(minilm, minilm.trace(RIVER), link.query, link.key, layer=link.layer, head=link.head)
    assert f"{abs(score.score - score.mean):.2f}" in said(page)
    with page.tab.expect_download() as download:
        page.tab.click("text=Save this page as a file")
    assert "regard-data" in Path(download.value.path()).read_text(encoding="utf-8")
    page.tab.click("text=back to the attention")
    page.tab.click("[aria-label='another text']")  # what is typed before the answer is there stays
    page.tab.fill("[aria-label='Text 1']", "We sat on the quiet river bank.")
    page.tab.fill("[aria-label='Text 2']", "We sat on the quiet money bank.")
    page.tab.fill("[aria-label='Follow a word']", "bank")
    page.tab.keyboard.press("Control+Enter")
    page.tab.wait_for_selector("[data-sentence='1']", timeout=60_000)
    page.tab.click("[data-acts] >> nth=0")
    page.tab.click("[data-act]:text-is('which states make “bank” differ?')", timeout=60_000)
    page.tab.wait_for_selector("text=Fraction of the clean outcome restored", timeout=60_000)


@needs_stories
def test_two_models_read_one_text_and_are_named(serve: Any, visit: Any) -> None:
    _, port, token = serve("--model", str(STORIES), "--model", "all-MiniLM-L6-v2")
    page = visit(f"http://127.0.0.1:{port}/?token={token}")
    page.tab.select_option("label:has-text('compared with') select", label="all-MiniLM-L6-v2")
    page.tab.click("button:text-is('Trace')")
    page.tab.wait_for_selector(".topbar:has-text('stories260K and all-MiniLM-L6-v2')", timeout=60_000)
    page.tab.wait_for_selector("[data-choose=text] option:has-text('all-MiniLM-L6-v2')", state="attached")
    assert "In all-MiniLM-L6-v2, “" in said(page)
