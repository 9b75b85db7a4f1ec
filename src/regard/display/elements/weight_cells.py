"""Attention weights as cells of colour: one scale for what tokens mean, grey for special tokens and sinks."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle

from regard.display.elements.colours import APART, FOLLOWED, WEIGHTS, weight_scale
from regard.explain.wording import in_plot
from regard.text.tokens import Token

NUMBERED = 26  # rows and columns up to which cells carry their weight
TOLD = 0.1  # the least weight that is written into its cell


def largest_own(values: Any, own: Sequence[int]) -> float:
    """The largest weight on such a token: where the colours end."""
    return max(float(values[..., list(own)].max(initial=0)), 1e-6)


def paint_weights(axes: Axes, values: Any, own: Collection[int], largest: float = 1.0) -> AxesImage:
    """Draw weights (rows, keys) by the square root of each; NaN is left white.

    Returns the image of the coloured ones, for a bar beside it.

    own: the keys in colours, up to largest; all others are grey, up to 1. largest: the weight of the darkest colour.
    """
    nothing = np.isnan(values)
    apart = np.broadcast_to([n not in own for n in range(values.shape[1])], values.shape)
    shown: dict[str, Any] = {"aspect": "auto", "interpolation": "nearest"}
    axes.imshow(np.ma.masked_array(values, ~apart | nothing), cmap=APART, norm=weight_scale(1.0), gid="apart", **shown)
    return axes.imshow(
        np.ma.masked_array(values, apart | nothing), cmap=WEIGHTS, norm=weight_scale(largest), gid="weights", **shown
    )


def write_weights(axes: Axes, values: Any, own: Collection[int], largest: float = 1.0) -> None:
    """Write weights of 0.1 and more into their cells, with thin lines between cells, where there is room for that.

    axes, values, own, largest: as `paint_weights` took them.
    """
    if max(values.shape) > NUMBERED:
        return
    axes.set_xticks(np.arange(values.shape[1] + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(values.shape[0] + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="#e6e6e6", linewidth=0.6)
    axes.tick_params(which="minor", length=0)
    size = 7 if values.shape[1] <= 20 else 6
    for i, j in zip(*np.nonzero(values >= TOLD), strict=True):
        dark = (values[i, j] / (largest if j in own else 1.0)) ** 0.5 > 0.6
        number = in_plot(values[i, j], 2)
        axes.text(j, i, number, ha="center", va="center", fontsize=size, color="white" if dark else "#333333")


def frame(axes: Axes, row: int, column: int) -> None:
    """Frame one cell."""
    axes.add_patch(
        Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=FOLLOWED, linewidth=2, zorder=3, gid="framed")
    )


def bare(axes: Axes, edge: str | None = None) -> None:
    """Take off the axes' marks, and draw their edge in one light colour or not at all."""
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(edge is not None)
        if edge is not None:
            spine.set_color(edge)


def weight_bar(figure: FigureBase, image: Any, axes: Any, tokens: Sequence[Token], sinks: Collection[int]) -> None:
    """The scale beside what is drawn, with what its colours are and what is grey.

    image: of the coloured weights, which `paint_weights` gave. sinks: numbers of those that are attention sinks.
    """
    bar = figure.colorbar(image, ax=axes, fraction=0.04, pad=0.02)
    largest = image.norm.vmax
    step = next(each for each in (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1) if largest / each <= 6)
    ticks = [0, step / 4, *np.arange(step, largest * 1.001, step)]
    bar.set_ticks(ticks, labels=[f"{tick:.4g}" for tick in ticks])
    bar.ax.minorticks_off()
    bar.ax.tick_params(labelsize=7)
    bar.outline.set_visible(False)
    kinds = [
        name for name, some in (("special tokens", any(t.special for t in tokens)), ("sinks", bool(sinks))) if some
    ]
    grey = f"; grey: {' and '.join(kinds)}" if kinds else ""
    bar.set_label(f"weight, square-root scale{grey}", fontsize=7)
