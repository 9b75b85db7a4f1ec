"""What the page's components compute before they draw: orders, places, axes, cells; in Node."""

import numpy as np
import pytest

from tests.support.node import call
from tests.web.test_region import runs as made_runs


@pytest.mark.parametrize("head", [0, 1, None])
def test_runs_tell_what_a_mask_forbids_as_the_mask_does(head: int | None) -> None:
    allowed = np.random.default_rng(3).random((2, 9, 14)) < 0.6
    allowed[1, 4] = False  # no key at all
    runs = made_runs(allowed)
    expected = allowed.any(0) if head is None else allowed[head]
    for query, key in [(0, 0), (4, 3), (8, 13), *np.random.default_rng(4).integers(0, 9, (12, 2)).tolist()]:
        assert call("attention/mask", "allows", runs, head, query, key) == expected[query, key]


@pytest.mark.parametrize(
    ("i", "j", "allowed"), [(5, 6, True), (5, 7, False), (5, 2, True), (5, 1, False), (0, 0, True)]
)
def test_a_band_tells_what_a_mask_forbids(i: int, j: int, allowed: bool) -> None:
    assert call("attention/mask", "allows", {"kind": "band", "low": -3, "high": 1}, None, i, j) is allowed


@pytest.mark.parametrize("step", [1, 2])
def test_what_is_usual_in_a_map_is_in_its_column_or_at_its_distance(step: int) -> None:
    """A causal map: a sink, a column looked at once, a diagonal, and columns of too few cells to tell."""
    values = np.tril(np.full((40, 40), 0.001))
    values[np.arange(5, 40), np.arange(35)] = 0.3
    values[:, 0], values[15, 4], values[39, 39] = 0.5, 0.9, 0.9
    described = {"rows": 40, "cols": 40, "values": {"float32": values.ravel().tolist()}}
    usual = np.reshape(call("map/overview", "usualOf", described, step), (40, 40))
    expected = values.copy()
    expected[15, 4] = expected[39, 39] = 0.001
    assert usual == pytest.approx(expected)
