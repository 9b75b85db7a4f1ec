"""Tokens fit one screen, however many and of however many texts; the other panels have all of each text."""

import pytest

from regard.display.panels import Strip, Table
from regard.display.terminal_lines import COLOURS, coloured
from regard.display.terminal_parts import plain_lines_of_parts
from regard.questions.tokens.answer import Tokens, tokens
from regard.questions.tokens.panels import ROWS, SEVERAL

TEXT = "He went to the river bank, and to the tokenisation of riverbanks. " * 12


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
