"""Draw text, cells of weights, arcs, boxes and axes into a figure, in points from its upper left corner."""

import re
import warnings
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, PowerNorm
from matplotlib.figure import FigureBase
from matplotlib.font_manager import FontProperties, fontManager
from matplotlib.patches import FancyBboxPatch, PathPatch, Rectangle
from matplotlib.path import Path
from matplotlib.textpath import text_to_path

from regard.display.canvas import FALLBACK_FONTS, GREY, GROUND, INK, RULE, SANS, SERIF, SINK, tint

CURVE = [Path.MOVETO, *[Path.CURVE4] * 3]
SLIDE = 960.0, 540.0  # points: 16:9
SMALLEST = 4.5  # points: text that doesn't fit isn't made smaller than this
Real = int | float
Run = tuple[str, str, bool, Real]  # a text, its colour, whether it is bold, and its size as a fraction of the line's


class Pen:
    """A pen that draws into a subfigure. Coordinates and sizes are in points, from the upper left corner."""

    def __init__(self, part: FigureBase, wide: Real, high: Real, ground: str = GROUND) -> None:
        self.part, self.wide, self.high, self.ground = part, wide, high, ground
        part.set_facecolor(ground)
        self.axes = self.inset(0, 0, wide, high)
        self.axes.set(xlim=(0, wide), ylim=(high, 0))
        self.axes.set_axis_off()

    def text(
        self, x: Real, y: Real, text: str, size: Real, colour: str = INK, align: str = "left", *,
        bold: bool = False, serif: bool = False, room: Real = float("inf"), **more: Any,
    ) -> Real:  # fmt: skip
        """Write a text on a baseline, in a smaller size if it doesn't fit the room. Returns its width in points."""
        size = min(size, max(SMALLEST, size * room / max(1.0, text_width(text, size, bold, serif))))
        self.axes.text(x, y, text, fontsize=size, color=colour, ha=align, fontweight="bold" if bold else "normal",
                       fontfamily="serif" if serif else "sans-serif", **more)  # fmt: skip
        return text_width(text, size, bold, serif)

    def runs(self, x: Real, y: Real, runs: Sequence[Run], size: Real, room: Real) -> None:
        """Write several texts on one line, in a smaller size if they don't fit the room."""
        wide = sum(text_width(text, part * size, bold) for text, _, bold, part in runs)
        size = min(size, max(SMALLEST, size * room / max(1.0, wide)))
        for text, colour, bold, part in runs:
            for word in re.findall(r"\s+|\S+", text):  # word by word, so that errors in width don't add up
                if not word.isspace():
                    self.text(x, y, word, part * size, colour, bold=bold)
                x += text_width(word, part * size, bold)

    def headline(self, sentences: Sequence[str], runs: Sequence[Run] = ()) -> None:
        """Write a slide's title, by default the first sentence with grey parentheses, and other sentences below."""
        parts = filter(None, re.split(r"(\([^)]*\))", sentences[0]))
        plain = [(part, *((GREY, False, 0.62) if part.startswith("(") else (INK, True, 1.0))) for part in parts]
        self.runs(24, 42, runs or plain, 20, self.wide - 48)
        self.runs(24, 64, [(" ".join(sentences[1:]), GREY, False, 1.0)], 11, self.wide - 48)

    def title(
        self, x: Real, y: Real, text: str, room: Real, under: str = "", sizes: tuple[Real, Real] = (11.0, 8.6)
    ) -> Real:
        """Write a panel's name, and below it how to read the panel. Returns the y at which the panel begins."""
        self.text(x, y + sizes[0] * 0.8, text, sizes[0], bold=True, room=room)
        self.text(x, y + sizes[0] * 0.8 + sizes[1] * 1.35, under, sizes[1], GREY, room=room)
        return y + sizes[0] * 1.2 + sizes[1] * 1.5 * bool(under)

    def box(self, x: Real, y: Real, wide: Real, high: Real, colour: str, edge: str = "none", **more: Any) -> None:
        """Draw a rectangle with rounded corners."""
        style = f"round,pad=0,rounding_size={min(2.2, high / 8)}"
        self.axes.add_patch(FancyBboxPatch((x, y), wide, high, style, fc=colour, ec=edge, **more))

    def shape(self, points: Sequence[tuple[Real, Real]], colour: str, wide: Real = 0.0, **more: Any) -> None:
        """Draw an arc with eight corners, or a Bézier curve with four points. wide: line width, 0 to fill it."""
        path = Path(points, [*CURVE, Path.LINETO, *CURVE[1:]] if len(points) > 4 else CURVE)
        fill, edge = ("none", colour) if wide else (colour, "none")
        self.axes.add_patch(PathPatch(path, lw=wide, fc=fill, ec=edge, **more))

    def inset(self, x: Real, y: Real, wide: Real, high: Real, size: Real = 8.0) -> Axes:
        """Return new axes at a position, without a frame. size: the size of their grey tick labels in points."""
        bounds = (x / self.wide, 1 - (y + high) / self.high, wide / self.wide, high / self.high)
        axes = self.part.add_axes(bounds, facecolor="none")
        axes.spines[:].set_visible(False)
        axes.tick_params(labelsize=size, labelcolor=GREY, color=RULE, length=0, pad=2)
        return axes

    def cells(
        self, x: Real, y: Real, wide: Real, high: Real, values: np.ndarray, hue: str,
        names: Sequence[Sequence[str]] = ((), ()), *, size: Real = 8.0, power: Real = 0.75,
        apart: Collection[int] = (), gid: str = "", rotation: Real = 0,
    ) -> Axes:  # fmt: skip
        """Draw a matrix of weights as cells in shades of a hue. The columns in `apart` are grey. Returns the axes.

        names: the names of rows and of columns, thinned to fit. power: a shade is the weight to this power.
        """
        axes, (rows, columns) = self.inset(x, y, wide, high, size), values.shape
        grey = np.broadcast_to([n in apart for n in range(columns)], values.shape)
        for colour, hidden, kind in ((hue, grey, ""), (SINK, ~grey, " apart")):
            if not hidden.all():
                scale = LinearSegmentedColormap.from_list("hue", [tint(colour, 0.04, self.ground), colour])
                axes.pcolormesh(np.ma.masked_array(values, hidden), cmap=scale, norm=PowerNorm(power, 0, 1, clip=True),
                                edgecolors=self.ground, gid=gid + kind,
                                linewidth=min(1.6, 0.12 * min(wide / columns, high / rows)))  # fmt: skip
        axes.set(xlim=(0, columns), ylim=(rows, 0), xticks=[], yticks=[])
        axes.xaxis.tick_top()
        for axis, labels, room in ((axes.yaxis, names[0], high / rows), (axes.xaxis, names[1], wide / columns)):
            letters = 1 if rotation or axis is axes.yaxis else max(map(len, labels), default=1) * 0.75
            step = -(-size * letters // room) if labels else 1
            positions = range(0, len(labels), max(1, int(step)))
            axis.set_ticks([n + 0.5 for n in positions], [labels[n] for n in positions])
        if rotation:
            axes.tick_params(axis="x", rotation=rotation)
            for label in axes.get_xticklabels():
                label.set(ha="left", rotation_mode="anchor")
        return axes


def mark(axes: Axes, x: Real, y: Real | None, number: int, colour: str, size: Real, ground: str) -> None:
    """Draw a point: a circle for the first text, a square for the second. If y is None, draw nothing."""
    if y is not None:
        axes.plot([x], [y], "os"[number], color=colour, ms=size, mec=ground, mew=size / 8, clip_on=False, zorder=5)


def frame(axes: Axes, x: Real, y: Real, wide: Real = 1, high: Real = 1, line: Real = 1.8) -> None:
    """Draw a frame around one or more cells of axes."""
    rectangle = Rectangle((x, y), wide, high, fill=False, ec=INK, lw=line, gid="framed", clip_on=False, zorder=4)
    axes.add_patch(rectangle)


def ribbon(x0: Real, x1: Real, wide: Real, lift: Real, up: int, unit: Real) -> list[tuple[Real, Real]]:
    """Return the eight corners of an arc over y = 0, from its thin end x0 to its wide end x1, for `Pen.shape`.

    up: -1 for above, 1 for below.
    """
    half, thin = wide / 2 * (1 if x1 < x0 else -1), 0.6 * unit
    outer, inner = up * (lift + wide * 0.42), up * max(6 * unit, lift - wide * 0.42)
    return [(x0 - thin, 0), (x0 - thin, outer), (x1 - half, outer), (x1 - half, 0), (x1 + half, 0), (x1 + half, inner),
            (x0 + thin, inner), (x0 + thin, 0)]  # fmt: skip


@lru_cache(maxsize=4096)
def text_width(text: str, size: Real, bold: bool = False, serif: bool = False) -> Real:
    """Return the width of a text in points, including blanks at its ends."""
    family = [name for name in (*(SERIF if serif else SANS), *FALLBACK_FONTS) if name in fontManager.get_font_names()]
    font = FontProperties(family=family, weight="bold" if bold else "normal", size=100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about characters that no font has: drawing also warns
        measure = text_to_path.get_text_width_height_descent
        total, ends = (measure(text, font, ismath=False)[0] for text in (f"|{text}|", "||"))
    return float(total - ends) * size / 100
