"""The page's scales keep what they say: a hue at each end, and numbers that can be read, light and dark; in Node."""

import colorsys
import itertools

import pytest

from tests.support.node import call

GROUND = {False: (255, 255, 255), True: (20, 25, 31)}  # of a light page, and of a dark one
SCALES = ("weights", "differences", "apart")


def luminance(colour: tuple[int, int, int]) -> float:
    """WCAG's relative luminance."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (each / 255 for each in colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: tuple[int, int, int], b: tuple[int, int, int]) -> float:
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_differences_end_in_blue_and_in_red(dark: bool) -> None:
    """Not in cream and pale blue: the hue is that of the ends, and there is much of it."""
    colours = [tuple(each) for each in call("parts/colours", "table", "differences", dark)]
    for colour, hue in ((colours[0], 212), (colours[-1], 0)):
        found, saturation, _ = colorsys.rgb_to_hsv(*(each / 255 for each in colour))
        assert abs((360 * found - hue + 180) % 360 - 180) < 25
        assert saturation > 0.55
        assert contrast(colour, GROUND[dark]) >= 3


@pytest.mark.parametrize("dark", [False, True])
def test_differences_stand_out_more_the_farther_from_0(dark: bool) -> None:
    colours = [tuple(each) for each in call("parts/colours", "table", "differences", dark)]
    middle = len(colours) // 2
    for half in (colours[middle:], colours[:middle][::-1]):
        found = [contrast(each, GROUND[dark]) for each in half]
        assert all(b >= a - 0.02 for a, b in itertools.pairwise(found))


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("scale", SCALES)
def test_a_number_can_be_read_on_every_colour(scale: str, dark: bool) -> None:
    for colour in call("parts/colours", "table", scale, dark):
        ink = {"#000": (0, 0, 0), "#fff": (255, 255, 255)}[call("parts/colours", "ink", colour)]
        assert contrast(tuple(colour), ink) >= 4.5
