import re
from dataclasses import replace

from regard.text.tokens import Token
from regard.trace.trace import Trace
from regard.web.add_traces import add_trace
from regard.web.page import FORMAT, VERSION, Page, status_lines, text_data
from tests.support import ROOT

CONTRACT = (ROOT / "web" / "src" / "data" / "format.ts").read_text(encoding="utf-8")
TOKENS = [Token(1, "[CLS]", 0, 0, None, True), Token(2, "play", 0, 4, 0, False), Token(3, "ing", 4, 7, 0, False)]


def fields(interface: str) -> set[str]:
    """The names of an interface's fields in the contract between library and page."""
    body = CONTRACT.split(f"export interface {interface} {{")[1].split("\n}")[0]
    return set(re.findall(r"^  (\w+): ", body, re.M))


def test_the_data_has_the_fields_of_the_contract(bank: list[Trace]) -> None:
    page = Page(" a \n title ")
    add_trace(page, bank[0], "text 1")
    data = page.data()
    assert set(data) == fields("Page")
    assert data["title"] == "a title"
    assert f'export const FORMAT = "{FORMAT}"' in CONTRACT
    assert f"export const VERSION = {VERSION};" in CONTRACT
    for interface, given in (
        ("Opening", page.opening),
        ("Text", page.texts[0]),
        ("Call", page.calls[0]),
        ("HeadScores", page.scores[0]),
    ):
        assert set(given) == fields(interface), interface


def test_the_status_says_how_exact_the_page_is_and_what_was_left_out(bank: list[Trace]) -> None:
    page = Page("", layers=(2,), heads=(0, 3))
    add_trace(page, bank[0], "text 1")
    strange = replace(bank[0].status, unknown=("☃",), notes=("a note",))
    lines = status_lines([bank[0].status, strange], page)
    assert lines[0] == "Computed with all-MiniLM-L6-v2 (float32, cpu), attention by sdpa-cpu."
    assert re.match(r"Checked: weights within \d\.\de-\d\d of .* \(\d+ rows\)\.", lines[1])
    assert f"at most {page.largest_difference():.1e}." in lines[2]
    assert "int16" in lines[2]
    assert lines[3:] == [
        "This page has only layers 2.",
        "This page has only heads 0, 3, renumbered from 0.",
        "Unknown to the tokenizer: “☃”.",
        "A note.",
    ]


def test_a_text_has_its_tokens_by_columns() -> None:
    assert text_data("text 1", "playing", TOKENS, {2}) == {
        "name": "text 1",
        "text": "playing",
        "direction": "ltr",
        "tokens": {
            "text": ["[CLS]", "play", "ing"],
            "start": [0, 0, 4],
            "end": [0, 4, 7],
            "special": [0],
            "sinks": [2],
            "word": [None, 0, 0],
        },
    }


def test_a_blank_before_a_text_is_not_its_first_letter() -> None:
    tokens = [
        Token(n, text, start, start + 1, 0, False, "F x")
        for n, (text, start) in enumerate(((" ", 0), ("F", 0), (" ", 1)))
    ]
    data = text_data("text 1", "F x", tokens)["tokens"]
    assert isinstance(data, dict)
    assert data["end"] == [0, 1, 2]
