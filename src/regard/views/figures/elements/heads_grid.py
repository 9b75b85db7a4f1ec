"""Every head of every layer as a small matrix: layers down, heads across, all in the same colours."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle

from regard.trace.layer_subset import kept_numbers
from regard.trace.trace import Trace
from regard.views.figures.elements.colours import FOLLOWED
from regard.views.figures.elements.weight_cells import bare, paint_weights

GAP = 0.12  # between two matrices, as a part of one


def stacked(trace: Trace) -> dict[int, Any]:
    """The dense weights (H, L, S) of every layer that a trace holds, of those whose keys are its tokens."""
    size = len(trace.tokens)
    found = {n: trace.attention[n].dense().double().cpu().numpy() for n in kept_numbers(trace.attention)}
    return {n: each for n, each in found.items() if each.shape[2] == size}


def paint_grid(axes: Axes, layers: dict[int, Any], own: Sequence[int], chosen: tuple[int, int] | None) -> AxesImage:
    """Draw the matrices (H, L, S) of some layers as one picture, in which they stand a part apart; chosen is framed.

    own: the tokens that the colours are for. Returns the image of the coloured ones.
    """
    rows, size = next(iter(layers.values())).shape[1:]
    gap = max(1, round(GAP * size))
    heads = max(len(each) for each in layers.values())
    down, across = rows + gap, size + gap
    values = np.full((len(layers) * down - gap, heads * across - gap), np.nan)
    for i, each in enumerate(layers.values()):
        for h, matrix in enumerate(each):
            values[i * down : i * down + rows, h * across : h * across + size] = matrix
    coloured = [h * across + n for h in range(heads) for n in own]
    image = paint_weights(axes, values, set(coloured))
    axes.set_xticks([h * across + (size - 1) / 2 for h in range(heads)], map(str, range(heads)), fontsize=8)
    axes.set_yticks([i * down + (rows - 1) / 2 for i in range(len(layers))], map(str, layers), fontsize=8)
    axes.set_xlabel("head", fontsize=8)
    axes.set_ylabel("layer", fontsize=8)
    bare(axes)
    for i in range(len(layers)):
        for h in range(heads):
            mine = chosen == (list(layers)[i], h)
            axes.add_patch(Rectangle((h * across - 0.5, i * down - 0.5), size, rows, fill=False,
                                     edgecolor=FOLLOWED if mine else "#cccccc", linewidth=2 if mine else 0.5,
                                     zorder=3 if mine else 2, gid="framed" if mine else None))  # fmt: skip
    return image
