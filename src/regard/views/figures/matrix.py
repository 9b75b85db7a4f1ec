"""A layer's attention over a long text as a picture: the whole matrix, or the band of a text read in windows."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure, FigureBase
from matplotlib.patheffects import withStroke
from matplotlib.ticker import NullFormatter

from regard.explain.matrix import Matrix
from regard.views.figures.canvas import whose, write
from regard.views.figures.colours import FOLLOWED, WEIGHTS

DECADES = 1e-5  # the smallest weight that has a colour of its own, as a part of the largest
NOTHING = "#d9d9d9"  # where there is no pair of tokens in one window


def draw_matrix(matrix: Matrix, file: Path) -> list[str]:
    """Write the picture, PNG or SVG by the file's ending, whole or not at all; returns notes on missing characters.

    Queries down, in tokens. Across, of a text that was read as a whole, the keys, and above what those of each column
    receive. Of a text that was read in windows, how far the key is from the query, since there is no weight beyond a
    window; beside, what the keys of each part of the text receive. White cells hold no weight at all, grey ones no two
    tokens of one window. Circles are the pairs that are far apart, numbered as they are listed.
    """
    return write(paint_matrix(matrix), file)


def paint_matrix(matrix: Matrix) -> Figure:
    """The picture as a figure; its first axes are the matrix or the band."""
    figure = Figure(figsize=(9.4, 10.2), layout="constrained")
    FigureCanvasAgg(figure)
    (_band if matrix.picture is None else _whole)(figure, matrix)
    return figure


def rows(matrix: Matrix) -> list[tuple[float, Any]]:
    """(height, painter) of the row that shows a long text's matrix in a picture of several."""
    return [(9.6, lambda figure, _: _whole(figure, matrix))]


def _whole(figure: FigureBase, matrix: Matrix) -> None:
    values, length = np.array(matrix.picture, dtype=float), matrix.tokens
    grid = figure.add_gridspec(2, 2, height_ratios=(1, 7), width_ratios=(32, 1))
    axes = figure.add_subplot(grid[1, 0])
    _cells(
        axes,
        figure.add_subplot(grid[1, 1]),
        values,
        (0.0, float(length), float(length), 0.0),
        _each(length, length, values.shape),
    )
    axes.set_xlabel("attended to (key), in tokens")
    axes.set_ylabel("attending (query), in tokens")
    _circles(axes, matrix, by_offset=False)
    above = figure.add_subplot(grid[0, 0], sharex=axes)
    edges = _edges(matrix)
    above.stairs(matrix.received, edges, color="#0072b2", fill=True, alpha=0.85)
    above.axhline(1, color="#777777", linewidth=0.8, linestyle=":")
    steep = _steep(matrix)
    if steep:
        above.set_yscale("log")
        above.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        above.yaxis.set_minor_formatter(NullFormatter())
    above.tick_params(labelbottom=False, labelsize=8)
    above.set_ylabel(f"received{' (log)' if steep else ''}\n1: average", fontsize=9)
    every = f"mean of {len(matrix.heads)} heads"
    title = f"Attention of {matrix.tokens:,} tokens, {whose(matrix.layer, matrix.head, every)}"
    above.set_title("\n".join([title, "; ".join(_told(matrix, values))]), fontsize=10)


