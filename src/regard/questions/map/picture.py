"""A layer's attention over a long text as a picture: what matters in it, over the text, and then all of it."""

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure, FigureBase
from matplotlib.patheffects import withStroke
from matplotlib.ticker import NullFormatter

from regard.display.elements.arcs import Link, draw_arcs
from regard.display.elements.canvas import Row, places_spread_apart, stack_rows_in_figure
from regard.display.elements.colours import FOLLOWED, SPECIAL, WEIGHTS
from regard.display.elements.labels import drawn_text_width
from regard.display.figure import drawn
from regard.explain.wording import number
from regard.questions.map.panels import near_offsets_of_map
from regard.text.quoting import spelled

if TYPE_CHECKING:
    from regard.questions.map.answer import Matrix

WIDE = 13.0  # inches
OVER = 4.4  # inches of the arcs
DECADES = 1e-5  # the smallest weight that has a colour of its own, as a part of the largest
NOTHING = "#d9d9d9"  # where there is no pair of tokens in one window
NO_WEIGHT = "#efefef"
BAR = "#4292c6"
LETTER = 0.037  # of the height of what is received that a letter of a name beside it takes


def paint_map(matrix: "Matrix") -> Figure:
    """Return the picture as a figure.

    Over the text: the largest weights between tokens that are far apart as arcs, numbered as they are listed, and below
    them what each part of the text receives. Then the mean weight of each head by how far the key is from the query,
    and beside it all of the matrix, queries down and keys across; of a text that was read in windows, how far the key
    is, since there is no weight beyond a window.
    """
    return stack_rows_in_figure(map_rows(matrix, why=matrix.why), WIDE)


def map_rows(matrix: "Matrix", label: str = "", why: str = "") -> list[Row]:
    """Return the rows that the picture is made of, for a picture of several texts.

    label: what the text is called, before the title. why: the reason for this layer and head, below it.
    """
    return [
        Row(OVER + 1.9, partial(_draw_map_over_text, matrix=matrix, label=label, why=why)),
        Row(5.6, partial(_draw_whole_map, matrix=matrix)),
    ]


def _draw_map_over_text(figure: FigureBase, place: Any, matrix: "Matrix", label: str, why: str) -> None:
    title = f"{label}{matrix.title()}"
    figure.suptitle(f"{title}\n{why}" if why else title, fontsize=12)
    parts = place.subgridspec(2, 1, height_ratios=(OVER, 1.5))
    above = figure.add_subplot(parts[0])
    _draw_far_map_pairs(above, matrix)
    _draw_map_receivers(figure.add_subplot(parts[1], sharex=above), matrix)


def _draw_far_map_pairs(axes: Axes, matrix: "Matrix") -> None:
    """The pairs that are far apart, each an arc."""
    links: list[Link] = []
    named: dict[int, str] = {}
    for place, pair in enumerate(matrix.pairs, 1):
        head = f", head {pair.head}" if matrix.head is None else ""
        links.append(Link(pair.query.token, pair.key.token, pair.weight, f"{place}: {number(pair.weight)}{head}"))
        named |= {each.token: f"{spelled(each.text, 12)} {each.token}" for each in (pair.query, pair.key)}
    draw_arcs(axes, links, matrix.tokens, named, (WIDE - 1.0, OVER - 0.6))
    if not links:
        axes.text(0.5, 0.6, "no link this far", transform=axes.transAxes, ha="center", fontsize=10)
    heads = "" if matrix.head is not None else " in single heads"
    axes.set_title(
        f"Strongest links over more than {matrix.far} tokens{heads}, without special tokens and sinks (● query, ▼ key)",
        fontsize=10,
    )
    axes.tick_params(labelbottom=False, length=0)
    axes.spines["bottom"].set_visible(False)


