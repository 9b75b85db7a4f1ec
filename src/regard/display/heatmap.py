"""Draw heat maps of small matrices with numbers, of attention maps of any size, and of weights over an image."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.image import AxesImage
from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.checks import from_zero
from regard.display.canvas import DIFFERENCES, HEAT_OVER, WEIGHTS, Plot, write_texts_as_they_are
from regard.errors import RegardError
from regard.explain.wording import fixed
from regard.images import Picture
from regard.text.quoting import display_text
from regard.trace.any_attention import PatchGrid
from regard.trace.labelled_map import Labels

NUMBERS = 12  # maximum rows and columns of a matrix with numbers in its cells
MAX_NAMED_TOKENS = 48  # maximum tokens of a map with a cell per weight and token names
CELLS = 256  # cells per side of a larger map, each the mean of its weights


def heat_over_picture(axes: Axes, values: np.ndarray, largest: float, edges: Sequence[float]) -> AxesImage:
    """Draw numbers [row][column] over an image that is already drawn. edges: left, right, bottom, top of the grid."""
    scale, extent = Normalize(0, largest or 1.0), (edges[0], edges[1], edges[2], edges[3])
    return axes.imshow(values, cmap=HEAT_OVER, norm=scale, extent=extent, interpolation="nearest")


def heatmap(
    axes: Axes, matrix: Float[Tensor, "rows columns"], rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None, *, title: str = "", diverging: bool = False,
    labels: tuple[str, str] = ("", ""), largest: float | None = None, numbers: bool | None = None, unit: str = "",
    unbounded: bool = False, digits: int = 2,
) -> None:  # fmt: skip
    """Draw a matrix into axes, as a heat map with a colour bar. Cells without a number (NaN) are hatched."""
    values = matrix.detach().cpu().double().numpy()
    finite = values[np.isfinite(values)]
    largest = max(largest or float(abs(finite).max(initial=0.0)), 1e-12)
    low, colours = (-largest, DIFFERENCES) if diverging else (min(0.0, float(finite.min(initial=0.0))), WEIGHTS)
    if finite.size < values.size:
        axes.patch.set(hatch="////", facecolor="white", edgecolor="0.8")
    image = axes.imshow(values, cmap=colours, vmin=low, vmax=largest, interpolation="nearest")
    if rows is not None:
        ticks = [n for n, name in enumerate(rows) if name]
        axes.set_yticks(ticks, [rows[n] for n in ticks])
    if columns is not None:
        ticks = [n for n, name in enumerate(columns) if name]
        axes.set_xticks(ticks, [columns[n] for n in ticks], rotation=90 if max(map(len, columns), default=0) > 3 else 0)
    axes.tick_params(labelsize=8)
    axes.set_title(title, fontsize=10)
    axes.set_ylabel(labels[0], fontsize=8)
    axes.set_xlabel(labels[1], fontsize=8)
    if max(values.shape) <= NUMBERS if numbers is None else numbers:
        for (row, column), value in np.ndenumerate(values):
            if not np.isfinite(value) or (not diverging and 0 < value < 0.005):  # the colour shows that it is tiny
                continue
            dark = abs(value) > 0.6 * largest if diverging else value > low + 0.6 * (largest - low)
            number = fixed(value, digits, unbounded or diverging)
            axes.text(column, row, number, ha="center", va="center", fontsize=7, color="w" if dark else "k")
    write_texts_as_they_are(axes)  # the user's axes may have TeX enabled
    bar = axes.figure.colorbar(image, ax=axes, fraction=0.046, pad=0.03)
    if diverging and finite.size:  # show only the colours of signs that occur
        bar.ax.set_ylim(low if finite.min() < 0 else 0, largest if finite.max() > 0 or finite.min() == 0 else 0)
    bar.ax.tick_params(labelsize=7)
    bar.set_label(unit, fontsize=8)


def paint_heatmap(
    weights: AttentionMap, queries: Labels, keys: Labels, head: int | None, axes: Axes | None, name: str
) -> Axes:
    """Draw an attention map (H, L, S) into axes, by default new pyplot axes. head: None for the mean of all heads.

    A map of more than 48 tokens per side is drawn as at most 256 × 256 cells, each the mean of its weights.
    """
    heads, length, size = weights.shape
    if axes is not None and not hasattr(axes, "imshow"):
        raise RegardError(f"axes: got {type(axes).__name__}, expected matplotlib's Axes, or None for new ones")
    head = None if head is None else from_zero("head", head, heads, "the map has")
    head = 0 if heads == 1 else head
    heads_name = f"mean of {heads} heads" if head is None else f"head {head}"
    if axes is None:
        import matplotlib.pyplot as plt

        height, width = (max(3.2, 1.6 + 0.3 * min(count, MAX_NAMED_TOKENS)) for count in weights.shape[1:])
        _, axes = plt.subplots(figsize=(width + 0.8, height), layout="constrained", FigureClass=Plot)
    if max(length, size) <= MAX_NAMED_TOKENS:
        matrix = weights.dense().mean(0) if head is None else weights[head]
        rows, columns = ([display_text(token.text, 16) for token in labels.tokens] for labels in (queries, keys))
        heatmap(axes, matrix, rows, columns, title=f"{name}, {heads_name}", labels=("query", "key"))
        return axes
    pooled = weights.pooled(min(CELLS, length), min(CELLS, size))
    matrix = pooled.mean(0) if head is None else pooled[head]
    title = f"{name}, {heads_name}: {length} × {size}, a cell is the mean of its weights"
    heatmap(axes, matrix, title=title, labels=("query", "key"))
    return axes


def paint_patches(
    weights: AttentionMap, grid: PatchGrid, picture: Picture | None, query: int | None, head: int | None,
    axes: Axes | None, name: str,
) -> Axes:  # fmt: skip
    """Draw one query's attention to image patches from a map (H, L, S), over the image if it is given.

    query: None for the class token, or for the mean of all queries if there is none. head: None for the mean of heads.
    """
    heads, length, size = weights.shape
    head = head if head is None else from_zero("head", head, heads, "the map has")
    query = 0 if query is None and grid.first and length == size else query
    if query is None:
        attention, query_name = weights.received() / length, f"mean of {length} queries"
    else:
        query = from_zero("query position", query, length, f"{name} has")
        attention = weights[:, query]
        query_name = f"query {query}" + f" ({grid.tokens()[query].text})" * (length == size)
    row = attention.mean(0) if head is None else attention[head]
    heat = row[grid.first :].unflatten(0, (grid.rows, grid.columns))
    if axes is None:
        import matplotlib.pyplot as plt

        _, axes = plt.subplots(layout="constrained", FigureClass=Plot)
    width, height = map(float, (grid.columns, grid.rows) if picture is None else picture.size)
    if picture is not None:
        axes.imshow(picture.pixels.convert("L"), extent=(0, width, height, 0), cmap="gray", vmin=0, vmax=255)
    image = heat_over_picture(axes, heat.cpu().double().numpy(), float(heat.max()), (0.0, width, height, 0.0))
    axes.figure.colorbar(image, ax=axes, fraction=0.046, pad=0.03).set_label("weight", fontsize=8)
    axes.set(xlim=(0, width), ylim=(height, 0), xticks=[], yticks=[])
    heads_name = f"mean of {heads} heads" if head is None else f"head {head}"
    axes.set_title(f"{name}, {heads_name}, {query_name}\n{grid}", fontsize=10)
    return axes
