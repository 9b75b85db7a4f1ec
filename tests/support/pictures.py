"""What tests of the path picture need: it drawn alone, and where its marks are."""

from typing import Any

import numpy as np
import torch

from regard.display.elements.canvas import all_axes, stack_rows_in_figure
from regard.questions.movement.picture import paths


def painted(summary: Any, rows: slice = slice(None)) -> Any:
    """The rows of the word's way as `draw` lays them out, all or some of them: the figure, after a drawing."""
    figure = stack_rows_in_figure(paths.path_rows(summary)[rows], 13.0)
    figure.canvas.draw()
    return figure


def plane_of(figure: Any) -> Any:
    """The axes of the plane in such a figure, None where there is none."""
    return next((axes for axes in all_axes(figure) if any("end " in (n.get_gid() or "") for n in axes.lines)), None)


def paint(summary: Any) -> Any:
    """The axes of the plane of a word's movement, drawn."""
    return plane_of(painted(summary, slice(-1, None)))  # the curves above it take time


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
