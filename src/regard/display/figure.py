"""Draw every kind of panel into axes with matplotlib, and arrange panels in one figure."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, singledispatch
from itertools import groupby

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase
from matplotlib.gridspec import SubplotSpec
from matplotlib.patches import FancyArrowPatch, Rectangle

from regard.display import canvas
from regard.display.canvas import APART, LINES, WEIGHTS, Row, line_style, or_nan, stack_rows_in_figure, title_axes
from regard.display.heatmap import heatmap
from regard.display.panels import Bars, Curves, Heat, Panel, Point, Scatter, Strip, Table, untold
from regard.display.pen import text_width
from regard.display.sentences import axis_names, number_text, other_panel_parts_name
from regard.errors import RegardError
from regard.text.quoting import display_text, visible

MAX_BARS = 24  # the others are merged into one bar, if their sum is meaningful
GRID_COLUMNS = 3  # heat maps side by side
MAX_NAME = 48  # maximum characters of a bar's name
ACROSS, TEXT, TEXT_LINE = 500.0, 8.5, 19.0  # points: width of a text, size of its letters, height of a line
BAR = 0.26  # inches per bar
CELL, SMALL, WRITTEN = 0.42, 0.17, 0.8  # inches of a heat map's cell: by itself, in a grid, with a name in it
NUMBERED = 0.36  # inches that a cell needs for its number
MAX_NAMED_COLUMNS = 64  # columns or tokens that are all named. If there are more, only some of them are
TURNED = {"rotation": 60, "ha": "right", "rotation_mode": "anchor"}  # column names that don't fit horizontally
LETTER = 0.085  # inches per letter of a name
LINE = 0.14  # inches per line of text below or above a panel
MIN_NAME_INCHES = 0.13  # inches that a row or column name needs
AREA = (9.0, 6.5), (5.0, 4.2)  # inches of a heat map with many rows: by itself, and in a grid
SIGNS = ("o", "s", "^", "D")  # markers of groups of points
NAME, DARK = 10, 0.55  # characters of a name in a cell; text is white above this fraction of the largest value
UPRIGHT = 3  # column names of up to this many characters are never turned


@dataclass(frozen=True)
class Drawing:
    """A panel's size in inches, and the function that draws it into its axes."""

    wide: int | float
    high: int | float
    paint: Callable[[Axes], None]


def drawn(panel: Panel, small: bool) -> Drawing:
    """Return the drawing of a panel. An empty panel is drawn as a sentence. small: for panels side by side."""
    fields = ("parts", "rows", "columns", "tokens", "series", "points")
    empty = any(not len(vars(panel)[name]) for name in fields if name in vars(panel))
    empty |= isinstance(panel, Heat) and all(value is None for row in panel.values for value in row)
    return Drawing(6.0, 0.9, _draw_empty_panel) if empty else _drawing(panel, small)


def _draw_empty_panel(axes: Axes) -> None:
    axes.text(0, 0.5, "There is nothing to show.", va="center", fontsize=9)
    axes.set_axis_off()


@singledispatch
def _drawing(panel: Panel, small: bool) -> Drawing:
    raise NotImplementedError(type(panel).__name__)


@_drawing.register
def _bars(panel: Bars, small: bool) -> Drawing:
    """Return the drawing of horizontal bars: the first parts from the top, with a bar for all others below."""
    bars, rest = list(panel.parts[:MAX_BARS]), panel.parts[MAX_BARS:]
    if rest and panel.whole is not None:
        bars.append((other_panel_parts_name(len(rest)), sum(number for _, number in rest)))
    cut = f" (first {MAX_BARS} of {len(panel.parts):,})" if rest and panel.whole is None else ""
    numbers, positions = [number for _, number in bars], range(len(bars))
    sizes = [number if math.isfinite(number) else 0.0 for number in numbers]

    def draw(axes: Axes) -> None:
        colours = [_colour_of_number(value, panel.signed) for value in numbers]
        bars_drawn = axes.barh(positions, sizes, color=colours, height=0.75)
        axes.set_yticks(positions, [display_text(name, MAX_NAME) for name, _ in bars])
        axes.invert_yaxis()
        axes.axvline(0, color="black", linewidth=0.8)
        texts = [number_text(number, panel.digits, panel.unbounded, panel.signed) for number in numbers]
        axes.bar_label(bars_drawn, texts, padding=3, fontsize=7)
        axes.margins(x=0.15, y=0.01)
        if panel.unit in {"probability", "weight", "mean weight", "share"}:  # the space beyond 1 is for numbers
            axes.set_xticks([tick for tick in axes.get_xticks() if max(axes.get_xlim()[0], -1) <= tick <= 1])
        axes.tick_params(labelsize=8)
        axes.set_xlabel(visible(panel.unit) + cut, fontsize=8)

    return Drawing(7.5, 1.1 + BAR * len(bars), draw)


