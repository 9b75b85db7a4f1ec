"""What every picture is put together from: names on axes, and the writing of the file."""

import io
import unicodedata
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure, FigureBase
from matplotlib.font_manager import fontManager
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Text

from regard.display.elements.colours import FOLLOWED, SPECIAL
from regard.files import whole
from regard.text.quoting import spelled
from regard.text.tokens import Token

FALLBACK_FONTS = ("Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Emoji", "Noto Sans", "Symbola", "Arial Unicode MS",
                  "Hiragino Sans", "Microsoft YaHei", "Segoe UI Emoji")  # fmt: skip
MISSING = "No installed font has "


class Plot(Figure):
    """A figure of any backend. A notebook shows it without pyplot, which would keep it and choose a backend."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png")
        return file.getvalue()

    def draw(self, renderer: Any) -> None:
        """Draw all texts as they are; warn once of all characters that no installed font has."""
        with as_written(self), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            super().draw(renderer)
        codes = [int(said.split()[1]) for each in caught if (said := str(each.message)).startswith("Glyph ")]
        lost = dict.fromkeys(f"{chr(code)!r} ({unicodedata.name(chr(code), 'unnamed')})" for code in codes)
        svg = self.canvas.get_default_filetype() == "svg"
        then = "The SVG uses the fonts of the reader's computer." if svg else "They are drawn as boxes."
        if lost:
            warnings.warn(f"{MISSING}{', '.join(lost)}. {then}", stacklevel=2)


@contextmanager
def as_written(artist: Artist) -> Iterator[None]:
    """Show texts as they are, whatever the user's settings, also those that are made meanwhile."""
    fonts = write_texts_as_they_are(artist)
    with matplotlib.rc_context({"text.usetex": False, "text.parse_math": False, "font.sans-serif": fonts}):
        yield


def write_texts_as_they_are(artist: Artist) -> list[str]:
    """Write its texts without TeX and formulas, in fonts that have their characters; returns these."""
    here = fontManager.get_font_names()
    fonts = ["DejaVu Sans", *(name for name in FALLBACK_FONTS if name in here)]
    for text in artist.findobj(Text):
        text.set(fontfamily=[*fonts, "sans-serif"], usetex=False, parse_math=False)
    return fonts


def notes_of(caught: Sequence[warnings.WarningMessage]) -> list[str]:
    """Return what `Plot` warned of."""
    return list(dict.fromkeys(str(each.message) for each in caught if str(each.message).startswith(MISSING)))


GAP = 0.2  # inches between axes, one above the other
LABELS = 48  # tokens up to which every row and column is named


class Row(NamedTuple):
    """A part of a picture, so many inches high. paint: draws it into its part of the figure and the place there."""

    high: float
    paint: Any


def empty_figure(wide: float, high: float, title: str = "") -> Figure:
    """Begin a picture of so many inches, which lays out what comes into it."""
    figure = Plot(figsize=(wide, high), layout="constrained")
    FigureCanvasAgg(figure)
    if title:
        figure.suptitle(title, fontsize=12)
    return figure


def stack_rows_in_figure(rows: Sequence[Row], wide: float) -> Figure:
    """Put rows below one another, each as high as it says, in inches, and laid out by itself.

    A row's painter is called with its part of the figure, and with the place in that part for its axes.
    """
    high = sum(row.high for row in rows)
    figure = Plot(figsize=(wide, high), layout=ConstrainedLayoutEngine(hspace=GAP / high))  # a share of the whole
    FigureCanvasAgg(figure)
    parts = figure.subfigures(len(rows), 1, height_ratios=[row.high for row in rows], squeeze=False)
    for part, row in zip(parts[:, 0], rows, strict=True):
        row.paint(part, part.add_gridspec(1, 1)[0, 0])
    return figure


