"""Heads over a corpus in a terminal."""

import io

import numpy as np
from rich.console import Console

from regard.corpus.asking.head_means import OVER, HeadMeans
from regard.views.terminal.head_means import MEANINGS, show_head_means


def made() -> HeadMeans:
    scores = {name: np.array([[0.1, 0.2], [0.9, 0.3], [0.0, 0.4]]) for name in OVER}
    scores["induction"] = np.full((3, 2), np.nan)
    return HeadMeans(scores, {"queries": 1234, "duplicates": 56, "inductions": 0})


def test_every_score_has_a_line_with_its_largest_head() -> None:
    assert set(MEANINGS) == set(OVER)
    written = io.StringIO()
    show_head_means(made(), Console(file=written, width=150), ["the store is not finished"])
    out = written.getvalue()
    assert "1,234 tokens, 56 of them with an earlier one alike" in out
    lines = {line.split()[0]: line for line in out.splitlines() if line.split() and line.split()[0] in OVER}
    assert set(lines) == set(OVER)
    assert lines["previous"].split()[1:3] == ["1.0", "0.90"]
    assert "2.1 0.40, 1.1 0.30" in lines["previous"]
    assert "no token has one" in lines["induction"]
    assert "the store is not finished" in out
