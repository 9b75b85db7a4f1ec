"""A word is found in every view: / goes to the field, Enter to the next place, and the view goes there."""

from typing import Any

import pytest

from regard.trace.trace import Trace

pytestmark = pytest.mark.browser


def seek(page: Any, word: str) -> str:
    """Go to the field by its key and type; gives what stands beside it."""
    page.tab.keyboard.press("/")
    assert page.tab.evaluate("document.activeElement.matches('[data-find]')")
    page.tab.keyboard.type(word)
    return page.tab.inner_text("[data-count]")


def test_in_texts_the_token_is_chosen_and_comes_into_sight(page_of: Any, bank: list[Trace]) -> None:
    page = page_of(bank)
    names = [token.text for token in bank[0].tokens]
    assert seek(page, "BANK") == "1 of 2"  # one of each text
    assert page.tab.inner_text("[role=option][aria-selected=true] >> nth=0") == "bank"
    page.tab.wait_for_selector(f"caption:has-text('What “{names[names.index('bank')]}” looks at')")
    page.tab.keyboard.press("Enter")
    assert page.tab.inner_text("[data-count]") == "2 of 2"
    assert page.tab.input_value("[data-choose=text]") == "1"
    page.tab.keyboard.press("Shift+Enter")
    assert page.tab.input_value("[data-choose=text]") == "0"
    page.open_view("Matrix")
    assert page.tab.inner_text("[data-count]") == ""
    assert seek(page, "river") in ("1 of 1", "not here")
    chosen = page.tab.wait_for_selector("[data-query]").get_attribute("data-query")
    if "river" in names:
        assert names[int(chosen or -1)] == "river"
    assert seek(page, "zebra") == "not here"


def test_a_long_text_is_brought_to_the_word(page_of: Any, minilm: Any) -> None:
    text = "one two three four five six seven eight nine ten " * 24 + "the zebra ran"
    trace = minilm.trace(text)
    page = page_of(trace)
    at = [token.text for token in trace.tokens].index("zebra")
    for view in ("Numbers", "Steps"):
        page.open_view(view)
        assert seek(page, "zebra") == "1 of 1"
        option = page.tab.locator("[role=option][aria-selected=true]").first
        assert option.inner_text() == "zebra"
        box, height = option.bounding_box(), page.tab.viewport_size["height"]
        assert 0 <= box["y"] <= height - box["height"]
    page.open_view("Matrix")
    seek(page, "zebra")
    assert int(page.tab.wait_for_selector("[data-query]").get_attribute("data-query")) == at
