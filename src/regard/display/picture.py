"""Put panels together to one picture: grids of a group side by side, titles and captions above."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from matplotlib.figure import Figure, FigureBase

from regard.display.elements.canvas import Row, stack_rows_in_figure, title_axes
from regard.display.figure import LINE, Drawing, drawn
from regard.display.panels import Heat, Panel, untold
from regard.errors import RegardError
from regard.text.quoting import visible

ACROSS = 3  # heat maps side by side


def paint(panels: Sequence[Panel], title: str) -> Figure:
    """Draw panels into a figure: heat maps of one group in one grid, all others below one another.

    A picture of one panel has the title and that panel's caption above it, one of several each panel's own.
    """
    if not panels:
        raise RegardError("plot: this answer has no picture, name a panel")
    grids: list[
        tuple[str, int, list[Panel]]
    ] = []  # group, places across, panels: all panels of a grid are equally wide
    for (group, heat), run in groupby(panels, lambda panel: (panel.group, isinstance(panel, Heat))):
        each = list(run)
        grids += [(group, min(ACROSS, len(each)), each)] if heat else [(group, 1, [panel]) for panel in each]
    drawings = [[drawn(panel, across > 1) for panel in own] for _, across, own in grids]
    wide = max(max(each.wide for each in own) * across for (_, across, _), own in zip(grids, drawings, strict=True))
    rows: list[Row] = []
    for n, ((group, across, each), own) in enumerate(zip(grids, drawings, strict=True)):
        above = [title] if n == 0 else []
        if group and (n == 0 or grids[n - 1][0] != group):
            above = [*above, group]
        names = [("" if len(panels) == 1 else panel.title, untold(panel, panel.title, title)) for panel in each]
        highs = [
            max(own[k].high + LINE * len(names[k][1]) // 60 for k in range(first, min(first + across, len(own))))
            for first in range(0, len(own), across)
        ]
        rows.append(Row(sum(highs) + 0.22 * len(above), _painter(own, names, above, across, highs, wide)))
    return stack_rows_in_figure(rows, wide)


def _painter(
    drawings: Sequence[Drawing], names: Sequence[tuple[str, str]], above: Sequence[str], across: int,
    highs: Sequence[float], wide: float,
) -> Callable[[FigureBase, Any], None]:  # fmt: skip
    """What draws panels into their part of the figure. across: how many stand side by side; highs: of the lines."""

    def into(part: FigureBase, place: Any) -> None:
        cells = place.subgridspec(len(highs), across, height_ratios=highs)
        for n, (each, name) in enumerate(zip(drawings, names, strict=True)):
            axes = part.add_subplot(cells[divmod(n, across)])
            each.paint(axes)
            title_axes(axes, *name, wide / across)
        if above:
            size = min(12.0, *(wide * 125 / max(1, len(line)) for line in above))
            part.suptitle("\n".join(map(visible, above)), x=0.01, ha="left", fontsize=size, fontweight="bold")

    return into
