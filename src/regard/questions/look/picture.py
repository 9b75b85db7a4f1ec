"""Draw pictures under the heat of their patches: blue where the model looks, the darker the more."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from regard.display.elements.colours import HEAT, HEAT_OVER

if TYPE_CHECKING:
    from regard.questions.look.answer import Look

WIDE = 5.2  # inches of a picture
SCREEN = 900  # pixels of its longer side


def paint_looks(looks: "Sequence[Look]", patches: Sequence[Any]) -> Figure:
    """Draw a row for each picture: as it was given, and grey under its heat, with a box around what the model saw."""
    ratios = [each.picture.size[1] / each.picture.size[0] for each in patches]
    figure = Figure(
        figsize=(2 * WIDE + 1.2, sum(0.7 + WIDE * min(ratio, 2.0) for ratio in ratios)), layout="constrained"
    )
    FigureCanvasAgg(figure)
    grid = figure.subplots(len(looks), 2, squeeze=False, height_ratios=[min(ratio, 2.0) for ratio in ratios])
    for (plain, heated), look, each in zip(grid, looks, patches, strict=True):
        width, height = each.picture.size
        small = each.picture.pixels.copy()
        small.thumbnail((SCREEN, SCREEN))
        left, top, right, bottom = each.seen
        plain.imshow(np.asarray(small), extent=(0, width, height, 0))
        heated.imshow(np.asarray(small.convert("L")), extent=(0, width, height, 0), cmap="gray", vmin=0, vmax=255)
        values = look.heat.numpy().copy()
        apart = [divmod(patch, values.shape[1]) for patch in look.apart]
        largest = max([float(values.flatten()[patch]) for patch in look.order], default=0.0)
        for row, column in apart:
            values[row, column] = np.nan
        scale = Normalize(0, largest or 1.0)
        image = heated.imshow(
            values, extent=(left, right, bottom, top), cmap=HEAT_OVER, norm=scale, interpolation="nearest"
        )
        wide, high = (right - left) / values.shape[1], (bottom - top) / values.shape[0]
        for row, column in apart:
            place = left + column * wide, top + row * high
            heated.add_patch(Rectangle(place, wide, high, fill=False, hatch="xxx", edgecolor="0.6", linewidth=0))
        heated.add_patch(Rectangle((left, top), right - left, bottom - top, fill=False, edgecolor=HEAT, linewidth=1))
        of = f"mean of {look.heads} heads" if look.head is None else f"head {look.head}"
        plain.set_title(look.name, fontsize=10)
        verb = "look" if look.query is None else "looks"
        heated.set_title(f"where {look.who} {verb}: layer {look.layer}, {of}", fontsize=10)
        bar = figure.colorbar(image, ax=heated, fraction=0.046, pad=0.02)
        bar.set_label("weight" + "; hatched: told apart" * bool(apart) + "; framed: what the model saw", fontsize=8)
        bar.ax.tick_params(labelsize=7)
        for axes in (plain, heated):
            axes.set(xlim=(0, width), ylim=(height, 0), xticks=[], yticks=[])
    return figure