def _band(figure: Figure, matrix: Matrix) -> None:
    assert matrix.band is not None
    band, length = matrix.band, matrix.tokens
    values = np.array(band.values, dtype=float)  # null becomes NaN
    grid = figure.add_gridspec(1, 3, width_ratios=(28, 5, 1))
    axes = figure.add_subplot(grid[0, 0])
    across = (band.first - 0.5, band.first + band.count - 0.5, float(length), 0.0)
    _cells(axes, figure.add_subplot(grid[0, 2]), values, across, _each(length, band.count, values.shape))
    axes.set_facecolor(NOTHING)
    axes.set_xlabel("offset of the key from the query, in tokens (0: the token itself; left of it: earlier ones)")
    axes.set_ylabel("attending (query), in tokens of the text")
    _circles(axes, matrix, by_offset=True)
    beside = figure.add_subplot(grid[0, 1], sharey=axes)
    beside.stairs(matrix.received, _edges(matrix), orientation="horizontal", color="#0072b2", fill=True, alpha=0.85)
    beside.axvline(1, color="#777777", linewidth=0.8, linestyle=":")
    steep = _steep(matrix)
    if steep:
        beside.set_xscale("log")
        beside.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        beside.xaxis.set_minor_formatter(NullFormatter())
    beside.tick_params(labelleft=False, labelsize=8)
    beside.set_xlabel(f"received\nby the keys there\n1: average{' (log)' if steep else ''}", fontsize=9)
    every = f"mean of {len(matrix.heads)} heads"
    read = f"{band.windows} windows of {band.window} tokens, stride {band.stride}"
    title = f"Attention of {length:,} tokens read in {read}, {whose(matrix.layer, matrix.head, every)}"
    figure.suptitle("\n".join([title, "; ".join(_told(matrix, values))]), fontsize=10)


def _cells(axes: Axes, beside: Any, values: Any, across: tuple[float, float, float, float], each: str) -> None:
    """The cells in colours on a logarithmic scale, and its bar; NaN and 0 have none, 0 is white."""
    there = values[values > 0]
    largest = float(there.max(initial=0)) or 1.0
    smallest = min(max(largest * DECADES, float(there.min(initial=largest))), largest / 2)
    settings: Any = {"extent": across, "interpolation": "nearest", "aspect": "auto", "origin": "upper"}
    image = axes.imshow(
        np.ma.masked_where(~(values > 0), np.maximum(np.nan_to_num(values), smallest)),
        cmap=WEIGHTS, norm=LogNorm(vmin=smallest, vmax=largest), **settings,
    )  # fmt: skip
    if (values == 0).any():
        axes.imshow(np.ma.masked_where(values != 0, np.ones_like(values)), cmap="gray", vmin=0, vmax=1, **settings)
    fainter = bool((there < smallest).any())  # weights that have the last colour all the same
    bar = axes.figure.colorbar(image, cax=beside, extend="min" if fainter else "neither")
    bar.ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    bar.ax.yaxis.set_minor_formatter(NullFormatter())
    bar.ax.tick_params(labelsize=8)
    bar.set_label(f"mean weight of a cell of {each} (logarithmic)", fontsize=9)


def _circles(axes: Axes, matrix: Matrix, *, by_offset: bool) -> None:
    """The far pairs, numbered as they are listed."""
    for number, pair in enumerate(matrix.pairs, 1):
        across = pair.key.token - pair.query.token if by_offset else pair.key.token + 0.5
        spot = across, pair.query.token + 0.5
        axes.plot(*spot, "o", markersize=7, markerfacecolor="none", markeredgecolor=FOLLOWED, markeredgewidth=1.2)
        label = axes.annotate(str(number), spot, textcoords="offset points", xytext=(5, 4), fontsize=9, color=FOLLOWED)
        label.set_path_effects([withStroke(linewidth=2, foreground="white")])


def _told(matrix: Matrix, values: Any) -> list[str]:
    """What the marks and missing colours mean, as far as there are some."""
    legend = ["white: no weight at all"] if bool((values == 0).any()) else []
    if bool(np.isnan(values).any()):
        legend.append("grey: no two tokens of one window")
    if matrix.pairs:
        single = "" if matrix.head is not None else ", of single heads"
        legend.append(f"circles: the largest weights more than {matrix.far} tokens apart{single}")
    return legend


def _edges(matrix: Matrix) -> Any:
    return np.arange(len(matrix.received) + 1) * matrix.tokens // len(matrix.received)


def _steep(matrix: Matrix) -> bool:
    return max(matrix.received) > 20 * float(np.median(matrix.received))


def _each(down: int, across: int, shape: tuple[int, ...]) -> str:
    """How many tokens a cell covers, in words."""
    each = [down / shape[0], across / shape[1]]
    return "one token" if max(each) == 1 else f"about {each[0]:.3g} × {each[1]:.3g} tokens"