@_drawing.register
def _table(panel: Table, small: bool) -> Drawing:
    """Return the drawing of a table's first column that has bars."""
    barred = next((n for n, column in enumerate(panel.columns) if column.bar), None)
    if barred is None:
        raise RegardError(f"plot: {panel.name!r} is a table without bars, which has no picture")
    column = panel.columns[barred]
    parts = [(str(row[0]), float(cell)) for row in panel.rows if isinstance(cell := row[barred], (int, int | float))]
    options = {"unit": column.name, "signed": panel.signed(barred), "digits": column.digits or 0,
           "unbounded": column.unbounded}  # fmt: skip
    return _bars(Bars(name=panel.name, title=panel.title, parts=parts, **options), small)  # type: ignore[arg-type]


@_drawing.register
def _heat(panel: Heat, small: bool) -> Drawing:
    """Return the drawing of a heat map, with numbers in cells if they fit. Cells without a number are hatched.

    If the panel has sums, the total is below.
    """
    down, across = axis_names(panel)
    values = torch.tensor([[math.nan if v is None else v for v in row] for row in panel.values], dtype=torch.float64)
    cell = (SMALL if small else CELL) if panel.written is None else WRITTEN
    wide = min(16.0, max(3.4 if small else 6.5, 2.0 + cell * len(across)))
    high = min(14.0, max(2.5 if small else 3.2, 1.5 + min(cell, 0.3) * len(down)))
    if len(down) > MAX_NAMED_COLUMNS:
        wide, high = min(wide, AREA[small][0]), AREA[small][1]
    numbers = (wide - 2.0) / max(1, len(across)) >= NUMBERED and len(down) <= 24 and not small and panel.written is None
    letters = max(map(len, across), default=0)
    inches = max(MIN_NAME_INCHES, LETTER * letters) if letters <= UPRIGHT else MIN_NAME_INCHES
    lines = _thinned_names(down, (high - 1.5) / MIN_NAME_INCHES)
    names = _thinned_names(across, (wide - 2.0) / inches)
    longest = max(map(len, names), default=0)
    upright = longest <= UPRIGHT or longest * LETTER <= (wide - 2.0) / len(across)
    below = [panel.axes[1]]
    if panel.sums is not None:
        text = number_text(panel.sums.all, panel.digits, True, panel.signed)
        below.append(f"{panel.sums.name}: {panel.unit} {text}")

    def draw(axes: Axes) -> None:
        heatmap(
            axes, values, lines, names, diverging=panel.signed, largest=panel.largest,
            numbers=numbers, labels=(visible(panel.axes[0]), "\n".join(map(visible, below))),
            unit=visible(panel.unit), unbounded=panel.unbounded, digits=panel.digits,
        )  # fmt: skip
        axes.set_aspect("auto")
        for label in axes.get_xticklabels():
            label.set(**({"rotation": 0} if upright else TURNED))
        axes.images[0].set_gid(panel.name)
        for i, j in panel.grey:
            grey = APART(abs(float(values[i, j])) / (panel.largest or float(values.abs().max())))
            axes.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, facecolor=grey, edgecolor="none"))
        for i, row in enumerate(panel.written or ()):
            for j, name in enumerate(row):
                axes.text(j, i, display_text(name, NAME), ha="center", va="center", fontsize=7.5,
                          color="white" if values[i, j] > DARK * (panel.largest or float(values.max())) else "black",
                          fontweight="bold" if (i, j) in panel.strong else "normal")  # fmt: skip
        if panel.upwards:
            axes.invert_yaxis()

    return Drawing(wide, high + (0.0 if upright else 0.05 * longest) + LINE * (len(below) - 1), draw)


