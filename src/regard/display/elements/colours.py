"""The colours of all pictures: one map for weights, one for numbers of both signs, and few that tell lines apart.

The page has the same, and others of the same hue where it is dark: `web/src/parts/colours.ts` and `web/src/page.css`.

Both maps are ColorBrewer's (Harrower and Brewer 2003, "ColorBrewer.org"), resampled so that equal steps of a number are
equal steps of colour: of equal length in CIELAB. Their steps, and the colours that tell things apart, are held to a
least difference (CIEDE2000) for normal sight and for protanopia, deuteranopia and tritanopia as Machado, Oliveira and
Fernandes 2009 simulate them ("A Physiologically-based Model for Simulation of Color Vision Deficiency"), in
tests/display/elements/test_colours.py; docs/pictures.md has the figures.
"""

import matplotlib
import numpy as np
from jaxtyping import Float
from matplotlib.colors import LinearSegmentedColormap, ListedColormap, PowerNorm
from numpy.typing import ArrayLike

SHADES = 256
# From linear sRGB to XYZ (IEC 61966-2-1), and the white of it.
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
WHITE = XYZ.sum(1)

LINES = ("#266da1", "#993432", "#b48c3d", "#000000")  # occurrences, tokens: what is told apart by its colour
BAR, MORE, LESS = "#2272b5", "#b41d2d", "#2267ac"  # bars: of a number without a sign, of one above 0, of one below it
DASHES = ("-", "--", ":", "-.")  # of the next four, and so on
FOLLOWED = "#d55e00"  # the followed word, and what is framed
SPECIAL = "#999999"  # the names of special tokens and sinks


def line_style(number: int) -> tuple[str, str]:
    """(colour, dashes) of line number of several: no two of the first sixteen are alike."""
    return LINES[number % len(LINES)], DASHES[number // len(LINES) % len(DASHES)]


def srgb_to_cielab(rgb: ArrayLike) -> Float[np.ndarray, "*n 3"]:
    """Convert sRGB colours in [0, 1], (..., 3), to CIELAB (CIE 1976; the white is that of sRGB)."""
    values = np.asarray(rgb, dtype=float)
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    parts = linear @ XYZ.T / WHITE
    roots = np.where(parts > 216 / 24389, np.cbrt(parts), (24389 / 27 * parts + 16) / 116)
    x, y, z = np.moveaxis(roots, -1, 0)
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], -1)


def evenly_spaced_colours(colours: ArrayLike, shades: int = SHADES) -> Float[np.ndarray, "n 3"]:
    """Resample a run of sRGB colours (n, 3) to some shades, each as far from the next in CIELAB."""
    given = np.asarray(colours, dtype=float)
    along = np.concatenate([[0.0], np.linalg.norm(np.diff(srgb_to_cielab(given), axis=0), axis=1).cumsum()])
    at = np.linspace(0, along[-1], shades)
    return np.stack([np.interp(at, along, part) for part in given.T], -1)


def _fine_run_of_colours(name: str, start: float, end: float) -> Float[np.ndarray, "n 3"]:
    return matplotlib.colormaps[name].resampled(4097)(np.linspace(start, end, 4097))[:, :3]


def _colour_maps_to_draw() -> tuple[ListedColormap, ListedColormap, ListedColormap]:
    """(weights, differences, what stands apart)."""
    below, above = (
        evenly_spaced_colours(_fine_run_of_colours("RdBu_r", 0.0, 0.5), SHADES // 2 + 1),
        evenly_spaced_colours(_fine_run_of_colours("RdBu_r", 0.5, 1.0), SHADES // 2 + 1),
    )
    return (
        ListedColormap(evenly_spaced_colours(_fine_run_of_colours("Blues", 0.0, 1.0)), "weights"),
        ListedColormap(np.concatenate([below, above[1:]]), "differences"),
        ListedColormap(evenly_spaced_colours(_fine_run_of_colours("Greys", 0.0, 0.75)), "apart"),
    )


WEIGHTS, DIFFERENCES, APART = _colour_maps_to_draw()
"""Of weights, from white for 0; of numbers of both signs (below 0 blue, above it red); of special tokens and sinks."""

HEAT = (0.0, 72 / 255, 1.0)
HEAT_OVER = LinearSegmentedColormap.from_list("heat", [(*HEAT, 0.0), (*HEAT, 0.75)])
"""Of weights over a picture, from nothing for 0; HEAT is its colour, the page's."""


def weight_scale(largest: float) -> PowerNorm:
    """Colours by the square root of a weight: small weights that differ can be seen to, beside large ones."""
    return PowerNorm(0.5, vmin=0.0, vmax=max(largest, 1e-6), clip=True)
