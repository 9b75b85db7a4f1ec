"""The text itself, coloured: every number in the DOM is the library's, by mouse and by keyboard alone."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from regard.text.tokens import Turn, tokens_in_turns
from tests.web.tables import read_number
from tests.web.words import LONG_WORDS, longest, of_words, words_of

pytestmark = pytest.mark.browser


def shown(within: Any) -> dict[int, float]:
    """The numbers of the table of a text, by unit, once they are those of what was chosen last.

    within: the page, or a part of it.
    """
    within.locator("[data-value]").first.wait_for()
    getattr(within, "page", within).wait_for_timeout(150)
    if within.locator("button:has-text('all ')").count():
        within.locator("button:has-text('all ')").click()
    cells = within.locator("[data-value]")
    return {
        int(cell.get_attribute("data-value")): read_number(cell.inner_text())
        for cell in [cells.nth(n) for n in range(cells.count())]
    }


def choose_token(tab: Any, unit: int) -> None:
    """Choose a token by a click, where it is not chosen already."""
    token = tab.locator(f".tokens [data-unit='{unit}']")
    if token.get_attribute("aria-selected") != "true":
        token.click()


def same(found: dict[int, float], expected: Any, within: float = 1e-4) -> None:
    assert sorted(found) == list(range(len(expected)))
    numbers = torch.tensor([found[n] for n in range(len(expected))])
    assert float((numbers - expected).abs().max()) <= within + 5e-5  # four decimals are shown


def test_hovering_shows_what_a_token_looks_at_in_layer_and_head(page_of: Any, bank: Any) -> None:
    page = page_of(bank[0])
    page.choose_head("3", "5")
    choose_token(page.tab, 2)
    page.tab.hover("[data-unit='11']")
    page.tab.wait_for_selector("caption:has-text('What “bank” looks at')")
    row = bank[0].attention[3][5, 11]
    assert page.number("[data-value]") == pytest.approx(float(row.max()), abs=2e-4)  # the largest stands first
    page.tab.hover("h1")
    page.tab.wait_for_selector("caption:has-text('What “a” looks at')")  # the chosen one again
    choose_token(page.tab, 11)
    same(shown(page.tab), row)
    assert page.number("tfoot td:nth-child(3)") == pytest.approx(1, abs=1e-4)


def test_a_token_of_a_chat_is_named_with_its_message(page_of: Any, bank: Any) -> None:
    """Of one word, of several together, on the map and where the pointer rests; the template's stay as they are."""
    turns = Turn("user", 0, 5, (1, 2)), Turn("assistant", 19, 49, (5, 6, 11))
    page = page_of(replace(bank[0], tokens=tokens_in_turns(bank[0].tokens, turns), turns=turns))
    choose_token(page.tab, 11)
    page.tab.wait_for_selector("caption:has-text('What “bank (assistant 1)” looks at')")
    if page.tab.locator("button:has-text('all ')").count():
        page.tab.click("button:has-text('all ')")
    cells = page.tab.evaluate(
        "() => [...document.querySelectorAll('tbody tr')].map((row) => row.innerText.split('\t'))"
    )
    names = {int(row[1]): row[0] for row in cells}
    expected = {1: " (user 1)", 2: " (user 1)", 5: " (assistant 1)", 6: " (assistant 1)", 11: " (assistant 1)"}
    assert names == {n: token.text + expected.get(n, "") for n, token in enumerate(bank[0].tokens)}
    assert page.tab.get_attribute("[data-unit='2']", "title") == f"{bank[0].tokens[2].text} (user 1)"
    assert page.tab.inner_text("[data-unit='2']") == bank[0].tokens[2].text
    page.choose("head", "5")
    page.open_view("Matrix")
    page.tab.locator(".map canvas").focus()
    page.tab.wait_for_selector(".readout:has-text('“bank (assistant 1)” (11) looks at')")


def test_words_are_the_mean_of_their_tokens_on_the_sum_of_the_others(page_of: Any, minilm: Any) -> None:
    trace = minilm.trace(LONG_WORDS)
    words = words_of(trace)
    long = longest(words)
    page = page_of(trace)
    page.choose_head("2", "mean")
    page.tab.check("text=whole words")
    choose_token(page.tab, long)
    weights = of_words(trace.attention[2].dense().mean(0), words)
    same(shown(page.tab), weights[long])
    page.tab.check("text=is looked at by")
    choose_token(page.tab, long)
    same(shown(page.tab), weights[:, long])


