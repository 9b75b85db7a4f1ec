"""What tests of pictures need: what was drawn, by its name."""

from typing import Any

import numpy as np
from matplotlib.text import Text

from regard.display.canvas import all_axes


def artists(figure: Any) -> dict[str, Any]:
    """What has a name in a figure, by it."""
    return {artist.get_gid(): artist for artist in figure.findobj(lambda each: bool(each.get_gid()))}


def texts_of(figure: Any) -> list[str]:
    """Every text that is not empty, in the order in which it was drawn."""
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def drawn_cells(figure: Any, name: str) -> list[tuple[Any, np.ndarray]]:
    """The axes and the numbers of matrices that `Pen.cells` drew under this name."""
    found = []
    for axes in all_axes(figure):
        own = {mesh.get_gid(): np.ma.filled(mesh.get_array().astype(float), np.nan) for mesh in axes.collections}
        if name in own:
            cells = own[name]
            found.append((axes, np.where(np.isnan(cells), own.get(f"{name} apart", cells), cells)))
    return found


def framed(axes: Any) -> list[tuple[int, int]]:
    """The (row, column) of every framed cell."""
    return [(round(p.get_y()), round(p.get_x())) for p in axes.patches if p.get_gid() == "framed"]


def axes_with(figure: Any, title: str) -> list[Any]:
    """The axes whose title has these words in it, in the order in which they were drawn."""
    return [axes for axes in all_axes(figure) if title in axes.get_title() + axes.get_title(loc="left")]