def places_spread_apart(places: Sequence[int], gap: float, last: float) -> list[float]:
    """Places in order, moved apart to at least gap where they fit before last, and no further than that takes."""
    gap = min(gap, last / max(1, len(places) - 1))
    found: list[float] = []
    for place in places:
        found.append(max(float(place), found[-1] + gap) if found else float(place))
    for n in range(len(found) - 1, -1, -1):
        found[n] = min(found[n], last - gap * (len(found) - 1 - n))
    return found


def or_nan(values: Sequence[float | None]) -> list[float]:
    """Numbers as matplotlib draws them: NaN, a gap, where there is none."""
    return [float("nan") if value is None else value for value in values]


def token_names_on_axis(tokens: Sequence[Token]) -> tuple[list[int], list[str], int]:
    """(places, names, size) of the tokens on an axis: every one, or of many every so many-th with its number."""
    step = max(1, -(-len(tokens) // LABELS))
    places = list(range(0, len(tokens), step))
    labels = [spelled(tokens[n].text, 16) for n in places]
    size = 8 if len(tokens) <= 24 else 6 if len(tokens) <= LABELS else 5
    return places, labels if step == 1 else [f"{n} {name}" for n, name in zip(places, labels, strict=True)], size


def mark_names(
    axes: Axes, which: str, tokens: Sequence[Token], followed: Collection[int] = (), sinks: Collection[int] = ()
) -> None:
    """Grey names for special tokens and sinks, which are named as such, coloured ones for the followed word."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    places, labels, _ = token_names_on_axis(tokens)
    labels = [f"{name} (sink)" if place in sinks else name for place, name in zip(places, labels, strict=True)]
    if sinks:
        axis.set_ticks(places, labels)
    for place, label in zip(places, axis.get_ticklabels(), strict=True):
        if tokens[place].special or place in sinks:
            label.set_color(SPECIAL)
        if place in followed:
            label.set_color(FOLLOWED)
            label.set_fontweight("bold")


def name_of_drawn_weights(layer: int, head: int | None) -> str:
    """What weights a picture shows."""
    return f"layer {layer}, {'mean of heads' if head is None else f'head {head}'}"


def write_figure(figure: Figure, file: Path) -> list[str]:
    """Write a picture, PNG, SVG or PDF by the file's ending, whole or not at all; returns notes on what it has not.

    An SVG's text is text, to be searched and read aloud; whoever shows it takes the first font of the list that is
    there, in the end any without serifs.
    """
    kind = file.suffix.lower().removeprefix(".")
    with (
        warnings.catch_warnings(record=True) as caught,
        matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "regard"}),
        as_written(figure),
    ):
        warnings.simplefilter("always")
        _settle(figure)
        figure.dpi = 130
        with whole(file) as temporary:  # savefig would draw it once more before this, to lay it out
            if kind == "svg":
                FigureCanvasSVG(figure).print_svg(temporary, metadata={"Date": None})
            elif kind == "pdf":
                FigureCanvasPdf(figure).print_pdf(temporary, metadata={"CreationDate": None})
            else:
                FigureCanvasAgg(figure).print_png(temporary)
    return notes_of(caught)


def _settle(figure: Figure) -> None:
    """Lay the figure out, once, in rounded numbers: the layout's solver is off by other last digits each time."""
    if layout := figure.get_layout_engine():
        layout.execute(figure)
    figure.set_layout_engine("none")
    for part in [*figure.subfigs, *(inner for outer in figure.subfigs for inner in outer.subfigs)]:
        part.bbox_relative.p0, part.bbox_relative.p1 = part.bbox_relative.p0.round(7), part.bbox_relative.p1.round(7)
    for axes in all_axes(figure):
        left, bottom, width, height = (round(float(x), 7) for x in axes.get_position(original=True).bounds)
        axes.set_position((left, bottom, width, height), which="original")


def all_axes(figure: FigureBase) -> list[Axes]:
    """Every axes of a figure and of its parts."""
    whole: Any = figure  # whose .axes the stubs do not know
    return [axes for part in figure.subfigs for axes in all_axes(part)] if figure.subfigs else list(whole.axes)
