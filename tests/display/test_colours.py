"""The colours are told apart by every kind of sight, and a map's steps are even; docs/pictures.md has the figures."""

import re
from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from regard.display.canvas import DIFFERENCES, LINES, WEIGHTS, line_style
from tests.support import ROOT
from tests.support.colour_vision import SIGHT, difference, seen, srgb_to_cielab

EVERY = np.linspace(0, 1, 256)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [  # of Sharma, Wu and Dalal 2005, table 1
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, -1, 2), (50, 0, 0), 2.3669),
        ((50, 2.49, -0.001), (50, -2.49, 0.0011), 7.2195),
        ((50, 2.5, 0), (73, 25, -18), 27.1492),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((2.0776, 0.0795, -1.135), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_the_difference_is_ciede2000(one, other, expected: float) -> None:
    assert difference(one, other) == pytest.approx(expected, abs=1e-4)
    assert difference(other, one) == pytest.approx(expected, abs=1e-4)


def stated(row: str) -> list[float]:
    """The figures of a row of the table in docs/pictures.md."""
    page = (ROOT / "docs" / "pictures.md").read_text(encoding="utf-8")
    (line,) = re.findall(rf"^\| {re.escape(row)} \|(.*)\|$", page, re.M)
    return [float(cell) for cell in line.split("|")]


def test_lines_are_told_apart_by_every_sight_as_the_page_says() -> None:
    colours = [to_rgb(each) for each in LINES]
    least = [min(float(difference(seen(a, s), seen(b, s))) for a, b in combinations(colours, 2)) for s in SIGHT]
    assert stated("lines of words") == pytest.approx(least, abs=0.05)
    assert min(least) > 20
    assert len({line_style(n) for n in range(16)}) == 16


@pytest.mark.parametrize(("name", "colours"), [("weights", WEIGHTS), ("differences", DIFFERENCES)])
def test_a_tenth_of_a_map_is_seen_by_every_sight_as_the_page_says(name: str, colours) -> None:
    shades = colours(np.linspace(0, 1, 11))[:, :3]
    least = [float(difference(seen(shades[:-1], s), seen(shades[1:], s)).min()) for s in SIGHT]
    assert stated(f"{name}, a tenth of the map") == pytest.approx(least, abs=0.05)
    assert min(least) > 2.3  # a just noticeable difference (Mahy, Van Eycken and Oosterlinck 1994)


def test_weights_darken_evenly_for_every_sight() -> None:
    for sight in SIGHT:
        assert (np.diff(seen(WEIGHTS(EVERY)[:, :3], sight)[:, 0]) < 0).all()


def test_signs_of_differences_are_told_apart_and_0_is_white() -> None:
    colours = DIFFERENCES(np.linspace(0, 1, 257))[:, :3]
    np.testing.assert_allclose(srgb_to_cielab(colours[128]), [97, 0, 0], atol=1)
    below, above = colours[:128][::-1], colours[129:]
    assert (below[40:, 2] > below[40:, 0]).all()  # below 0 is blue
    assert (above[40:, 0] > above[40:, 2]).all()  # above it is red
    least = [float(difference(seen(below[32::8], s), seen(above[32::8], s)).min()) for s in SIGHT]
    assert stated("both signs of one size, from a quarter of the map on") == pytest.approx(least, abs=0.05)
    assert min(least) > 10
