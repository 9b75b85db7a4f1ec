"""Provide the building blocks of figures: colours, colour maps, fonts and layout. Write figures to files.

There is a colour map for weights, another for signed numbers, and a few colours for lines. The page has the same
colours, and others of the same hue in dark mode: `web/src/parts/colours.ts` and `web/src/page.css`.

The maps are ColorBrewer's (Harrower and Brewer 2003), resampled to equal steps in CIELAB. tests/display/test_colours.py
checks a minimum difference (CIEDE2000) between steps, and between colours of lines and texts, for normal vision and
three simulated colour vision deficiencies (Machado, Oliveira and Fernandes 2009). docs/pictures.md has the numbers.
"""

import io
import textwrap
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import LinearSegmentedColormap, to_hex, to_rgb
from matplotlib.figure import Figure, FigureBase
from matplotlib.font_manager import fontManager
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Text

from regard.files import whole
from regard.text.quoting import visible

GROUND, INK, GREY, RULE = "#fbfaf6", "#191b22", "#5b606c", "#e3e0d7"  # background, text, small text, thin lines
TEXTS = ("#0b6ca6", "#bf420b")  # the first text (also the colour of weights) and the second text
SINK, NEUTRAL = "#8a8f99", "#d9d7cf"  # special tokens and sinks; the range of neutral sentences
LINES = ("#0b6ca6", "#bf420b", "#b48787", "#191b22")  # occurrences and tokens that differ by colour
BAR, MORE, LESS = "#0b6ca6", "#b41d2d", "#2267ac"  # bars of unsigned numbers, of numbers above 0, below 0
DASHES = ("-", "--", ":", "-.")  # for the first four lines, the next four, and so on


def line_style(number: int) -> tuple[str, str]:
    """Return the (colour, dashes) of a line by its number, counted from 0. The first sixteen all differ."""
    return LINES[number % len(LINES)], DASHES[number // len(LINES) % len(DASHES)]


def _colour_map(name: str, stops: str) -> LinearSegmentedColormap:
    """Return a colour map that interpolates hexadecimal colours. Two digits mean a grey."""
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
APART = _colour_map("apart", "ff f8 f1 e9 e2 db d4 cd c6 bf b9 b2 ab a4 9e 97 91")
"""Colour maps of weights (white for 0), of signed numbers (blue below 0, red above), of special tokens and sinks."""

HEAT = (0.0, 72 / 255, 1.0)
HEAT_OVER = LinearSegmentedColormap.from_list("heat", [(*HEAT, 0.0), (*HEAT, 0.75)])
"""The colour map of weights over an image, transparent for 0. HEAT is its colour, as on the page."""


def tint(hue: str, part: float, ground: str = GROUND) -> str:
    """Mix the background with a colour. part: the fraction of the colour, 0 to 1."""
    r, g, b = (channel + (other - channel) * part for channel, other in zip(to_rgb(ground), to_rgb(hue), strict=True))
    return to_hex((r, g, b))


def ink_on(colour: str) -> str:
    """Return black or white for text on a colour, whichever contrasts more (WCAG 2)."""
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour))
    return "#000000" if 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 else "#ffffff"


SANS, SERIF = ("Noto Sans", "DejaVu Sans"), ("Noto Serif", "DejaVu Serif")  # matplotlib includes the second of each
FALLBACK_FONTS = ("Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Emoji", "Symbola", "Arial Unicode MS",
                  "Hiragino Sans", "Microsoft YaHei", "Segoe UI Emoji")  # fmt: skip
MISSING = "No installed font has "


class Plot(Figure):
    """A figure that a notebook shows without pyplot. Pyplot would keep it in memory and choose a backend."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png")
        return file.getvalue()

    def draw(self, renderer: Any) -> None:
        """Draw the figure without TeX and math text. A single warning lists all characters that no font has."""
        with as_written(self), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            super().draw(renderer)
        codes = [int(text.split()[1]) for warned in caught if (text := str(warned.message)).startswith("Glyph ")]
        missing = dict.fromkeys(f"{chr(code)!r} ({unicodedata.name(chr(code), 'unnamed')})" for code in codes)
        svg = self.canvas.get_default_filetype() == "svg"
        note = "The SVG uses the fonts of the reader's computer." if svg else "They are drawn as boxes."
        if missing:
            warnings.warn(f"{MISSING}{', '.join(missing)}. {note}", stacklevel=2)


@contextmanager
def as_written(artist: Artist) -> Iterator[None]:
    """Disable TeX and math text inside the block, whatever the user's settings. This includes texts added there."""
    fonts = write_texts_as_they_are(artist)
    with matplotlib.rc_context(
        {"text.usetex": False, "text.parse_math": False, "font.sans-serif": fonts, "text.hinting": "none"}
    ):
        yield


