"""What tests of the path picture need: it drawn alone, and where its marks are."""

from typing import Any

import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from regard.views.figures import movement


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
