"""The first view: sentences with what stands out in them, every head, and how a followed word moves; in a browser."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.explain.wording import number
from regard.models.model import Model
from regard.questions.see.answer import Seen
from regard.trace.trace import Trace
from tests.web.conftest import FULL
from tests.web.test_page import fields

pytestmark = pytest.mark.browser
BANK = "We sat on the grassy bank of the stream.", "I deposited my savings in the bank."
ANIMAL = "The animal didn't cross the street because it was too tired."
WORDS = ["river", "water", "money", "loan", "deposit"]
CHOSEN = "[...document.querySelectorAll('[data-token][aria-selected=true]')].map(each => each.textContent)"


@pytest.fixture(scope="module")
def two(minilm: Model) -> Seen:
    """Two texts with a followed word and reference words."""
    return regard.see(BANK, "bank", references=WORDS, model=minilm)


@pytest.fixture(scope="module")
def one(minilm: Model) -> Seen:
    """A text without a word."""
    return regard.see(ANIMAL, model=minilm)


def shown_weights(page: Any, text: int) -> set[str]:
    return set(page.tab.locator(f"[data-weight='{text}']").all_text_contents())


def row(traces: Any, text: int, layer: int, head: int | None, token: int) -> list[float]:
    weights = traces[text].attention[layer][:, token]
    own: list[float] = (weights.mean(0) if head is None else weights[head]).tolist()
    return own


def darkness(style: str) -> int:
    return -sum(map(int, re.findall(r"\d+", style)))


def test_every_number_of_two_texts_is_the_library_s(first_view: Any, two: Seen) -> None:
    page = first_view(two)
    assert set(two.page().overview) == fields("OfTexts")
    summary = two.summary
    page.tab.click("[data-fold]")
    texts = page.tab.inner_text("header")
    for sentence in two.findings():
        assert re.sub("[\u2068\u2069]", "", sentence) in re.sub("[\u2068\u2069]", "", " ".join(texts.split()))
    weaker = 0  # links, which aren't drawn
    for n, occurrence in enumerate(summary.occurrences):
        apart = {*occurrence.tokens, *(sink.token for sink in summary.sinks[n])}
        own = row(two.traces, n, occurrence.link.layer, occurrence.link.head, occurrence.tokens[0])
        words = [w for k, w in enumerate(own) if k not in apart and not two.traces[n].tokens[k].special]
        weaker += sum(0.05 <= weight < 0.1 for weight in words)
    assert weaker > 1
    assert page.tab.inner_text(".names").endswith(f"; not drawn: {weaker} weaker links")
    for n, occurrence in enumerate(summary.occurrences):
        link = occurrence.link
        numbers = f"{number(link.weight)}, expected {number(link.expected)}"
        assert page.tab.inner_text(f"[data-caption='{n}']").endswith(numbers)
        told = {number(w) for w in row(two.traces, n, link.layer, link.head, occurrence.tokens[0])}
        assert number(link.weight) in shown_weights(page, n) <= {"<0.01", *told}
        page.tab.locator("[data-choose=score]").nth(n).select_option("strongest link")
        for head in range(12):
            own = row(two.traces, n, 2, head, occurrence.tokens[0])
            sides = [*occurrence.tokens, 0, len(own) - 1]
            most = max(weight for k, weight in enumerate(own) if k not in sides)
            assert page.tab.get_attribute(f"[data-head='{n}-2-{head}']", "title").endswith(f" {number(most)}")
        page.tab.locator("[data-choose=score]").nth(n).select_option("most unusual link")
        cell = page.tab.locator(f"[aria-selected=true][data-head^='{n}-']")  # of the link that the headline names
        assert cell.get_attribute("data-head") == f"{n}-{link.layer}-{link.head}"
        shades = [page.tab.get_attribute(f"[data-head='{n}-{k // 12}-{k % 12}'] span", "style") for k in range(72)]
        assert max(range(72), key=lambda k: darkness(shades[k])) == 12 * link.layer + link.head  # the darkest is framed
    for reference in summary.references:
        place = f"[data-cosine='{reference.word} {int(reference.occurrence) - 1}']"
        assert number(reference.last_hidden_state) in page.tab.text_content(place)
    plus, minus = summary.difference.words
    ends = {(each.word, each.occurrence): each.last_hidden_state for each in summary.references}
    for n in (0, 1):
        cosines = ", ".join(f"{word} {number(ends[word, str(n + 1)])}" for word in (plus, minus))
        assert page.tab.text_content(f"svg [data-number='{n}']") == cosines
    page.tab.click(".steps [data-layer='2']")
    for n, occurrence in enumerate(summary.occurrences):
        told = {number(w) for w in row(two.traces, n, 2, None, occurrence.tokens[0])}
        assert shown_weights(page, n) <= {"<0.01", *told}
    states = {(each.word, each.occurrence): each.states[3] for each in summary.references}
    for word in WORDS:
        assert number(states[word, "2"]) in page.tab.text_content(f"[data-cosine='{word} 1']")


def test_every_number_of_one_text_is_the_library_s(first_view: Any, one: Seen) -> None:
    page = first_view(one)
    links = one.summary.highlights[0].links
    rows = page.tab.locator("[data-link]")
    said = rows.all_inner_texts()
    for link in links:
        numbers = f"{number(link.weight)} {number(link.expected)} layer {link.layer}, head {link.head}"
        words = f"{link.query_text} → {link.key_text} {numbers}"
        assert words.split() in [each.split() for each in said]
    pairs = [each.split("\n")[0] for each in said]
    own = [pair for pair in pairs if pair.startswith(f"{links[0].query_text} → ")]
    assert pairs[: len(own)] == own  # those of the chosen token first
    assert {f"{links[0].query_text} → {link.key_text}" for link in links if link.query == links[0].query} <= {*own}
    told = {number(link.weight) for link in links if link.query == links[0].query}
    assert len(told) == 2
    assert told <= shown_weights(page, 0)
    rows.filter(has_text=f"{links[2].query_text} → {links[2].key_text}").first.click()
    page.tab.wait_for_timeout(100)
    own = {number(w) for w in row(one.traces, 0, links[2].layer, links[2].head, links[2].query)}
    assert number(links[2].weight) in shown_weights(page, 0) <= {"<0.01", *own}
    assert page.tab.inner_text("[data-caption] b") == f"layer {links[2].layer}, head {links[2].head}"


def test_the_range_of_the_difference_is_that_of_the_sentences(two: Seen) -> None:
    found, neutral = two.summary.difference, {each.word: each for each in two.summary.neutral}
    plus, minus = (neutral[word] for word in found.words)
    for n in range(7):
        assert found.mean[n] == pytest.approx(plus.mean[n] - minus.mean[n], abs=1e-9)
        assert (
            plus.low[n] - minus.high[n] <= found.low[n] <= found.mean[n] <= found.high[n] <= plus.high[n] - minus.low[n]
        )
    assert set(found.words) <= set(WORDS)


@pytest.mark.parametrize("case", ["two", "one"])
def test_it_fits_and_the_word_is_in_one_column(first_view: Any, case: str, two: Seen, one: Seen) -> None:
    page = first_view(two if case == "two" else one)
    size = "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
    assert page.tab.evaluate(size) == [1300, 850]
    assert page.tab.inner_text("role=tab[selected=true]") == "Overview"
    middle = "each => { const box = each.getBoundingClientRect(); return box.left + box.width / 2 }"
    places = page.tab.evaluate(f"[...document.querySelectorAll('[data-token][aria-selected=true]')].map({middle})")
    assert max(places) - min(places) < 1
    assert page.tab.locator("[data-token][tabindex='0']").count() == page.tab.locator("[role=listbox]").count()
    assert page.tab.locator("[data-head][tabindex='0']").count() == page.tab.locator("[role=grid]").count()
    assert page.violations() == []
    page.tab.emulate_media(color_scheme="dark")
    page.tab.wait_for_selector(".regard.dark")
    ground = page.tab.evaluate("getComputedStyle(document.querySelector('.regard')).backgroundColor")
    assert ground == "rgb(17, 19, 26)"
    page.tab.emulate_media(color_scheme="light")
    page.tab.set_viewport_size({"width": 390, "height": 844})
    page.tab.wait_for_timeout(200)
    assert page.tab.evaluate(size)[0] == 390
    assert page.tab.locator(".arcs path").count() > 0
    page.suits_paper()
    assert not page.tab.is_visible(".control")


def test_keys_pointer_and_address(first_view: Any, one: Seen, two: Seen) -> None:
    page = first_view(two)
    tab = page.tab
    assert tab.evaluate(CHOSEN) == ["bank", "bank"]
    tab.keyboard.press("ArrowLeft")
    assert tab.evaluate(CHOSEN) == ["grassy", "bank"]
    tab.keyboard.press("2")
    tab.keyboard.press("ArrowLeft")
    assert tab.evaluate(CHOSEN) == ["grassy", "the"]
    tab.keyboard.press("ArrowUp")  # from the last layer
    assert tab.locator(".steps [data-layer='4'][aria-pressed=true]").count() == 1
    tab.focus("[data-sentence='0'] [data-token='5']")
    tab.keyboard.press("ArrowRight")
    assert tab.evaluate(CHOSEN) == ["bank", "the"]
    assert tab.evaluate("document.activeElement.textContent") == "bank"
    tab.focus("[data-head='1-0-0']")
    for key in ("ArrowRight", "ArrowDown", "Enter"):
        tab.keyboard.press(key)
    assert tab.evaluate("document.activeElement.dataset.head") == "1-1-1"
    assert tab.locator("[data-head][aria-selected=true]").count() == 2
    tab.click("[data-side=receives]")
    captions = tab.locator("[data-caption]").all_inner_texts()
    assert all(each.startswith("layer 1, head 1") for each in captions)
    tab.hover("[data-head='0-3-3']")
    assert tab.inner_text("[data-caption='0'] b") == "layer 3, head 3"
    tab.mouse.move(2, 2)
    assert tab.locator("[data-caption]").all_inner_texts() == captions
    said = json.loads(page.tab.evaluate("decodeURIComponent(location.hash.slice(1))"))
    assert (said["view"], said["head"], said["choices"]["overview"]) == ("overview", 1, "chosen")
    tab.reload()
    tab.wait_for_selector(FULL)
    tab.wait_for_timeout(100)
    assert (tab.evaluate(CHOSEN), tab.locator("[data-caption]").all_inner_texts()) == (["bank", "the"], captions)
    tab.keyboard.press("Escape")
    assert "layer 1, head 1 ·" not in tab.inner_text("[data-caption='0']")


def test_it_plays_and_moves_unless_motion_is_unwanted(first_view: Any, one: Seen) -> None:
    page = first_view(one, motion=True)
    path = "document.querySelector('.arcs path').getAttribute('d')"
    page.tab.wait_for_timeout(1600)
    page.tab.click(".steps [data-layer='5']")
    first = page.tab.evaluate(path)
    page.tab.wait_for_timeout(700)
    assert page.tab.evaluate(path) != first
    page.tab.emulate_media(reduced_motion="reduce")
    page.tab.click(".steps [data-layer='1']")
    page.tab.wait_for_timeout(30)
    first = page.tab.evaluate(path)
    page.tab.wait_for_timeout(300)
    assert page.tab.evaluate(path) == first
    page.tab.keyboard.press("Escape")
    page.tab.click("text=Play the layers")
    page.tab.wait_for_selector(".steps [data-layer='1'][aria-pressed=true]", timeout=5000)
    page.tab.click("text=Stop")
    page.tab.click("text=what stands out")
    assert page.tab.inner_text("[data-caption] b") == "framed: the head of each arc"


def test_other_views_are_reached_and_a_picture_is_saved(first_view: Any, two: Seen, tmp_path: Path) -> None:
    page = first_view(two)
    assert page.tab.locator("role=tab").all_inner_texts() == ["Overview", "Matrix", "Numbers", "Steps"]
    page.tab.click("[data-more]")
    with page.tab.expect_download() as waited:
        page.tab.click("[data-save=svg]")
    waited.value.save_as(tmp_path / "overview.svg")
    picture = (tmp_path / "overview.svg").read_text("utf-8")
    assert "grassy" in picture
    drawn = page.tab.locator(".arcs path:not(.none), [data-curve]").count()
    assert picture.count("<path") >= drawn == 4  # an arc and a curve of each text


def test_one_of_several_texts_is_chosen(page_of: Any, bank: list[Trace]) -> None:
    page = page_of(bank, overview=True)
    page.tab.select_option("[data-choose=text]", "1")
    assert page.tab.locator("[data-sentence]").count() == 1
    assert "money" in page.tab.inner_text("[data-sentence='0']")
    assert page.tab.inner_text("[data-caption] b") == "framed: the head of each arc"


def test_of_three_texts_the_two_that_differ_most_are_shown(page_of: Any, minilm: Model, bank: list[Trace]) -> None:
    same = minilm.trace("He sat on the bank of a wide river.")
    references = [minilm.trace(word) for word in ("river", "money")]
    page = page_of([same, bank[0], bank[1]], word="bank", references=references, overview=True)
    assert page.tab.locator("[data-sentence] [aria-selected=true]").all_inner_texts() == ["bank", "bank"]
    assert page.tab.locator("[data-sentence] .number, .other > b").all_inner_texts() == ["1", "3", "2"]
    third = page.tab.inner_text(".left .other")  # with its own most unusual link
    assert third.startswith(f"2 {bank[0].text}")
    said = re.search(r"looks at (\S+) ([\d.]+), layer (\d), head (\d+)", third.replace("\n", " "))
    query, (layer, head) = bank[0].word("bank")[0].tokens[0], map(int, said.groups()[2:])
    key = next(k for k, token in enumerate(bank[0].tokens) if token.text == said[1])
    assert said[2] == number(float(bank[0].attention[layer][head, query, key]))
    page.tab.click(".left .other")  # is drawn instead
    assert page.tab.locator("[data-sentence] .number").all_inner_texts() == ["1", "2"]
    assert page.tab.inner_text(".left .other").startswith(f"3 {bank[1].text}")
    page = page_of([same, *bank[:2]], word="bank", overview=True)
    pairs = page.tab.locator(".right [data-curve] title").all_text_contents()
    assert sorted(pairs) == [f"texts {both}" for both in ("1 & 2", "1 & 3", "2 & 3")]
    assert page.tab.locator("[data-sentence] .number, [role=grid]").count() == 6  # all three are drawn


def test_two_occurrences_in_a_text_share_its_sentence(first_view: Any, minilm: Model) -> None:
    answer = regard.see("The bank of the river is far from the bank that lends money.", "bank", model=minilm)
    page = first_view(answer)
    assert page.tab.locator("[data-sentence]").count() == 1
    assert page.tab.locator("[aria-selected=true][data-token]").all_inner_texts() == ["bank", "bank"]
    assert page.tab.locator(".arcs .mark").all_text_contents() == ["1", "2"]
    for n, occurrence in enumerate(answer.summary.occurrences):
        link = occurrence.link
        own = row(answer.traces, 0, link.layer, link.head, occurrence.tokens[0])
        assert number(link.weight) in shown_weights(page, n) <= {"<0.01", *map(number, own)}
    (pair,) = answer.summary.pairs
    assert number(pair.hidden_states[-1]) in page.tab.text_content("svg [data-number='0']")
    colours = page.tab.locator("h1 [data-told=word]").evaluate_all("all => all.map(each => each.className)")
    assert ["t1" in names.split() for names in colours] == [False, True]
    page.tab.keyboard.press("2")
    page.tab.click("[data-token='5']")
    chosen = page.tab.locator("[aria-selected=true][data-token]")
    chosen = chosen.evaluate_all("all => all.map(each => each.dataset.token)")
    assert chosen == [str(answer.summary.occurrences[0].tokens[0]), "5"]
    page.tab.evaluate("document.activeElement.blur()")
    page.tab.keyboard.press("1")
    page.tab.keyboard.press("ArrowRight")
    assert page.tab.locator("[aria-selected=true][data-token]").all_inner_texts() == ["of", "river"]
    for occurrence in answer.summary.occurrences:  # a click on an occurrence chooses it again
        page.tab.click(f"[data-token='{occurrence.tokens[0]}']")
    assert page.tab.locator("[aria-selected=true][data-token]").all_inner_texts() == ["bank", "bank"]
    assert page.violations() == []


def test_a_coloured_word_of_the_headline_chooses_its_token_and_brackets_its_head(first_view: Any, two: Seen) -> None:
    page = first_view(two)
    link = two.summary.occurrences[0].link
    page.tab.click(".lead [data-told=word] >> nth=0")
    assert page.tab.locator("[data-sentence='0'] [aria-selected=true]").inner_text() == link.text
    page.tab.click(".lead [data-told=aside] >> nth=0")
    assert page.tab.inner_text("[data-caption='0'] b") == f"layer {link.layer}, head {link.head}"
