"""Heads over a corpus in a terminal."""

import io

import numpy as np
from rich.console import Console

from regard.corpus.asking.head_means import OVER
from regard.explain.weights.head_means import HeadMeans
from regard.explain.weights.score_meanings import MEANINGS
from regard.views.terminal.head_means import show_head_means, show_heads


def made() -> HeadMeans:
    scores = {name: np.array([[0.1, 0.2], [0.9, 0.3], [0.0, 0.4]]) for name in OVER}
    scores["induction"] = np.full((3, 2), np.nan)
    return HeadMeans(scores, {"queries": 1234, "duplicates": 56, "inductions": 0})


def test_every_score_has_a_line_with_its_largest_head() -> None:
    assert set(MEANINGS) >= set(OVER)
    written = io.StringIO()
    show_head_means(made(), Console(file=written, width=150), ["the store is not finished"])
    out = written.getvalue()
    assert "1,234 tokens, 56 of them with an earlier one alike" in out
    lines = {line.split()[0]: line for line in out.splitlines() if line.split() and line.split()[0] in OVER}
    assert set(lines) == set(OVER)
    assert " ".join(lines["previous"].split()) == "previous the token before 1.0 0.90, 2.1 0.40, 1.1 0.30 0.32 1,234"
    assert "no token could" in lines["induction"]
    assert (lines["duplicate"].split()[-1], lines["induction"].split()[-1]) == ("56", "0")
    assert "the store is not finished" in out


def test_position_and_content_name_heads_by_how_much_more_they_follow_the_one() -> None:
    """A head that looks everywhere evenly is alike in both, one that hardly looks at what was exchanged in nothing."""
    tables = {"position": [[1.0, 0.9, 0.9]], "content": [[1.0, 0.2, 0.1]], "looked": [[1.0, 0.5, 0.05]]}
    written = io.StringIO()
    found = HeadMeans({name: np.array(table) for name, table in tables.items()}, {"queries": 5}, (4,))
    show_heads([("tokens exchanged", found)], Console(file=written, width=80))
    lines = {line.split()[0]: line for line in written.getvalue().splitlines() if line.split()}
    assert lines["position"].split()[-4:] == [
        "4.1",
        "0.90",
        "0.93",
        "5",
    ]  # 4.0 follows both alike, 4.2 looks too little
    assert "no head does" in lines["content"]  # 4.1 follows position
    assert "looked" not in lines
