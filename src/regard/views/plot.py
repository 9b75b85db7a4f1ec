"""Draw attention as a heat map or over an image (`regard.plot`), and the calls of a watched program (`regard run`)."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.display.canvas import empty_figure, write_figure
from regard.display.heatmap import paint_heatmap, paint_patches
from regard.errors import RegardError
from regard.images import read_picture
from regard.trace.any_attention import PatchGrid, labelled, named_maps

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from regard.capture.watching.seen import WatchedCalls

MAX_NAMED = 4  # maps named in an error message
MAX_DRAWN, DRAWN_COLUMNS = 24, 4  # heat maps of `regard run --figure`, and those per row


def plot(
    attention: Any, tokens: Sequence[Any] | None = None, key_tokens: Sequence[Any] | None = None, *,
    layer: int | None = None, head: int | None = None, batch: int = 0, axes: "Axes | None" = None,
    grid: Sequence[int] | None = None, image: Any = None, query: int | None = None,
) -> "Axes":  # fmt: skip
    """Draw attention as a heat map with labels into matplotlib axes, and return the axes.

    Args:
        attention: an `AttentionMap`, one or more recorded calls, weights (L, S), (H, L, S) or (B, H, L, S), or a tuple
            of layers such as `model(..., output_attentions=True).attentions`.
        tokens: a label for each query, and for each key if L = S. Default: positions.
        key_tokens: a label for each key.
        layer: the layer or call to draw, if there are several.
        head: the head to draw. Default: the mean of all heads.
        batch: the batch item. Default: 0.
        axes: the axes to draw in. Default: new pyplot axes.
        grid: (rows, columns) of image patches, which must be the last keys. Draws one query's attention as an image.
            Default with an image: a square, if S or S - 1 is a square number. The title shows the grid.
        image: a file, Pillow image or uint8 array (height, width, 3) to draw under the weights.
        query: with grid or image, the query's position. Default: 0 if there is a class token, else the mean of all.

    Raises:
        RegardError: labels or grid don't fit the shape, there are several maps but `layer` isn't passed, a head or
            query doesn't exist, or there is no attention.
    """
    maps = named_maps(attention, None if layer is None else [layer])
    if len(maps) > 1:
        names = ", ".join(entry.name for entry in maps[:MAX_NAMED]) + ", …" * (len(maps) > MAX_NAMED)
        raise RegardError(f"plot: got {len(maps)} maps ({names}): choose with layer=, or pass one of them")
    shown = labelled(maps[0], tokens, key_tokens, batch)
    (queries, keys), name = shown.labels, (shown.name or "attention weights") + shown.item
    if grid is not None or image is not None:
        picture = None if image is None else read_picture(image)
        return paint_patches(shown.weights, PatchGrid.of(shown, grid), picture, query, head, axes, name)
    if query is not None:
        raise RegardError("query chooses the map over an image: pass grid= or image= as well")
    return paint_heatmap(shown.weights, queries, keys, head, axes, name)


def write_plot_of_calls(seen: "WatchedCalls", file: Path) -> list[str]:
    """Plot the first batch item: all heads of a single call, or the mean of heads of each call. Returns notes."""
    maps = [labelled(entry) for entry in named_maps(seen)]
    heads: Sequence[int | None] = range(maps[0].weights.shape[-3]) if len(maps) == 1 else [None]
    drawn = [(entry, head) for entry in maps for head in heads]
    rows, columns = math.ceil(min(len(drawn), MAX_DRAWN) / DRAWN_COLUMNS), min(len(drawn), DRAWN_COLUMNS)
    figure = empty_figure(5.0 * columns, 4.5 * rows)
    for n, (entry, head) in enumerate(drawn[:MAX_DRAWN]):
        axes, (queries, keys) = figure.add_subplot(rows, columns, n + 1), entry.labels
        paint_heatmap(entry.weights, queries, keys, head, axes, entry.name + entry.item)
    unit, left_out = "heads" if len(maps) == 1 else "calls", len(drawn) - MAX_DRAWN
    notes = [f"the first {MAX_DRAWN} {unit}, {left_out} more are not drawn"] if left_out > 0 else []
    return [*notes, *write_figure(figure, file)]
