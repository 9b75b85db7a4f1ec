"""One head's steps fit one screen, and the weights shown are the record's."""

import pytest

from regard.textbook import head_steps
from regard.views.terminal.head_steps import MOST_ROWS, show_head_steps_shortly
from tests.support.terminal import printed


@pytest.mark.parametrize("width", [60, 80, 140])
def test_one_screen(minilm, width: int) -> None:
    trace = minilm.trace("he went to the river bank to fish and " * 5)
    found = [(n, head_steps(trace, n, 1, 2)) for n in trace.word("bank")[0].tokens]
    lines = printed(show_head_steps_shortly, found, trace, 1, 2, width=width).splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) <= 40 or width < 80
    assert lines[0].startswith("• In layer 1, head 2 “bank” ")
    record = found[0][1]
    best = record.weights.sort(descending=True).values[:MOST_ROWS]
    left = len(trace.tokens) - MOST_ROWS
    if width >= 80:
        assert sum("%" in line and line.split()[0].isdecimal() for line in lines) >= MOST_ROWS
        assert f"{float(best[0]):.3f}" in " ".join(lines)
    assert f"{left} more tokens share {1 - float(best.sum()):.3f}" in " ".join(" ".join(lines).split())


def test_what_it_may_not_look_at_is_left_out(minilm) -> None:
    trace = minilm.trace("a river bank")
    record = head_steps(trace, 3, 0, 0)
    scores = record.scores.clone()
    scores[4] = -float("inf")
    from dataclasses import replace

    out = printed(show_head_steps_shortly, [(3, replace(record, scores=scores))], trace, 0, 0)
    assert "1 tokens that it may not look at are left out" in out
