"""The split of a score in a terminal."""

import pytest

from regard.views.terminal.layout import lines_of
from regard.views.terminal.score_sources import render_pairs, render_sides
from tests.explain.findings.test_score_sources import made

FOUND = made([[1, 0], [0, 1]], [[5, -1], [0, 2]], [[1, 0], [0, 1]], error=3e-7)


def test_pairs_with_their_part_of_the_difference_and_of_the_score() -> None:
    lines = lines_of(render_pairs(FOUND, 2), 90)
    rows = [line.split() for line in lines if "+" in line or "−" in line]
    assert rows == [
        ["token", "embedding", "token", "embedding", "+4.00", "+5.00"],
        ["layer", "0,", "feed-forward", "token", "embedding", "−1.00", "−1.00"],
        ["all", "4", "pairs", "+4.00", "+6.00"],
    ]
    assert any("difference: from the mean score of the 11 tokens" in line for line in lines)


@pytest.mark.parametrize("title", ["by kind", "by layer", "by source token", "by writer"])
def test_each_side_by_every_grouping(title: str) -> None:
    assert any(title in line for line in lines_of(render_sides(FOUND), 90))
