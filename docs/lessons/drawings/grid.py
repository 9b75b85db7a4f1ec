"""A small matrix as a grid of colours: darker is more; with its numbers where there is room for them."""

from collections.abc import Sequence

from jaxtyping import Float
from matplotlib.axes import Axes
from torch import Tensor

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
    """Draw a matrix into axes, the names of its rows and columns beside it, and a bar of its colours.

    diverging: white at 0, blue below, red above, for numbers of both signs; else from white, at 0, to dark. labels:
    what stands down and across.
    """
    values = matrix.detach().double()
    largest = max(float(values.abs().max()), 1e-12)
    image = axes.imshow(values.numpy(), cmap="RdBu_r" if diverging else "Blues", vmin=-largest if diverging else 0,
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
                value = float(values[row, column])
                if abs(value) >= 0.005:  # of the others the colour says that they are next to nothing
                    dark = abs(value) > 0.6 * largest
                    axes.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=7, color="wk"[not dark])
    figure = axes.figure
    figure.colorbar(image, ax=axes, fraction=0.046, pad=0.03).ax.tick_params(labelsize=7)
