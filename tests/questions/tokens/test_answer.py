"""What is kept of tokens: a row each, with the text that its characters are."""

import json
from pathlib import Path

import pytest

from regard.display.panels import Strip, Table
from regard.display.terminal_parts import plain_lines_of_parts
from regard.display.terminal_tables import COLOURS, coloured
from regard.questions.tokens.answer import ROWS, SEVERAL, Tokens, tokens
from tests.said.reading import names_in, numbers_in, shown_with_its_numbers

TEXT = "He went to the river bank, and to the tokenisation of riverbanks. " * 12


def test_rows_and_json(tmp_path: Path) -> None:
    texts = ["fishing on a riverbank", "a bank, a bank"]
    found = tokens(texts)
    rows = found.rows()
    assert [row["string"] for row in rows if row["text"] == 1][1:-1] == ["fishing", "on", "a", "river", "##bank"]
    for row in rows:
        own = texts[int(row["text"]) - 1][int(row["start"]) : int(row["end"])]
        assert own == str(row["string"]).removeprefix("##") or row["special"]
    assert {row["times"] for row in rows if row["text"] == 2} == {1, 2}
    data = json.loads(json.dumps(found.to_json(tmp_path / "a.json")))
    assert (data["format"], data["tokenizer"], data["texts"]) == ("regard tokens", "the default model", texts)
    assert [[token["id"] for token in each] for each in data["tokens"]] == [
        [row["id"] for row in rows if row["text"] == n] for n in (1, 2)
    ]
    assert data["findings"] == found.findings()


@pytest.mark.parametrize("width", [60, 80, 140])
@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_one_screen(minilm, width: int, count: int) -> None:
    own = minilm.trace(TEXT).tokens
    lines = plain_lines_of_parts(Tokens("a model", [(TEXT, own)] * count).shown(width), width)
    assert max(map(len, lines)) <= width
    assert len(lines) <= 39 or width < 80  # and a last one, which says how to see more
    out = " ".join(" ".join(lines).split())
    shown = min(count, 3)
    more = f"{shown * (len(own) - (ROWS if shown == 1 else SEVERAL) // shown):,} more tokens"
    assert f"Not shown: {more}{' and 4 more texts' * (count == 7)}" in out


def test_each_text_is_whole_in_its_panels() -> None:
    text = "a  b c b"
    found = tokens([text, "c"], "words")
    panels = [panel for panel in found.panels() if not panel.brief]
    assert len({panel.name for panel in panels}) == len(panels) == 6
    strip, table, ids = panels[:3]
    assert isinstance(strip, Strip)
    assert isinstance(table, Table)
    assert isinstance(ids, Table)
    assert "".join(gap + token for gap, token in zip(strip.before, strip.tokens, strict=True)) == text
    assert strip.values == [1, 2, 1, 2]
    assert table.rows[1] == [1, "b", 1, "3–4", 2]
    assert ids.rows == [["0 1 2 1"]]
    assert table.note == "4 tokens, 3 different; 8 characters, 8 bytes"
    assert len(found.plot().axes) == 2


def test_blanks_are_of_no_colour_where_they_are_no_tokens() -> None:
    strip = tokens(["a  b"], "words").panels()[0]
    assert isinstance(strip, Strip)
    line = coloured(strip)
    assert line.plain == "a  b"
    assert [(span.start, span.end, span.style) for span in line.spans] == [
        (0, 1, f"black on {COLOURS[0]}"),
        (3, 4, f"black on {COLOURS[1]}"),
    ]


def test_the_numbers_are_counts(minilm) -> None:
    text = "the bank, the tokenisation of riverbanks"
    answer = Tokens("a model", [(text, minilm.trace(text).tokens)])
    split, count = answer.findings()
    assert (numbers_in(split)[:2], names_in(split)) == (["2", "6"], ["riverbanks"])
    assert "(river ##bank ##s)" in split
    assert numbers_in(count) == ["10", "40"]
    assert all(token in count for token in ("[CLS]", "[SEP]"))
    shown_with_its_numbers(answer, also=[2, 6, 10, 40])


@pytest.mark.parametrize(("text", "numbers"), [("a river", [["2"], ["2", "7"]]), ("a", [["1", "1"]])])
def test_nothing_is_split(minilm, text: str, numbers: list[list[str]]) -> None:
    said = Tokens("a model", [(text, minilm.trace(text).tokens)]).findings()
    assert [numbers_in(sentence) for sentence in said] == numbers
    assert names_in(" ".join(said)) == []


def test_a_special_token_of_the_text_is_not_added(minilm) -> None:
    text = "riverbanks [MASK]"
    split, count, read = Tokens("a model", [(text, minilm.trace(text).tokens)]).findings()
    assert names_in(split) == ["riverbanks"]
    assert numbers_in(count) == ["4", "17"]
    assert "[MASK]" in read
    assert "[MASK]" not in count


def test_several_texts_have_a_sentence_each() -> None:
    answer = tokens(["a b", "b a c", "a", "b b"], "words")
    said = answer.findings()
    assert [numbers_in(sentence) for sentence in said] == [["1", "2", "3", "0", "2"], ["2", "3", "5", "0", "3"],
                                                          ["3", "1", "1"]]  # fmt: skip
    shown_with_its_numbers(answer, also=[0, 1, 2, 3, 5])