def _draw_map_receivers(axes: Axes, matrix: "Matrix") -> None:
    """What each part of the text receives, with the tokens that receive most named."""
    edges = np.arange(len(matrix.received) + 1) * matrix.tokens // len(matrix.received)
    axes.stairs(matrix.received, edges, color=BAR, fill=True)
    axes.axhline(1, color="#777777", linewidth=0.8, linestyle=":")
    named = sorted(matrix.receivers, key=lambda each: each.place.token)
    names = [f"{spelled(each.place.text, 10)} {each.received:.2f}" for each in named]
    above = 1 / (1 - min(0.8, 0.07 + LETTER * max(map(drawn_text_width, names), default=0)))  # names are on no bar
    top = max(matrix.received)
    if top > 20 * float(np.median(matrix.received)):
        axes.set_yscale("log")
        axes.yaxis.set_minor_formatter(NullFormatter())
        low, log = axes.get_ylim()[0], True
        ticks = [10.0**n for n in range(-3, 7) if low <= 10.0**n <= top]
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_ylim(low, low * (top / low) ** above)
    else:
        log = False
        axes.set_ylim(0, above * top)
    gap = 0.135 / (WIDE - 1) * matrix.tokens
    places = places_spread_apart([each.place.token for each in named], gap, matrix.tokens - 1 - gap / 2)
    for each, name, at in zip(named, names, places, strict=True):
        colour = SPECIAL if each.special or each.sink else "black"
        axes.annotate(name, (at, 0.98), xycoords=("data", "axes fraction"), rotation=90, ha="center", va="top",
                      fontsize=6.5, color=colour)  # fmt: skip
    axes.set_ylabel(f"received{' (log)' if log else ''}\n1: average", fontsize=8)
    axes.tick_params(labelsize=7)
    grey = ", grey: special tokens and sinks" if any(each.special or each.sink for each in named) else ""
    axes.set_xlabel(f"position in the text (labels: the {len(named)} most attended tokens{grey})", fontsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _draw_whole_map(figure: FigureBase, place: Any, matrix: "Matrix") -> None:
    parts = place.subgridspec(1, 2)
    near = near_offsets_of_map(matrix)
    beside = figure.add_subplot(parts[0])
    drawn(near, True).paint(beside)
    step = max(1, len(near.columns) // 8)
    beside.set_xticks(range(0, len(near.columns), step), near.columns[::step])
    beside.set_title(near.title, fontsize=9)
    axes = figure.add_subplot(parts[1])
    if matrix.band is None:
        values = np.array(matrix.picture, dtype=float)
        extent = (0.0, float(matrix.tokens), float(matrix.tokens), 0.0)
        _colours(figure, axes, values, extent, _each(matrix.tokens, matrix.tokens, values.shape))
        axes.set_xlabel("key position", fontsize=8)
        axes.set_ylabel("query position", fontsize=8)
    else:
        values = np.array(matrix.band.values, dtype=float)  # null becomes NaN
        extent = (matrix.band.first - 0.5, matrix.band.first + matrix.band.count - 0.5, float(matrix.tokens), 0.0)
        axes.set_facecolor(NOTHING)
        _colours(figure, axes, values, extent, _each(matrix.tokens, matrix.band.count, values.shape))
        axes.set_xlabel("key position − query position (below 0: earlier tokens)", fontsize=8)
        axes.set_ylabel("query position", fontsize=8)
    _circle_far_map_pairs(axes, matrix, by_offset=matrix.band is not None)
    axes.set_title(", ".join(_map_title_lines(matrix, values)), fontsize=9)
    axes.tick_params(labelsize=7)


def _colours(figure: FigureBase, axes: Axes, values: Any, across: tuple[float, float, float, float], each: str) -> None:
    """The cells in colours on a logarithmic scale, and its bar; NaN and 0 have none."""
    there = values[values > 0]
    largest = float(there.max(initial=0)) or 1.0
    smallest = min(max(largest * DECADES, float(there.min(initial=largest))), largest / 2)
    settings: Any = {"extent": across, "interpolation": "nearest", "aspect": "auto", "origin": "upper"}
    image = axes.imshow(
        np.ma.masked_where(~(values > 0), np.maximum(np.nan_to_num(values), smallest)),
        cmap=WEIGHTS, norm=LogNorm(vmin=smallest, vmax=largest), **settings,
    )  # fmt: skip
    if (values == 0).any():
        nothing = np.ones((*values.shape, 3)) * int(NO_WEIGHT[1:3], 16) / 255
        axes.imshow(np.concatenate([nothing, (values == 0)[..., None]], -1), **settings)
    fainter = bool((there < smallest).any())  # weights that have the last colour all the same
    bar = figure.colorbar(image, ax=axes, fraction=0.04, pad=0.02, extend="min" if fainter else "neither")
    bar.ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    bar.ax.yaxis.set_minor_formatter(NullFormatter())
    bar.ax.tick_params(labelsize=7)
    bar.set_label(f"mean weight per cell ({each}), log scale", fontsize=8)


def _circle_far_map_pairs(axes: Axes, matrix: "Matrix", *, by_offset: bool) -> None:
    """The far pairs, numbered as they are listed."""
    for place, pair in enumerate(matrix.pairs, 1):
        across = pair.key.token - pair.query.token if by_offset else pair.key.token + 0.5
        spot = across, pair.query.token + 0.5
        axes.plot(*spot, "o", markersize=6, markerfacecolor="none", markeredgecolor=FOLLOWED, markeredgewidth=1.2)
        label = axes.annotate(str(place), spot, textcoords="offset points", xytext=(5, 4), fontsize=8, color=FOLLOWED)
        label.set_path_effects([withStroke(linewidth=2, foreground="white")])


def _map_title_lines(matrix: "Matrix", values: Any) -> list[str]:
    """What is drawn, and what the marks and missing colours mean, as far as there are some."""
    legend = ["Whole matrix" if matrix.band is None else "Whole matrix, by query and offset"]
    if bool((values == 0).any()):
        legend.append("light grey: no weight")
    if bool(np.isnan(values).any()):
        legend.append("grey: not in one window")
    if matrix.pairs:
        legend.append("circles: the links above")
    return legend


def _each(down: int, across: int, shape: tuple[int, ...]) -> str:
    """How many tokens a cell covers, in words."""
    each = [down / shape[0], across / shape[1]]
    return "1 token" if max(each) == 1 else f"about {each[0]:.3g} × {each[1]:.3g} tokens"
