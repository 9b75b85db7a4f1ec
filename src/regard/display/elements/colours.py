"""The colours of all pictures: one map for weights, one for numbers of both signs, and few that tell lines apart.

The page has the same, and others of the same hue where it is dark: `web/src/parts/colours.ts` and `web/src/page.css`.

The maps are ColorBrewer's (Harrower and Brewer 2003), at steps of equal length in CIELAB. Their steps, and the colours
that tell things apart, have a least difference (CIEDE2000) for normal sight and for three simulated colour deficiencies
(Machado, Oliveira and Fernandes 2009): tests/display/elements/test_colours.py, with figures in docs/pictures.md.
"""

from matplotlib.colors import LinearSegmentedColormap, to_hex, to_rgb

GROUND, INK, GREY, RULE = "#fbfaf6", "#191b22", "#5b606c", "#e3e0d7"  # of every picture: its ground, words, small words
TEXTS = ("#0b6ca6", "#bf420b")  # the first text, which is the colour of weights as well, and the second
SINK, NEUTRAL = "#8a8f99", "#d9d7cf"  # special tokens and sinks; the range of neutral sentences
LINES = ("#0b6ca6", "#bf420b", "#b48787", "#191b22")  # occurrences, tokens: what is told apart by its colour
BAR, MORE, LESS = "#0b6ca6", "#b41d2d", "#2267ac"  # bars: of a number without a sign, of one above 0, of one below it
DASHES = ("-", "--", ":", "-.")  # of the next four, and so on


def line_style(number: int) -> tuple[str, str]:
    """(colour, dashes) of line number of several: no two of the first sixteen are alike."""
    return LINES[number % len(LINES)], DASHES[number // len(LINES) % len(DASHES)]


def _colour_map(name: str, stops: str) -> LinearSegmentedColormap:
    """Make a map of hexadecimal colours. A grey has two digits."""
    return LinearSegmentedColormap.from_list(name, [f"#{stop * (6 // len(stop))}" for stop in stops.split()], 257)


WEIGHTS = _colour_map(
    "weights",
    "f7fbff e3eef8 cfe1f2 b8d5ea 9fcbe2 8abfdd 74b3d8 5fa6d1 4b98c9 3b8bc2 2e7ebc 2272b5 "
    "1764ab 0c56a0 084990 083c7d 08306b",
)
DIFFERENCES = _colour_map(
    "differences",
    "053061 134b86 2267ac 337eb8 4a97c5 74b2d4 a0cce2 cde3ef f7 fcdfcd f8c0a4 f2a17f "
    "e17a61 cf5246 b41d2d 8d0c25 67001f",
)
APART = _colour_map("apart", "ff f3 e8 dc d0 c5 ba af a4 99 8e 84 79 6f 65 5b 52")
"""Of weights, from white for 0; of numbers of both signs (below 0 blue, above it red); of special tokens and sinks."""

HEAT = (0.0, 72 / 255, 1.0)
HEAT_OVER = LinearSegmentedColormap.from_list("heat", [(*HEAT, 0.0), (*HEAT, 0.75)])
"""Of weights over a picture, from nothing for 0; HEAT is its colour, the page's."""


def tint(hue: str, part: float, ground: str = GROUND) -> str:
    """A part of a hue on the ground."""
    r, g, b = (own + (other - own) * part for own, other in zip(to_rgb(ground), to_rgb(hue), strict=True))
    return to_hex((r, g, b))


def ink_on(colour: str) -> str:
    """Black or white, whichever contrasts more (WCAG 2)."""
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour))
    return "#000000" if 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 else "#ffffff"
