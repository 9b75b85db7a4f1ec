"""A run's loss as a curve: every number while there is room, then exact means with their ranges."""

import math
from typing import Any

import pytest

from regard.web.loss_curve import MOST, loss_panel


def lines_of(count: int, first: int = 1) -> tuple[list[int], list[float], Any]:
    steps = list(range(first, first + count))
    losses = [5 / (1 + step / 100) + math.sin(step) for step in steps]
    return steps, losses, loss_panel(steps, losses, [])


def test_a_short_run_has_every_update() -> None:
    steps, losses, panel = lines_of(MOST)
    (line,) = panel["series"]
    assert (line["x"], line["y"], line["since"], line["low"]) == (steps, losses, None, None)
    assert panel["note"] == "training: each update's own"


@pytest.mark.parametrize(("count", "size"), [(MOST + 1, 2), (2 * MOST, 2), (2 * MOST + 1, 4), (12_345, 32)])
def test_a_long_one_has_means_and_their_ranges(count: int, size: int) -> None:
    steps, losses, panel = lines_of(count, first=7)
    (line,) = panel["series"]
    assert MOST / 2 <= len(line["x"]) <= MOST
    assert f"each point the mean of {size} updates" in panel["note"]
    for n in range(len(line["x"])):
        own = losses[n * size : (n + 1) * size]
        assert (line["since"][n], line["x"][n]) == (steps[n * size], steps[n * size + len(own) - 1])
        assert line["y"][n] == pytest.approx(sum(own) / len(own), rel=1e-12)
        assert (line["low"][n], line["high"][n]) == (min(own), max(own))


def test_points_stay_where_they_are_while_a_run_goes_on() -> None:
    before, after = lines_of(1000)[2]["series"][0], lines_of(1100)[2]["series"][0]
    assert after["y"][: len(before["y"]) - 1] == before["y"][:-1]


def test_what_is_held_out_is_a_line_of_its_own() -> None:
    panel: Any = loss_panel([1, 2, 3], [3.0, math.nan, 2.0], [(2, 2.5), (3, math.inf)], smoothing=0.1)
    training, held = panel["series"]
    assert training["y"] == [3.0, None, 2.0]
    assert (held["name"], held["x"], held["y"]) == ("held out", [2, 3], [2.5, None])
    assert "labels smoothed by 0.1; held out: what is not trained on" in panel["note"]
    empty: Any = loss_panel([], [], [])
    assert empty["series"][0]["x"] == []
