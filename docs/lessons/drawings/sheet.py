"""What schematic figures are drawn from: a sheet in inches, boxes, arrows, and tensors to scale with their numbers.

The figures themselves are in attention.py, transformer.py and word2vec.py. A colour means one thing in all of
them: grey inputs, blue queries, orange keys, green values, purple outputs, and red for negative numbers.
"""

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle
from torch import Tensor

Number = float | int  # inches, or points of letters
INPUT, QUERY, KEY, VALUE, OUTPUT, PLAIN = "#777777", "#0072b2", "#d98200", "#009e73", "#9b4f8c", "#444444"
NEGATIVE = "#c8102e"
SIGNS = "each cell is a number: white is 0, red is negative, the frame's colour is positive"


def sheet(width: Number, height: Number, title: str = "") -> tuple[Figure, Axes]:
    """Make an empty figure whose axes are inches, from (0, 0) at its lower left."""
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(0, height))
    axes.set_axis_off()
    if title:
        write(axes, 0.2, height - 0.22, title, size=12, align="left", weight="bold")
    return figure, axes


def write(
    axes: Axes,
    x: Number,
    y: Number,
    text: str,
    *,
    size: Number = 9,
    colour: str = PLAIN,
    align: str = "center",
    weight: str = "normal",
    turn: Number = 0,
) -> None:
    """Write a text with its middle (or its left or right end) at a place; dollar signs are no formula."""
    axes.text(x, y, text, size=size, color=colour, ha=align, va="center", weight=weight, rotation=turn,
              parse_math=False, linespacing=1.35)  # fmt: skip


def box(
    axes: Axes, x: Number, y: Number, width: Number, height: Number, text: str, colour: str = PLAIN, *, size: Number = 9
) -> None:
    """Draw a rounded box, x and y at its lower left, with a text in its middle."""
    shape = FancyBboxPatch((x, y), width, height, boxstyle="round,pad=0,rounding_size=0.06",
                           facecolor=tint(colour), edgecolor=colour, linewidth=1.2)  # fmt: skip
    axes.add_patch(shape)
    write(axes, x + width / 2, y + height / 2, text, size=size, colour="black")


def arrow(
    axes: Axes,
    start: tuple[Number, Number],
    end: tuple[Number, Number],
    text: str = "",
    *,
    colour: str = PLAIN,
    bend: Number = 0,
    above: Number = 0.12,
) -> None:
    """Draw an arrow from a place to another, bent by a part of its length, with a text above its middle."""
    shape = FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=10, color=colour, linewidth=1.2,
                            shrinkA=0, shrinkB=0, connectionstyle=f"arc3,rad={bend}")  # fmt: skip
    axes.add_patch(shape)
    if text:
        write(axes, (start[0] + end[0]) / 2, (start[1] + end[1]) / 2 + above, text, size=8, colour=colour)


def path(axes: Axes, places: list[tuple[Number, Number]], *, colour: str = PLAIN) -> None:
    """Draw a line round corners, with an arrow's head at its end."""
    if len(places) > 2:
        axes.plot(*zip(*places[:-1], strict=True), color=colour, linewidth=1.2, solid_capstyle="round")
    arrow(axes, places[-2], places[-1], colour=colour)


def tensor(
    axes: Axes,
    x: Number,
    y: Number,
    values: Tensor,
    colour: str,
    name: str,
    *,
    cell: tuple[Number, Number] = (0.085, 0.085),
    digits: int | None = None,
    rows: list[str] | None = None,
    sizes: bool = True,
    limit: Number | None = None,
) -> tuple[Number, Number]:
    """Draw a matrix to scale, x and y at its lower left: each cell is a number, white at 0 and darker the larger it is.

    Negative numbers are red. Its name is above it, its sizes are below, rows × columns. digits: decimals with which the
    numbers are written into the cells. rows: names at its left. limit: the number that is darkest, where several
    tensors are compared; by default the largest.

    Returns:
        Its width and height, in inches.
    """
    number = values.detach().double()
    number = number[:, None] if number.ndim == 1 else number
    down, across = number.shape
    width, height = across * cell[0], down * cell[1]
    largest = limit or max(float(number.abs().max()), 1e-12)
    axes.imshow(number.numpy(), cmap=signed(colour), vmin=-largest, vmax=largest, extent=(x, x + width, y, y + height),
                aspect="auto", interpolation="nearest", zorder=1)  # fmt: skip
    axes.add_patch(Rectangle((x, y), width, height, fill=False, edgecolor=colour, linewidth=1.2, zorder=2))
    if digits is not None:
        for row in range(down):
            for column in range(across):
                value = float(number[row, column])
                dark = abs(value) > 0.7 * largest
                write(axes, x + (column + 0.5) * cell[0], y + height - (row + 0.5) * cell[1], f"{value:z.{digits}f}",
                      size=7.5, colour="white" if dark else "black")  # fmt: skip
    for row, label in enumerate(rows or []):
        write(axes, x - 0.07, y + height - (row + 0.5) * cell[1], label, size=min(8, 64 * cell[1]), align="right")
    write(axes, x + width / 2, y + height + 0.13, name, colour=colour, weight="bold")
    if sizes:
        write(axes, x + width / 2, y - 0.12, f"{down} × {across}", size=8)
    return width, height


def signed(colour: str = QUERY) -> LinearSegmentedColormap:
    """Make the colours of numbers of both signs: red below 0, white at 0, the given colour above it."""
    return LinearSegmentedColormap.from_list("signed", [NEGATIVE, "white", colour])


def plate(axes: Axes, x: Number, y: Number, width: Number, height: Number, colour: str, text: str = "") -> None:
    """Draw a matrix of which only the sizes matter: a flat rectangle, with a text in its middle."""
    axes.add_patch(Rectangle((x, y), width, height, facecolor=tint(colour), edgecolor=colour, linewidth=1))
    if text:
        write(axes, x + width / 2, y + height / 2, text, size=8, colour="black")


def tint(colour: str) -> tuple[float, float, float]:
    """Mix a colour with white, light enough for black letters on it."""
    parts = (int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5))
    red, green, blue = (0.82 + 0.18 * part for part in parts)
    return red, green, blue
