"""One attention map as a picture: queries down, keys across, named by their tokens; a large one in means."""

from typing import TYPE_CHECKING

from regard.checks import from_zero
from regard.display.elements.heatmap import heatmap
from regard.errors import RegardError
from regard.text.quoting import spelled
from regard.trace.labelled_map import LabelledMap

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMED = 48  # tokens up to which a map is drawn cell by cell, with their names
CELLS = 256  # cells a side of the picture of a larger map, each the mean of what it stands for


def paint(weights: LabelledMap, head: int | None = None, axes: "Axes | None" = None) -> "Axes":
    """Draw a map (H, L, S) into axes, by default new ones of pyplot. head: None for the mean of all heads.

    A map of more than 48 tokens a side is drawn as at most 256 × 256 cells, each the mean of the weights that it stands
    for.

    Raises:
        RegardError: there is no such head.
    """
    heads, length, size = weights.shape
    if head is not None and (isinstance(head, bool) or not isinstance(head, int)):
        raise RegardError(f"head: given {head!r}, needs a number, or None for the mean of all")
    if axes is not None and not hasattr(axes, "imshow"):
        raise RegardError(f"axes: given {type(axes).__name__}, needs matplotlib's Axes, or None for new ones")
    if head is not None:
        head = from_zero("head", head, heads, "the map has")
    whose = f"mean of {heads} heads" if head is None else f"head {head}"
    if axes is None:
        import matplotlib.pyplot as plt

        _, axes = plt.subplots(figsize=size_in_inches(weights, 0.3), layout="constrained")
    rows, columns = (
        None if labels is None or len(labels.tokens) != count else [spelled(token.text, 16) for token in labels.tokens]
        for labels, count in ((weights.query_labels, length), (weights.key_labels, size))
    )
    if max(length, size) <= NAMED:
        matrix = weights.dense().mean(0) if head is None else weights[head]
        title = f"attention weights, {whose}"
        heatmap(matrix, rows, columns, title=title, labels=("query", "key"), axes=axes)
        return axes
    pooled = weights.pooled(min(CELLS, length), min(CELLS, size))
    matrix = pooled.mean(0) if head is None else pooled[head]
    title = f"attention weights, {whose}: {length} × {size}, a cell is the mean of its weights"
    heatmap(matrix, title=title, labels=("query", "key"), axes=axes)
    return axes


def size_in_inches(weights: LabelledMap, cell: float) -> tuple[float, float]:
    """Return the size of a figure that has one map, with cells so large while there are few, as (width, height)."""
    height, width = (max(3.2, 1.6 + cell * min(count, NAMED)) for count in weights.shape[1:])
    return width + 0.8, height
