"""The page's scales keep what they say: a hue at each end, and numbers that can be read, light and dark; in Node."""

import colorsys
import re

import pytest
from matplotlib.colors import to_rgb

from regard.display.canvas import BAR, LESS, LINES, MORE
from tests.support.node import SOURCE, call

SCALES = ("weights", "differences", "apart")


def luminance(colour: tuple[int, int, int]) -> float:
    """WCAG's relative luminance."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (each / 255 for each in colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: tuple[int, int, int], b: tuple[int, int, int]) -> float:
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def named_colours(dark: bool) -> dict[str, str]:
    """The colours that the page's style sheet names, light or dark."""
    rules = re.findall(r"\n\.regard(\.dark)? {(.*?)\n}", "\n" + (SOURCE / "page.css").read_text("utf-8"), re.S)
    (own,) = (rule for mark, rule in rules if bool(mark) == dark and "--back" in rule)
    return dict(re.findall(r"--(\w+): (#\w+);", own))


def test_the_page_has_the_colours_of_pictures() -> None:
    """Lines and groups, and bars: what is red or blue in a picture is so on the page."""
    assert tuple(call("parts/colours", "groupColours", False)) == LINES
    own = named_colours(False)
    assert (own["weight"], own["more"], own["less"]) == (BAR, MORE, LESS)
    (red, blue), (dark_red, dark_blue) = ((named_colours(dark)[n] for n in ("more", "less")) for dark in (False, True))
    for light, dark in ((red, dark_red), (blue, dark_blue)):
        hues = [colorsys.rgb_to_hsv(*to_rgb(each))[0] for each in (light, dark)]
        assert abs((hues[0] - hues[1] + 0.5) % 1 - 0.5) < 0.05


@pytest.mark.parametrize("dark", [False, True])
def test_texts_have_the_hues_of_the_style_sheet(dark: bool) -> None:
    own = named_colours(dark)
    for text, name in ((0, "text1"), (1, "text2"), (2, "text3"), (None, "apart")):
        assert [each / 255 for each in call("parts/colours", "tint", text, 1, dark)] == list(to_rgb(own[name]))
    ground = tuple(call("parts/colours", "tint", 0, 0, dark))
    for text, least in ((0, 4.5), (1, 4.5), (2, 4.5), (None, 3)):
        assert contrast(tuple(call("parts/colours", "tint", text, 1, dark)), ground) >= least


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("scale", SCALES)
def test_a_number_can_be_read_on_every_colour(scale: str, dark: bool) -> None:
    for colour in call("parts/colours", "table", scale, dark):
        ink = {"#000": (0, 0, 0), "#fff": (255, 255, 255)}[call("parts/colours", "ink", colour)]
        assert contrast(tuple(colour), ink) >= 4.5