def test_keys_alone_choose_text_and_token(page_of: Any, bank: Any) -> None:
    page = page_of(list(bank), word="bank", width=700)
    page.choose_head("1", "mean")
    text = page.tab.locator("section[aria-label='text 2']")
    text.locator("[data-unit][tabindex='0']").focus()
    page.tab.keyboard.press("Home")
    for _ in range(4):
        page.tab.keyboard.press("ArrowRight")
    assert text.locator("[aria-selected=true][data-unit='4']").count() == 1
    assert page.tab.evaluate("document.activeElement.dataset.unit") == "4"
    assert page.tab.locator("[data-choose=text]").input_value() == "1"
    same(shown(text), bank[1].attention[1][:, 4].mean(0))


def test_two_texts_stand_side_by_side_and_the_same_word_is_chosen_in_both(page_of: Any, bank: Any) -> None:
    page = page_of(list(bank), word="bank", width=1300)
    at = [trace.word("bank")[0].tokens[0] for trace in bank]

    def held(layer: int, tokens: list[int]) -> None:
        page.tab.wait_for_timeout(300)
        for n, (trace, token) in enumerate(zip(bank, tokens, strict=True), 1):
            text = page.tab.locator(f"section[aria-label='text {n}']")
            assert text.locator("[aria-selected=true]").get_attribute("data-unit") == str(token)
            weights = trace.attention[layer][:, token].mean(0)
            for cell in text.locator("[data-value]").all():
                shown = read_number(cell.inner_text())
                assert shown == pytest.approx(float(weights[int(cell.get_attribute("data-value"))]), abs=3e-4)

    page.choose_head("0", "mean")
    held(0, at)
    bars = page.tab.locator("section[aria-label^='text'] tr:has([data-value])").evaluate_all(
        "rows => rows.map(row => [Number(row.querySelector('[data-value]').innerText), "
        "row.querySelector('.bar span').getBoundingClientRect().width])"
    )
    longest = max(bars)[1]
    assert all(
        width == pytest.approx(longest * value / max(bars)[0], abs=0.5) for value, width in bars
    )  # in both texts
    page.choose("layer", "3")
    held(3, at)
    other = next(
        n for n, token in enumerate(bank[1].tokens) if token.text not in [each.text for each in bank[0].tokens]
    )
    page.tab.click(f"section[aria-label='text 2'] [data-unit='{other}']")  # which text 1 does not have
    page.tab.mouse.move(1, 1)
    held(3, [at[0], other])


def test_contributions_are_weight_times_the_length_of_what_the_value_becomes(page_of: Any, bank: Any) -> None:
    trace = bank[0]
    page = page_of(trace)
    page.choose_head("4", "7")
    page.tab.check("text=size of contribution")
    choose_token(page.tab, 11)
    weights, value = trace.attention[4][7, 11], trace.values[4][7]
    output = trace.attention_outputs[4]
    slice_of_head = output.weight.T.view(12, 32, 384)[7]
    expected = weights * (value @ slice_of_head).norm(dim=1)
    # lengths are carried to three figures
    same(shown(page.tab), expected, within=1.2e-3 * float(expected.max()))


def test_text_is_text_whatever_it_holds(page_of: Any, minilm: Any) -> None:
    text = "<b>bold</b> <script>alert(1)</script> <!-- \x1b[31m red $x^2$ &amp; </script>"
    page = page_of(minilm.trace(text))
    assert page.tab.locator("b").count() == 0
    said = page.tab.inner_text(".tokens")
    for piece in ("script", "alert", "amp", "$"):
        assert piece in said


def test_right_to_left_and_chinese_texts_flow_as_they_should(page_of: Any, minilm: Any) -> None:
    page = page_of(minilm.trace(["שלום עולם טוב", "我們喜歡河"]), width=700)
    hebrew, chinese = (page.tab.locator(f"section[aria-label='text {n}']") for n in (1, 2))
    assert hebrew.locator(".tokens").get_attribute("dir") == "rtl"
    at = [hebrew.locator(f"[data-unit='{n}']").bounding_box()["x"] for n in (1, 4)]
    assert at[0] > at[1]
    assert chinese.locator(".tokens").get_attribute("dir") == "ltr"


@pytest.mark.parametrize("width", [390, 1000])
def test_it_is_for_everyone_and_for_a_phone(page_of: Any, bank: Any, width: int) -> None:
    page = page_of(list(bank), word="bank", width=width)
    page.tab.hover("[data-unit='3']")
    page.tab.wait_for_selector("[data-value]")
    page.suits_everyone(width)


def test_without_javascript_the_file_says_what_it_is(chromium: Any, bank: Any, page_of: Any) -> None:
    file = page_of(bank[0], word="bank").file
    context = chromium.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(file.as_uri())
    said = tab.inner_text("body")
    context.close()
    assert "JavaScript" in said
    assert "river" in said  # the sentences


def test_the_page_asks_the_network_for_nothing(page_of: Any, bank: Any) -> None:
    page = page_of(bank[0])
    policy = page.tab.get_attribute("meta[http-equiv]", "content")
    assert "default-src 'none'" in policy
    assert "http" not in policy
