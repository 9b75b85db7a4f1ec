"""A sweep's cells as shares, rows and JSON."""

import math
from dataclasses import replace

import pytest

from regard.questions.patch.answer import PatchSweep

SWEEP = PatchSweep(
    "hidden_states", "positions", "denoising", "clean text", "bad text", "a number", 1.0, 3.0,
    ("input", 0), ("clean 0", "text 1"), [[1.5, 1.0], [0.5, 3.0]],
)  # fmt: skip


def test_a_share_is_the_way_from_the_runs_outcome_to_the_sources() -> None:
    for row, outcomes in zip(SWEEP.shares, SWEEP.outcomes, strict=True):
        assert row == [(each - 1.0) / 2.0 for each in outcomes]
    assert all(math.isnan(each) for row in replace(SWEEP, source=SWEEP.run).shares for each in row)


def test_the_largest_change_is_best() -> None:
    order = SWEEP.best()
    changes = [abs(SWEEP.outcomes[row][column] - SWEEP.run) for row, column in order]
    assert changes == sorted(changes, reverse=True)
    assert len(set(order)) == 4
    assert SWEEP.best(1) == order[:1]


def test_rows_and_json_have_every_patch() -> None:
    rows, data = SWEEP.rows(), SWEEP.to_json()
    assert [row["outcome"] for row in rows] == [each for row in data["outcomes"] for each in row]
    assert [row["share"] for row in rows] == pytest.approx([each for row in data["shares"] for each in row])
    assert rows[3] == {"layer": "0", "position": "text 1", "outcome": 3.0, "share": 1.0}
    assert (data["format"], data["run"], data["source"], data["direction"]) == ("regard patch", 1.0, 3.0, "denoising")
    assert data["findings"] == SWEEP.findings()
