"""Tokens fit one screen, however many and of however many texts."""

import pytest

from regard.views.terminal.tokens import MOST_ROWS, show_tokens_shortly
from tests.support.terminal import printed


@pytest.mark.parametrize("width", [60, 80, 140])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_one_screen(minilm, width: int, count: int) -> None:
    text = "He went to the river bank, and to the tokenisation of riverbanks. " * 12
    tokens = minilm.trace(text).tokens
    lines = printed(show_tokens_shortly, [(text, tokens)] * count, "a model", width=width).splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) <= 40 or width < 80
    out = " ".join(" ".join(lines).split())
    shown = min(count, 3)
    assert f"{shown * (len(tokens) - (MOST_ROWS if shown == 1 else 9) // shown)} more tokens with --all" in out
    assert ("4 more texts with --all" in out) == (count == 7)
    assert "more: --all" in lines[-1]
