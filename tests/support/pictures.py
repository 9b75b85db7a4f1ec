"""What tests of the path picture need: it drawn alone, and where its marks are."""

from typing import Any

import numpy as np
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from regard.views.figures import movement
from regard.views.figures.elements.canvas import all_axes


def paint(summary: Any) -> Any:
    """The picture as `draw` lays it out, alone: its axes, after a drawing."""
    height, put = movement.row(summary)
    figure = Figure(figsize=(13, height), layout="constrained")
    FigureCanvasAgg(figure)
    put(figure, figure.add_gridspec(1, 1)[0, 0])
    figure.canvas.draw()
    return figure.axes[0]


def pixels(axes: Any) -> dict[str, torch.Tensor]:
    """Where what has a name was drawn, in pixels."""
    named = [line for line in axes.lines if line.get_gid()]
    return {line.get_gid(): torch.tensor(axes.transData.transform(line.get_xydata())).double() for line in named}


def drawn_weights(axes: Any) -> np.ndarray:
    """The numbers behind the cells of axes that `weight_cells.paint_weights` has drawn on, NaN where there are none."""
    parts = {image.get_gid(): np.ma.filled(image.get_array().astype(float), np.nan) for image in axes.images}
    return np.where(np.isnan(parts["weights"]), parts["apart"], parts["weights"])


def framed(axes: Any) -> list[tuple[int, int]]:
    """The (row, column) of every framed cell."""
    return [(round(p.get_y() + 0.5), round(p.get_x() + 0.5)) for p in axes.patches if p.get_gid() == "framed"]


def axes_with(figure: Any, title: str) -> list[Any]:
    """The axes whose title has these words in it, in the order in which they were drawn."""
    return [axes for axes in all_axes(figure) if title in axes.get_title() + axes.get_title(loc="left")]
