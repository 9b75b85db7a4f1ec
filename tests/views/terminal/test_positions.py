"""Positional encodings fit one screen, whichever they are and however many positions there are."""

import pytest

from regard.explain.vectors.positions import encoding
from regard.views.terminal.positions import show_positions_shortly
from tests.support.terminal import printed


@pytest.mark.parametrize("width", [60, 80, 140])
@pytest.mark.parametrize("kind", ["sinusoidal", "rotary", "alibi", "learned"])
@pytest.mark.parametrize("length", [1, 2, 300])
def test_one_screen(kind: str, width: int, length: int) -> None:
    pictures = encoding("sinusoidal" if kind == "learned" else kind, length, 64)
    out = printed(show_positions_shortly, kind, pictures, " of a model" if kind == "learned" else "", width=width)
    lines = out.splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) <= 40
    assert f"{kind.capitalize()} positions" in out
    assert "nan" not in out
    assert lines[-1].startswith("more: --all")
