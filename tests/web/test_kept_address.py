"""What is looked at stands in the address of a page in a file: a link or a reload shows the same again."""

from typing import Any
from urllib.parse import quote

import pytest

from regard.trace.trace import Trace

pytestmark = pytest.mark.browser
LOOKS = """() => [document.querySelector("[role=tab][aria-selected=true]").innerText,
    ...["text", "layer", "head"].map((one) => document.querySelector(`[data-choose=${one}]`)?.selectedOptions[0].text),
    document.querySelector("[aria-selected=true][data-unit]")?.innerText]"""


def test_a_link_shows_the_same_again(page_of: Any, bank: list[Trace]) -> None:
    page = page_of(bank, overview=True)
    opened, first = page.tab.url, page.tab.evaluate(LOOKS)
    assert "#" not in opened
    page.open_view("Numbers")
    page.choose("text", "1")
    page.choose_head("3", "5")
    page.open_view("Steps")
    page.tab.click("[data-unit='7']")
    page.tab.wait_for_url("**steps**")
    looked = page.tab.evaluate(LOOKS)
    assert looked == ["Steps", looked[1], "3", "5", bank[1].tokens[7].text]
    other = page.tab.context.new_page()
    other.goto(page.tab.url)
    other.wait_for_selector("[aria-selected=true][data-unit]")
    assert other.evaluate(LOOKS) == looked
    for wrong in ("top", "{", '{"view":"lines","call":99,"choices":{}}', '{"view":1,"call":0,"choices":null}'):
        other.goto("about:blank")
        other.goto(f"{opened}#{quote(wrong)}")
        other.wait_for_selector("[data-main]")
        assert other.evaluate(LOOKS) == first
    other.close()