def write_texts_as_they_are(artist: Artist) -> list[str]:
    """Disable TeX and math text in an artist's texts, and set fonts with fallbacks. Returns the sans-serif fonts."""
    installed = fontManager.get_font_names()
    fonts = [*(name for name in SANS if name in installed), *(name for name in FALLBACK_FONTS if name in installed)]
    serif = [*(name for name in SERIF if name in installed), *fonts, "serif"]
    for text in artist.findobj(Text):
        family = serif if text.get_fontfamily()[-1] == "serif" else [*fonts, "sans-serif"]
        text.set(fontfamily=family, usetex=False, parse_math=False)
    return fonts


STYLE: Any = {
    "figure.facecolor": GROUND, "axes.facecolor": "none", "axes.edgecolor": SINK, "text.color": INK,
    "axes.labelcolor": GREY, "xtick.color": GREY, "ytick.color": GREY, "axes.titlecolor": INK,
    "axes.titleweight": "bold", "axes.titlelocation": "left", "axes.spines.top": False, "axes.spines.right": False,
    "legend.frameon": False,
}  # fmt: skip
GAP = 0.2  # inches between axes, one above the other


class Row(NamedTuple):
    """A row of a figure, `high` inches high. paint: draws it, given a subfigure and a position in its grid."""

    high: float
    paint: Any


def empty_figure(wide: float, high: float, title: str = "") -> Figure:
    """Return an empty figure with a size in inches and a layout that makes room for labels."""
    figure = Plot(figsize=(wide, high), layout="constrained", facecolor=GROUND)
    FigureCanvasAgg(figure)
    if title:
        figure.suptitle(title, fontsize=12)
    return figure


def stack_rows_in_figure(rows: Sequence[Row], wide: float) -> Figure:
    """Return a figure of rows below one another, each with its own height and layout. wide: in inches.

    Each row's `paint` is called with its subfigure, and with the grid position for its axes.
    """
    high = sum(row.high for row in rows)
    figure = Plot(figsize=(wide, high), layout=ConstrainedLayoutEngine(hspace=GAP / high), facecolor=GROUND)
    FigureCanvasAgg(figure)
    parts = figure.subfigures(len(rows), 1, height_ratios=[row.high for row in rows], squeeze=False)
    with matplotlib.rc_context(STYLE):
        for part, row in zip(parts[:, 0], rows, strict=True):
            row.paint(part, part.add_gridspec(1, 1)[0, 0])
    return figure


def title_axes(axes: Axes, title: str, caption: str, wide: float) -> None:
    """Write a panel's title on one line above its axes, and its caption below the title. wide: width in inches."""
    lines = textwrap.wrap(visible(caption), int(wide * 14.5))
    axes.set_title(visible(title), fontsize=min(10.0, wide * 120 / max(1, len(title))), pad=6 + 10.5 * len(lines))
    if lines:
        axes.annotate("\n".join(lines), (0, 1), (0, 4), "axes fraction", "offset points", fontsize=8, color=GREY)


def or_nan(values: Sequence[float | None]) -> list[float]:
    """Replace None by NaN, which matplotlib draws as a gap."""
    return [float("nan") if value is None else value for value in values]


def write_figure(figure: Figure, file: Path) -> list[str]:
    """Write a figure atomically, as PNG, SVG or PDF by the file's extension. Returns notes on missing characters.

    An SVG keeps text as text, so that it can be searched and read aloud. A viewer uses the first font of the list that
    is installed, or else any sans-serif font.
    """
    kind = file.suffix.lower().removeprefix(".")
    with (
        warnings.catch_warnings(record=True) as caught,
        matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "regard"}),
        as_written(figure),
    ):
        warnings.simplefilter("always")
        _fix_layout(figure)
        figure.dpi = 130
        with whole(file) as temporary:  # savefig would draw the figure twice, to compute its layout
            if kind == "svg":
                FigureCanvasSVG(figure).print_svg(temporary, metadata={"Date": None})
            elif kind == "pdf":
                FigureCanvasPdf(figure).print_pdf(temporary, metadata={"CreationDate": None})
            else:
                FigureCanvasAgg(figure).print_png(temporary)
    return list(dict.fromkeys(str(warning.message) for warning in caught if str(warning.message).startswith(MISSING)))


def _fix_layout(figure: Figure) -> None:
    """Compute a figure's layout once, and round positions, because the solver's last digits differ each time."""
    if layout := figure.get_layout_engine():
        layout.execute(figure)
    figure.set_layout_engine("none")
    for part in [*figure.subfigs, *(inner for outer in figure.subfigs for inner in outer.subfigs)]:
        part.bbox_relative.p0, part.bbox_relative.p1 = part.bbox_relative.p0.round(7), part.bbox_relative.p1.round(7)
    for axes in all_axes(figure):
        left, bottom, width, height = (round(float(x), 7) for x in axes.get_position(original=True).bounds)
        axes.set_position((left, bottom, width, height), which="original")


def all_axes(figure: FigureBase) -> list[Axes]:
    """Return all axes of a figure and of its subfigures."""
    untyped: Any = figure  # the stubs lack .axes
    return [axes for part in figure.subfigs for axes in all_axes(part)] if figure.subfigs else list(untyped.axes)
