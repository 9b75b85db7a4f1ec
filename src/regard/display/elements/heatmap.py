"""A small matrix as a picture: every cell a colour, with its number where there is room."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, FigureBase
from torch import Tensor

from regard.display.elements.colours import DIFFERENCES, WEIGHTS

NUMBERS = 12  # rows and columns up to which the numbers are written into the cells


def heatmap(
    matrix: Float[Tensor, "rows columns"],
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    *,
    title: str = "",
    diverging: bool = False,
    labels: tuple[str, str] = ("", ""),
    largest: float | None = None,
    numbers: bool | None = None,
    unit: str = "",
    axes: Axes | None = None,
) -> FigureBase:
    """Draw a matrix into axes, or into a figure of its own; the figure is returned, to save or to show.

    rows, columns: names of them, empty for none, by default their numbers. diverging: colours that are white at 0, blue
    below and red above, for numbers of both signs; else from white, at 0, to dark. labels: what stands down and across.
    largest: the value of the darkest colour, by default the largest there is. numbers: written into the cells, by
    default where there are few. unit: what they are. Cells without a number (NaN) are hatched.
    """
    if axes is None:
        height, width = (1.6 + 0.42 * min(size, 24) for size in matrix.shape)
        figure = Figure(figsize=(max(3.6, width + 0.6), max(2.4, height)), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
    values = matrix.detach().cpu().double().numpy()
    known = values[np.isfinite(values)]
    largest = max(largest or float(abs(known).max(initial=0.0)), 1e-12)
    low, colours = (-largest, DIFFERENCES) if diverging else (min(0.0, float(known.min(initial=0.0))), WEIGHTS)
    if known.size < values.size:
        axes.patch.set(hatch="////", facecolor="white", edgecolor="0.8")
    image = axes.imshow(values, cmap=colours, vmin=low, vmax=largest, interpolation="nearest")
    if rows is not None:
        named = [n for n, name in enumerate(rows) if name]
        axes.set_yticks(named, [rows[n] for n in named])
    if columns is not None:
        named = [n for n, name in enumerate(columns) if name]
        axes.set_xticks(named, [columns[n] for n in named], rotation=90 if max(map(len, columns), default=0) > 3 else 0)
    axes.tick_params(labelsize=8)
    axes.set_title(title, fontsize=10)
    axes.set_ylabel(labels[0], fontsize=8)
    axes.set_xlabel(labels[1], fontsize=8)
    if max(values.shape) <= NUMBERS if numbers is None else numbers:
        for (row, column), value in np.ndenumerate(values):
            if not np.isfinite(value):
                continue
            dark = abs(value) > 0.6 * largest if diverging else value > low + 0.6 * (largest - low)
            axes.text(column, row, f"{value:z.2f}", ha="center", va="center", fontsize=7, color="w" if dark else "k")
    whole: Figure = axes.figure  # type: ignore[assignment]
    bar = whole.colorbar(image, ax=axes, fraction=0.046, pad=0.03)
    bar.ax.tick_params(labelsize=7)
    bar.set_label(unit, fontsize=8)
    return whole
