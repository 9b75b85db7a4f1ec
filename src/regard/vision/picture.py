"""Draw images under heat maps of the attention to their patches."""

from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from regard.display.canvas import HEAT, STYLE, empty_figure
from regard.display.heatmap import heat_over_picture
from regard.vision.answer import Look

WIDE = 5.2  # width of an image in inches
SCREEN = 900  # maximum number of pixels on an image's longer side


@matplotlib.rc_context(STYLE)
def paint_looks(looks: Sequence[Look], patches: Sequence[Any]) -> Figure:
    """Draw a row per image: unchanged, in grey under its heat map, and in grey under the effects of removed regions."""
    columns = 3 if any(look.removal for look in looks) else 2
    ratios = [item.picture.size[1] / item.picture.size[0] for item in patches]
    figure = empty_figure(columns * WIDE + 1.2, sum(0.7 + WIDE * min(ratio, 2.0) for ratio in ratios))
    grid = figure.subplots(len(looks), columns, squeeze=False, height_ratios=[min(ratio, 2.0) for ratio in ratios])
    for (plain, heated, *extra), look, item in zip(grid, looks, patches, strict=True):
        width, height = item.picture.size
        thumbnail = item.picture.pixels.copy()
        thumbnail.thumbnail((SCREEN, SCREEN))
        left, top, right, bottom = item.seen
        plain.imshow(np.asarray(thumbnail), extent=(0, width, height, 0))
        values = look.heat.numpy().copy()
        sinks = [divmod(patch, values.shape[1]) for patch in look.sinks]
        for row, column in sinks:
            values[row, column] = np.nan
        caption = f"attention from {look.who}, {look.place}"
        evenness = look.almost_even.removesuffix(".").lower()
        notes = ["weight", "hatched: sink patches" * bool(sinks), "framed: what the model saw", evenness]
        maps = [(values, look.darkest, caption, ", ".join(filter(None, notes)))]
        if look.removal is not None:
            effect, action = look.removal.changes.clamp(min=0).numpy(), f"removing a region ({look.removal.fill})"
            maps.append((effect, float(effect.max()), f"effect of {action}", look.removal.unit))
        for axes, (cells, largest, title, label) in zip((heated, *extra), maps, strict=False):
            axes.imshow(np.asarray(thumbnail.convert("L")), extent=(0, width, height, 0), cmap="gray", vmin=0, vmax=255)
            image = heat_over_picture(axes, cells, largest, (left, right, bottom, top))
            axes.add_patch(Rectangle((left, top), right - left, bottom - top, fill=False, edgecolor=HEAT, linewidth=1))
            axes.set_title(title, fontsize=10)
            bar = figure.colorbar(image, ax=axes, fraction=0.046, pad=0.02)
            bar.set_label(label, fontsize=8)
            bar.ax.tick_params(labelsize=7)
        wide, high = (right - left) / values.shape[1], (bottom - top) / values.shape[0]
        for row, column in sinks:
            corner = left + column * wide, top + row * high
            heated.add_patch(Rectangle(corner, wide, high, fill=False, hatch="xxx", edgecolor="0.6", linewidth=0))
        plain.set_title(look.name, fontsize=10)
        for axes in (plain, heated, *extra):
            axes.set(xlim=(0, width), ylim=(height, 0), xticks=[], yticks=[])
    return figure
