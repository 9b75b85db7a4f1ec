"""Coloured tokens: all of them, blanks shown, lines broken where the width ends."""

import pytest
from matplotlib.patches import Rectangle

from drawings.sheet import sheet
from drawings.token_strip import token_strip
from regard.text.tokens import Token

TOKENS = [
    Token(7, "[CLS]", 0, 0, None, True),
    Token(12345, "What", 0, 4, None, False),
    Token(3, " is", 4, 7, None, False),
]


def test_every_token_with_its_id_and_its_blank() -> None:
    _, axes = sheet(9, 1)
    height = token_strip(axes, TOKENS)
    told = [text.get_text() for text in axes.texts]
    assert told == ["[CLS]", "7", "What", "12345", "·is", "3"]
    colours = [patch.get_facecolor() for patch in axes.patches if isinstance(patch, Rectangle)]
    assert len(set(colours)) == 3
    assert height < 1
    assert axes.texts[0].get_color() != axes.texts[2].get_color()  # special tokens are grey


@pytest.mark.parametrize(("width", "lines"), [(9, 1), (1.4, 2), (0.1, 3)])
def test_lines_are_broken_between_tokens(width: float, lines: int) -> None:
    _, axes = sheet(9, 3)
    token_strip(axes, TOKENS, width=width)
    assert len({patch.get_y() for patch in axes.patches}) == lines
