"""A layer's whole attention matrix as a picture: colours on a logarithmic scale, and what every key receives."""

from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import NullFormatter

from regard.explain.matrix import Matrix
from regard.views.canvas import FOLLOWED, whose, write

DECADES = 1e-5  # the smallest weight that has a colour of its own, as a part of the largest


def draw_matrix(matrix: Matrix, file: Path) -> list[str]:
    """Write the picture, PNG or SVG by the file's ending, whole or not at all; returns notes on missing characters.

    Queries down, keys across, counted in tokens. White cells hold no weight at all: a mask or a window's edge. Circles
    are the pairs that are far apart, numbered as they are listed. Above: what the keys of each column receive.
    """
    values, length = np.array(matrix.picture), matrix.tokens
    figure = Figure(figsize=(9.4, 10.2), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(2, 2, height_ratios=(1, 7), width_ratios=(32, 1))
    axes = figure.add_subplot(grid[1, 0])
    largest = float(values.max()) or 1.0
    smallest = max(largest * DECADES, float(values[values > 0].min(initial=largest)))
    smallest = min(smallest, largest / 2)
    norm = LogNorm(vmin=smallest, vmax=largest)
    masked = np.ma.masked_equal(np.where(values > 0, np.maximum(values, smallest), 0), 0)
    across = (0, length, length, 0)
    image = axes.imshow(
        masked, cmap="cividis", norm=norm, extent=across, interpolation="nearest", aspect="auto", origin="upper"
    )
    axes.set_xlabel("attended to (key), in tokens")
    axes.set_ylabel("attending (query), in tokens")
    for number, pair in enumerate(matrix.pairs, 1):
        spot = pair.key.token + 0.5, pair.query.token + 0.5
        axes.plot(*spot, "o", markersize=7, markerfacecolor="none", markeredgecolor=FOLLOWED, markeredgewidth=1.2)
        label = axes.annotate(str(number), spot, textcoords="offset points", xytext=(5, 4), fontsize=9, color=FOLLOWED)
        label.set_path_effects([withStroke(linewidth=2, foreground="white")])
    fainter = bool(((values > 0) & (values < smallest)).any())  # weights that have the last colour all the same
    bar = figure.colorbar(image, cax=figure.add_subplot(grid[1, 1]), extend="min" if fainter else "neither")
    bar.ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    bar.ax.yaxis.set_minor_formatter(NullFormatter())
    bar.ax.tick_params(labelsize=8)
    bar.set_label(f"mean weight of a cell of {_cell(length, values.shape)} (logarithmic)", fontsize=9)
    above = figure.add_subplot(grid[0, 0], sharex=axes)
    edges = np.arange(len(matrix.received) + 1) * length // len(matrix.received)
    above.stairs(matrix.received, edges, color="#0072b2", fill=True, alpha=0.85)
    above.axhline(1, color="#777777", linewidth=0.8, linestyle=":")
    steep = max(matrix.received) > 20 * float(np.median(matrix.received))
    if steep:
        above.set_yscale("log")
        above.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        above.yaxis.set_minor_formatter(NullFormatter())
    above.tick_params(labelbottom=False, labelsize=8)
    above.set_ylabel(f"received{' (log)' if steep else ''}\n1: average", fontsize=9)
    every = f"mean of {len(matrix.heads)} heads"
    told = [] if bool((values > 0).all()) else ["white: no weight at all"]
    if matrix.pairs:
        single = "" if matrix.head is not None else ", of single heads"
        told.append(f"circles: the largest weights more than {matrix.far} tokens apart{single}")
    title = f"Attention of {length:,} tokens, {whose(matrix.layer, matrix.head, every)}"
    above.set_title("\n".join([title, "; ".join(told)]), fontsize=10)
    return write(figure, file)


def _cell(length: int, shape: tuple[int, ...]) -> str:
    """How many tokens a cell covers, in words."""
    each = [length / size for size in shape]
    return "one token" if max(each) == 1 else f"about {each[0]:.3g} × {each[1]:.3g} tokens"
