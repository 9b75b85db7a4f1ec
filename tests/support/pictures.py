"""What tests of pictures need: what was drawn into which axes."""

from typing import Any

import numpy as np

from regard.display.elements.canvas import all_axes


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
