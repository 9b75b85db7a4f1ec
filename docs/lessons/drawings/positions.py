"""Draw positional encodings: a grid of colours, and pairs of numbers as hands of a clock."""

from collections.abc import Sequence

from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from torch import Tensor

from drawings.sheet import KEY, QUERY, signed


def position_grid(matrix: Tensor, title: str, across: str = "dimension") -> Figure:
    """Draw a matrix with one row per position: negative numbers are red, positive numbers blue."""
    figure = Figure(figsize=(9, 4.4), layout="constrained")
    axes = figure.add_subplot(xlabel=across, ylabel="position", title=title)
    largest = float(matrix.abs().max())
    image = axes.imshow(matrix, cmap=signed(), vmin=-largest, vmax=largest, aspect="auto", interpolation="nearest")
    figure.colorbar(image, ax=axes, fraction=0.04, pad=0.02)
    return figure


def dial(axes: Axes, hands: Sequence[tuple[Tensor, str, str]], title: str = "", left: str = "") -> None:
    """Draw pairs of numbers as arrows from the middle of a circle of radius 1: each is its pair, name and colour."""
    axes.add_patch(Circle((0, 0), 1, fill=False, edgecolor="#bbbbbb"))
    for pair, name, colour in hands:
        x, y = pair.tolist()
        length = (x * x + y * y) ** 0.5
        arrow = {"arrowstyle": "-|>", "color": colour, "shrinkA": 0, "shrinkB": 0, "linewidth": 1.6}
        axes.annotate("", (x, y), (0, 0), arrowprops=arrow)
        axes.text(x * (1 + 0.2 / length), y * (1 + 0.2 / length), name, color=colour[:7], ha="center", va="center")
    axes.text(-1.4, 0, left, ha="right", va="center", size=9)
    axes.set(xlim=(-1.35, 1.35), ylim=(-1.35, 1.35), aspect="equal")
    axes.set_title(title, fontsize=10)
    axes.set_axis_off()


def rotation(
    query: Float[Tensor, "places 2"], key: Float[Tensor, "places 2"], positions: Sequence[tuple[int, int]]
) -> Figure:
    """Draw a query and a key of two numbers, rotated to several pairs of positions, and their dot product at each.

    positions: of the query and of the key, in each panel.
    """
    figure = Figure(figsize=(3.1 * len(positions), 3.3), layout="constrained")
    panels = figure.subplots(1, len(positions))
    edge = 1.15 * float(max(query.norm(dim=-1).max(), key.norm(dim=-1).max()))
    for axes, q, k, (here, there) in zip(panels, query, key, positions, strict=True):
        for hand, colour, name in ((q, QUERY, f"query at {here}"), (k, KEY, f"key at {there}")):
            axes.annotate("", hand.tolist(), (0, 0), arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 2})
            axes.plot([], [], color=colour, label=name)
        axes.set(xlim=(-edge, edge), ylim=(-edge, edge), xticks=[], yticks=[], aspect="equal")
        axes.set_title(f"{abs(here - there)} apart: q · k = {float(q @ k):.2f}", fontsize=11)
        axes.axhline(0, color="#dddddd", zorder=0)
        axes.axvline(0, color="#dddddd", zorder=0)
        axes.legend(frameon=False, loc="lower left", fontsize=9)
    return figure
