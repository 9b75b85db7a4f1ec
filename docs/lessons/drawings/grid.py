"""A small matrix as a grid of colours: darker is larger. Up to 12 × 12, each cell shows its number."""

from collections.abc import Sequence
from math import isnan, nan

from jaxtyping import Float
from matplotlib import colormaps
from matplotlib.axes import Axes
from torch import Tensor

from drawings.sheet import signed

NUMBERS = 12  # rows and columns up to which the numbers are written into the cells


def heatmap(
    matrix: Float[Tensor, "rows columns"],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    title: str = "",
    diverging: bool = False,
    labels: tuple[str, str] = ("", ""),
    axes: Axes,
) -> None:
    """Draw a matrix into axes, with the names of its rows and columns and a bar of its colours.

    diverging: for numbers of both signs: white at 0, red below, blue above. Else from white, at 0, to dark blue, and
    cells that are exactly 0, as after a mask, are grey and empty. labels: names of the two axes, down and across.
    """
    values = matrix.detach().double()
    largest = max(float(values.abs().max()), 1e-12)
    colours = signed() if diverging else colormaps["Blues"].with_extremes(bad="#e2e2e2")
    shown = values if diverging else values.masked_fill(values == 0, nan)
    image = axes.imshow(shown.numpy(), cmap=colours, vmin=-largest if diverging else 0,
                        vmax=largest, interpolation="nearest")  # fmt: skip
    axes.set_yticks(range(len(rows)), rows)
    axes.set_xticks(range(len(columns)), columns, rotation=90)
    axes.tick_params(labelsize=8)
    axes.set_title(title, fontsize=10)
    axes.set_ylabel(labels[0], fontsize=8)
    axes.set_xlabel(labels[1], fontsize=8)
    if max(values.shape) <= NUMBERS:
        for row in range(len(rows)):
            for column in range(len(columns)):
                value = float(shown[row, column])
                if not isnan(value):
                    dark = abs(value) > 0.6 * largest
                    axes.text(column, row, f"{value:z.2f}", ha="center", va="center", fontsize=7, color="wk"[not dark])
    figure = axes.figure
    figure.colorbar(image, ax=axes, fraction=0.046, pad=0.03).ax.tick_params(labelsize=7)