def _thinned_names(names: Sequence[str], room: int | float) -> list[str]:
    """Return names of rows or columns, replacing all but every n-th by "" if there isn't enough room."""
    step = max(1, -(-len(names) // min(MAX_NAMED_COLUMNS, max(1, round(room)))))
    return [display_text(name) if n % step == 0 else "" for n, name in enumerate(names)]


@_drawing.register
def _strip(panel: Strip, small: bool) -> Drawing:
    """Return the drawing of a token strip: one bar per token, or the text on colours if `full` is set."""
    if panel.full is not None:
        return _shaded_text(panel, panel.full)
    values = [math.nan if value is None else value for value in panel.values]
    step = max(1, -(-len(values) // MAX_NAMED_COLUMNS))
    positions = range(0, len(values), step)

    def draw(axes: Axes) -> None:
        colours = [_colour_of_number(value, panel.signed) for value in values]
        axes.bar(range(len(values)), values, color=colours, width=0.8)
        axes.set_xticks(positions, [display_text(panel.tokens[n]) for n in positions], rotation=60, fontsize=8)
        axes.axhline(0, color="black", linewidth=0.8)
        axes.margins(x=0.01)
        axes.set_ylabel(visible(panel.unit), fontsize=8)

    return Drawing(min(16.0, max(6.0, 1.0 + 0.3 * len(values))), 2.8, draw)


def _shaded_text(panel: Strip, full: int | float) -> Drawing:
    """Return the drawing of a text in lines. Each token has a background colour, grey for special tokens."""
    labels, x, y = [], 0.0, 0
    for token in panel.tokens:
        name = display_text(token)
        if x and x + text_width(name, TEXT) > ACROSS:
            x, y = 0.0, y + 1
        labels.append((x, y, name))
        x += text_width(name, TEXT) + TEXT

    def draw(axes: Axes) -> None:
        write = partial(axes.annotate, xy=(0, 1), xycoords="axes fraction", textcoords="offset points", va="center")
        for n, ((x, y, name), value) in enumerate(zip(labels, panel.values, strict=True)):
            fraction = min(1.0, max(0.0, (value or 0.0) / full))
            box = {"fc": (APART if n in panel.special else WEIGHTS)(fraction), "ec": "none", "pad": 2.5}
            colour, at = "white" if fraction > DARK else "black", (x + 3, -TEXT_LINE * (y + 0.5))
            write(name, xytext=at, fontsize=TEXT, color=colour, bbox=box)
        legend = f"darkest: {visible(panel.unit)} {number_text(full, panel.digits)} or more"
        legend += " (special tokens and sinks in grey)" * bool(panel.special)
        write(legend, xytext=(0, -TEXT_LINE * (y + 1.4)), fontsize=7)
        axes.set_axis_off()

    return Drawing(7.5, 0.75 + TEXT_LINE / 72 * (y + 1), draw)


@_drawing.register
def _curves(panel: Curves, small: bool) -> Drawing:
    """Return the drawing of curves: a line per series. If points are means, the range of values is shaded."""

    def draw(axes: Axes) -> None:
        for n, curve in enumerate(panel.series):
            colour, dashes = line_style(n)
            marker = "o" if len(curve.x) <= 40 else ""
            axes.plot(curve.x, or_nan(curve.y), dashes, color=colour, label=visible(curve.name), marker=marker,
                      markersize=3)  # fmt: skip
            if curve.low is not None and curve.high is not None:
                axes.fill_between(curve.x, or_nan(curve.low), or_nan(curve.high), color=colour, alpha=0.15, lw=0)
        axes.legend(fontsize=7, frameon=False)
        axes.set_xlabel(visible(panel.x), fontsize=8)
        axes.set_ylabel(visible(panel.y), fontsize=8)

    return Drawing(7.5, 3.6, draw)


@_drawing.register
def _scatter(panel: Scatter, small: bool) -> Drawing:
    """Return the drawing of a scatter plot: points, arrows from earlier positions, and names of groups."""
    groups: dict[str, list[Point]] = {}
    for point in panel.points:
        groups.setdefault(point.group, []).append(point)
    size = math.sqrt(max(4, min(40, 4000 / max(1, len(panel.points)))))

    def draw(axes: Axes) -> None:
        for n, (name, points) in enumerate(groups.items()):
            sign = SIGNS[(n + n // len(LINES)) % len(SIGNS)]
            (line,) = axes.plot([point.x for point in points], [point.y for point in points], sign, label=visible(name),
                                 color=line_style(n)[0], markersize=size, alpha=0.7, markeredgewidth=0)  # fmt: skip
            line.set_gid(name)
        _name_groups(axes, groups)
        for point in panel.points:
            if point.after is not None:
                colour, start = line_style(list(groups).index(point.group))[0], panel.points[point.after]
                arrow = FancyArrowPatch((start.x, start.y), (point.x, point.y), arrowstyle="->", mutation_scale=8,
                                        color=colour, lw=0.8)  # fmt: skip
                axes.add_patch(arrow)
        axes.set_xlabel(visible(panel.x), fontsize=8)
        axes.set_ylabel(visible(panel.y), fontsize=8)
        axes.margins(0.2)
        axes.set_aspect("equal", adjustable="datalim")

    return Drawing(6.5, 5.0, draw)


def _name_groups(axes: Axes, groups: Mapping[str, Sequence[Point]]) -> None:
    """Write each group's name at the mean of its points, moved up if it would overlap another name."""
    points = [point for group in groups.values() for point in group]
    wide, high = (max(values) - min(values) for values in zip(*((point.x, point.y) for point in points), strict=True))
    gap, lowest = 0.3 * max(wide / 4.0, high / 3.0), -math.inf  # 0.3 inches, in the units of both axes
    middles = {name: [sum(values) / len(group) for values in zip(*((point.x, point.y) for point in group), strict=True)]
               for name, group in groups.items()}  # fmt: skip
    for name, (x, y) in sorted(middles.items(), key=lambda item: item[1][1]):
        lowest = max(y, lowest + gap)
        colour = line_style([*groups].index(name))[0]
        axes.annotate(visible(name), (x, y), (x, lowest), ha="center", va="center", fontsize=9,
                      bbox={"boxstyle": "round", "fc": "white", "ec": colour, "alpha": 0.85},
                      arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.5} if lowest > y else None)  # fmt: skip


def _colour_of_number(number: int | float, signed: bool) -> str:
    """Return a number's colour: red above 0 and blue below if numbers are `signed`, otherwise one colour."""
    return (canvas.MORE if number >= 0 else canvas.LESS) if signed else canvas.BAR


def paint(panels: Sequence[Panel], title: str) -> Figure:
    """Return a figure of panels: heat maps of a group in a grid, all others below one another.

    The title is at the top. If there are several panels, each also has its own title.
    """
    if not panels:
        raise RegardError("plot: this answer has no picture, name a panel")
    grids: list[tuple[str, int, list[Panel]]] = []  # group, number of columns, panels of equal width
    for (group, heat), run in groupby(panels, lambda panel: (panel.group, isinstance(panel, Heat))):
        tiles = list(run)
        grids += [(group, min(GRID_COLUMNS, len(tiles)), tiles)] if heat else [(group, 1, [panel]) for panel in tiles]
    blocks = [[drawn(panel, across > 1) for panel in tiles] for _, across, tiles in grids]
    wide = max(max(item.wide for item in block) * across for (_, across, _), block in zip(grids, blocks, strict=True))
    rows: list[Row] = []
    for n, ((group, across, tiles), block) in enumerate(zip(grids, blocks, strict=True)):
        lines = [title] if n == 0 else []
        if group and (n == 0 or grids[n - 1][0] != group):
            lines = [*lines, group]
        names = [("" if len(panels) == 1 else panel.title, untold(panel, panel.title, title)) for panel in tiles]
        highs = [
            max(block[k].high + LINE * len(names[k][1]) // 60 for k in range(start, min(start + across, len(block))))
            for start in range(0, len(block), across)
        ]
        rows.append(Row(sum(highs) + 0.22 * len(lines), partial(_paint_row, block, names, lines, across, highs, wide)))
    return stack_rows_in_figure(rows, wide)


def _paint_row(
    drawings: Sequence[Drawing], names: Sequence[tuple[str, str]], lines: Sequence[str], across: int,
    highs: Sequence[float], wide: float, subfigure: FigureBase, spec: SubplotSpec,
) -> None:  # fmt: skip
    """Draw panels into their subfigure. across: number of panels side by side. highs: heights of the rows in inches."""
    cells = spec.subgridspec(len(highs), across, height_ratios=highs)
    for n, (drawing, name) in enumerate(zip(drawings, names, strict=True)):
        axes = subfigure.add_subplot(cells[divmod(n, across)])
        drawing.paint(axes)
        title_axes(axes, *name, wide / across)
    if lines:
        size = min(12.0, *(wide * 125 / max(1, len(line)) for line in lines))
        subfigure.suptitle("\n".join(map(visible, lines)), x=0.01, ha="left", fontsize=size, fontweight="bold")
