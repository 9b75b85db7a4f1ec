"""Draw a positional encoding, or the cosines of its rows, as a grid of colours."""

from matplotlib.figure import Figure
from torch import Tensor


def position_grid(matrix: Tensor, title: str, across: str = "dimension") -> Figure:
    """Draw a matrix with one row per position: negative numbers are blue, positive ones red."""
    figure = Figure(figsize=(9, 4.4), layout="constrained")
    axes = figure.add_subplot(xlabel=across, ylabel="position", title=title)
    largest = float(matrix.abs().max())
    image = axes.imshow(matrix, cmap="RdBu_r", vmin=-largest, vmax=largest, aspect="auto", interpolation="nearest")
    figure.colorbar(image, ax=axes, fraction=0.04, pad=0.02)
    return figure
