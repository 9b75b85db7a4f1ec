"""Draw every kind of panel in a terminal."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import singledispatch

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from regard.display.panels import (
    Arcs,
    Bars,
    Cell,
    Column,
    Curves,
    Heat,
    InContext,
    Number,
    Panel,
    Scatter,
    Shares,
    Strip,
    Table,
    shares_text,
)
from regard.display.terminal_lines import coloured, in_lines, text_with_bars
from regard.explain.wording import number, signed
from regard.views.terminal.layout import APART, SET_IN, columns, section, shown, spelled, visible
from regard.views.terminal.one_screen import bar, heights, resampled

BAR, SHORT = 16, 4  # cells of a bar, and of the shortest where there is little room
NAME = 10  # cells of a heat map's column name
TEXT = 24  # cells that a column of text is folded to at most, to keep bars on the screen, and a heat map's row names
SHARES = 24  # cells of a column of named numbers at least
LEAST = 8  # and to keep other columns there
STRONG = 0.25  # of the largest: numbers from which on a heat map's are coloured
CURVE = 32  # characters


@singledispatch
def drawn(panel: Panel, width: int, top: int, more: str) -> RenderableType:
    """Draw a panel for a terminal of so many columns.

    top: how many parts or rows are named. more: where those are that are left out, "in --json".
    """
    raise NotImplementedError(type(panel).__name__)


@drawn.register
def _bars(panel: Bars, width: int, top: int, more: str) -> RenderableType:
    """The first parts, the others together, and the sum of all, where it means something."""
    write = with_sign if panel.signed else shown
    grid = columns(panel.part, (panel.unit, "right"), "")
    largest = max((abs(each) for _, each in panel.parts if math.isfinite(each)), default=0.0)
    for name, value in panel.parts[:top]:
        grid.add_row(visible(name), write(value), _bar(value, largest, panel.signed))
    rest = panel.parts[top:]
    if rest and panel.whole is not None:
        grid.add_row(Text(others(len(rest)), style="dim"), write(sum(each for _, each in rest)), "")
    if panel.whole is not None:
        grid.add_row(Text("sum", style="bold"), write(panel.whole), "")
    left = f"{len(rest):,} smaller ones" if rest and panel.whole is None else ""
    return _section(panel, grid, *_left([left], more))


@drawn.register
def _table(panel: Table, width: int, top: int, more: str) -> RenderableType:
    """The first rows, and as many columns as there is room for."""
    shown_rows = [*panel.rows[:top], *([panel.total] if panel.total else [])]
    if any(isinstance(cell, Shares) for row in shown_rows for cell in row):
        return _section(panel, _with_shares(panel, shown_rows, width), *_legend(panel, top, more))
    marked = [n for n in range(len(panel.columns)) if all(isinstance(row[n], InContext) for row in shown_rows)]
    if shown_rows and marked:
        lines = _in_context(panel, marked, shown_rows, width)
        return _section(panel, lines, *_legend(panel, top, more))
    rows = [[_cell(cell, column) for cell, column in zip(row, panel.columns, strict=True)] for row in shown_rows]
    widths, bars = _widths_with_room(panel, rows, width)
    kept = len(widths)
    grid = columns()
    barred: dict[int, tuple[float, bool]] = {}  # of a column its largest number, and whether some are negative
    for n, (column, own) in enumerate(zip(panel.columns, widths, strict=False)):
        grid.add_column(column.name, justify="left" if column.digits is None else "right", width=own, overflow="fold")
        if column.bar and bars:
            numbers = [each for row in panel.rows if (each := _number(row[n])) is not None]
            barred[n] = max(map(abs, numbers), default=0.0), min(numbers, default=0.0) < 0
            grid.add_column("")
    for row, cells in zip(shown_rows, rows, strict=True):
        line: list[RenderableType] = []
        for n in range(kept):
            line.append(cells[n])
            if n in barred:
                line.append(Text() if row is panel.total else _bar(_number(row[n]) or 0.0, *barred[n], bars))
        grid.add_row(*line, style="bold" if row is panel.total else "")
    names = [column.name for column in panel.columns[kept:]]
    columns_left = f"{'column' if len(names) == 1 else 'columns'} {', '.join(names)}" if names else ""
    return _section(panel, grid, *_legend(panel, top, more, columns_left))


def _legend(panel: Table, top: int, more: str, columns_left: str = "") -> list[Text]:
    """How to read a table, and what of it is left out."""
    left = len(panel.rows) - top
    legend = [Text(visible(_first_sentence(panel.note)), style="dim")] if panel.note else []
    return [*legend, *_left([f"{left:,} more row{'s' * (left > 1)}" if left > 0 else "", columns_left], more)]


def _in_context(panel: Table, marked: Sequence[int], rows: Sequence[Sequence[Cell]], width: int) -> RenderableType:
    """Words in their contexts, one below the other, as much of these as there is room for beside the other columns.

    Those are cut at their beginning: a document's name says more than its folder. marked: the columns of contexts,
    which share the room alike.
    """
    others = [n for n in range(len(panel.columns)) if n not in marked]
    cells = [[_cell(row[n], panel.columns[n]) for n in others] for row in rows]
    cells = [[f"…{cell[1 - TEXT :]}" if len(cell) > TEXT else cell for cell in row] for row in cells]
    sizes = [max([cell_len(panel.columns[n].name), *(cell_len(row[k]) for row in cells)]) for k, n in enumerate(others)]
    room = (width - SET_IN - sum(sizes) - APART * (len(panel.columns) - 1)) // len(marked)
    made: dict[int, Sequence[RenderableType]] = {n: [row[k] for row in cells] for k, n in enumerate(others)}
    made |= {n: _contexts([row[n] for row in rows], room) for n in marked}
    grid = columns()
    for column in panel.columns:
        grid.add_column(column.name, justify="left" if column.digits is None else "right", no_wrap=True)
    for n in range(len(rows)):
        grid.add_row(*(made[column][n] for column in range(len(panel.columns))))
    return grid


def _contexts(cells: Sequence[Cell], room: int) -> list[Text]:
    """Words one below the other, each in as much of its context as a column has room for, at least a little."""
    words = [(visible(c.left), visible(c.form), visible(c.right)) for c in cells if isinstance(c, InContext)]
    form = max(cell_len(word) for _, word, _ in words)
    room = max(LEAST, room - form)
    before, after = (max(cell_len(each[n]) for each in words) for n in (0, 2))
    before = min(before, max(room // 2, room - after))
    after = min(after, room - before)
    lines = []
    for left, word, right in words:
        line = Text(left[-before:].rjust(before) if before else "", no_wrap=True, overflow="crop")
        lines.append(line.append(word, style="bold").append(right[: after + form - cell_len(word)]))
    return lines


def _with_shares(panel: Table, rows: Sequence[Sequence[Cell]], width: int) -> RenderableType:
    """A table with cells of named numbers, which share the room that its other columns leave, no less than a name's."""
    texts = [
        ["" if cell is None else _cell(cell, column) for cell, column in zip(row, panel.columns, strict=True)]
        for row in rows
    ]
    named = [any(isinstance(row[n], Shares) for row in rows) for n in range(len(panel.columns))]
    sizes = [
        max([cell_len(column.name), *(cell_len(own[n]) for own in texts)]) for n, column in enumerate(panel.columns)
    ]
    fixed = [size for size, is_named in zip(sizes, named, strict=True) if not is_named]
    room = max(SHARES, (width - SET_IN - _together(fixed) - APART * sum(named)) // sum(named))
    barred = {n for n, column in enumerate(panel.columns) if column.bar and room - SHARES >= LEAST + APART}
    room, size = (SHARES, min(BAR, room - SHARES - APART)) if barred else (room, 0)
    grid = columns()
    for n, column in enumerate(panel.columns):
        grid.add_column(column.name, justify="left" if column.digits is None else "right", overflow="fold")
        if n in barred:
            grid.add_column("")
    full = {n: max((abs(_number(row[n]) or 0.0) for row in panel.rows), default=0.0) for n in barred}
    for row, own in zip(rows, texts, strict=True):
        cells: list[RenderableType] = []
        for n, cell in enumerate(row):
            cells.append(in_lines(cell, room) if isinstance(cell, Shares) else own[n])
            cells += [bar(abs(_number(cell) or 0.0), full[n], size)] if n in barred else []
        grid.add_row(*cells)
    return grid


def beside(panels: Sequence[Table], width: int, top: int, more: str) -> RenderableType:
    """Draw tables side by side where all have room with short bars, else one below the other. The rest is `drawn`'s."""
    needs = [_needed(panel, top) for panel in panels]
    left = width - sum(needs) - len(needs) + 1
    if left < 0:
        return Group(*(drawn(panel, width, top, more) for panel in panels))
    grid = Grid.grid(padding=(0, 1, 0, 0), pad_edge=False)
    for need in needs:
        grid.add_column(width=need + left // len(needs))
    grid.add_row(
        *(drawn(panel, need + left // len(needs), top, more) for panel, need in zip(panels, needs, strict=True))
    )
    return grid


def _needed(panel: Table, top: int) -> int:
    """How wide a table is with short bars."""
    names = [
        _sizes(column.name, [_cell(row[n], column) for row in panel.rows[:top]])[0]
        for n, column in enumerate(panel.columns)
    ]
    return SET_IN + _together(names) + sum(SHORT + APART for column in panel.columns if column.bar)


def _widths_with_room(panel: Table, rows: Sequence[Sequence[str]], width: int) -> tuple[list[int], int]:
    """How wide each column is that a terminal has room for, and how long bars may be, 0 where they have no room.

    Numbers are never folded: bars give way to them, then text is folded, and only then the last columns are left out.
    """
    sizes = [_sizes(column.name, [row[n] for row in rows]) for n, column in enumerate(panel.columns)]
    text = [column.digits is None for column in panel.columns]
    room, count = width - SET_IN, sum(column.bar for column in panel.columns)
    wanted = [min(whole, TEXT) if is_text else whole for (whole, _), is_text in zip(sizes, text, strict=True)]
    own, left = [whole for whole, _ in sizes], room - _together(wanted)
    longest = min(BAR, left // count - APART) if count else 0
    longest = longest if longest >= SHORT else 0
    bars = (longest + APART) * count if longest else 0
    if _together(wanted) > room:
        least = [min(whole, LEAST) if is_text else folded for (whole, folded), is_text in zip(sizes, text, strict=True)]
        kept = max([1, *(n for n in range(1, len(least) + 1) if _together(least[:n]) <= room)])
        own = [whole if is_text else folded for (whole, folded), is_text in zip(sizes, text, strict=True)][:kept]
    most = min(max(own, default=0), room)  # cells of the widest column of text
    while most > LEAST and _together(_folded(own, text, most)) + bars > room:
        most -= 1
    return _folded(own, text, most), longest


def _folded(widths: Sequence[int], text: Sequence[bool], most: int) -> list[int]:
    """Widths of columns, those of text at most so wide."""
    return [min(own, most) if is_text else own for own, is_text in zip(widths, text, strict=False)]


def _sizes(name: str, cells: Iterable[str]) -> tuple[int, int]:
    """How wide a column is with its name in one line, and with the name's words one below the other."""
    numbers = max(map(cell_len, cells), default=1)
    return max(numbers, cell_len(name)), max([numbers, *map(cell_len, name.split())])


def _together(widths: Sequence[int]) -> int:
    """How wide columns are together."""
    return sum(widths) + APART * (len(widths) - 1)


@drawn.register
def _heat(panel: Heat, width: int, top: int, more: str) -> RenderableType:
    """Its numbers; where not all columns have room, even with their names folded, those with the largest ones."""
    whole, digits = panel, min(2, panel.digits)
    if panel.corner is not None:
        panel, digits = _corner(panel, *panel.corner), panel.digits
    down, across = axis_names(panel)
    down, names = [visible(name) for name in down], [spelled(name, NAME) for name in across]
    cells = [[number_text(value, digits) for value in row] for row in panel.values]
    sizes = [_sizes(name, [row[n] for row in cells]) for n, name in enumerate(names)]
    first = min(_sizes(panel.axes[0], down)[1], TEXT, width // 2)
    room, widths = width - SET_IN, [whole for whole, _ in sizes]
    if _together([first, *widths]) > room:
        widths = [folded for _, folded in sizes]
    far = [max((abs(row[n] or 0.0) for row in panel.values), default=0.0) for n in range(len(names))]
    order = sorted(range(len(names)), key=lambda n: -far[n])
    count = max([1, *(n for n in range(len(order) + 1) if _together([first, *(widths[m] for m in order[:n])]) <= room)])
    kept = sorted(order[:count])
    grid = columns()
    grid.add_column(panel.axes[0], justify="right", width=first, overflow="fold")
    for n in kept:
        grid.add_column(names[n], justify="right", width=widths[n], overflow="fold")
    largest = panel.largest or max(far, default=0.0)
    for name, row, texts in zip(down, panel.values, cells, strict=True):
        grid.add_row(name, *(_shade(row[n], texts[n], largest, panel.signed) for n in kept))
    left = {
        "more rows": len(whole.rows) - len(down),
        "more columns": len(whole.columns) - len(names),
        "more with smaller numbers": len(names) - len(kept),
    }
    legend = [Text(visible(_first_sentence(panel.note)), style="dim")] if panel.note else []
    return _section(panel, grid, *legend, *_left([f"{n:,} {what}" if n else "" for what, n in left.items()], more))


def _corner(panel: Heat, rows: int, across: int) -> Heat:
    """The first rows and columns of a heat map."""
    values = [row[:across] for row in panel.values[:rows]]
    return replace(panel, rows=panel.rows[:rows], columns=panel.columns[:across], values=values)


@drawn.register
def _strip(panel: Strip, width: int, top: int, more: str) -> RenderableType:
    """Its tokens as bars, the largest first; the text itself where a bar can be full, or it says what is between."""
    if panel.full is not None or panel.before:
        legend = [Text(visible(_first_sentence(panel.note)), style="dim")] if panel.note else []
        title = [Text(visible(panel.title), style="bold")] if panel.title else []
        lines = [coloured(panel)] if panel.before else text_with_bars(panel, width)
        return Group(*title, *lines, *legend, *([] if panel.joined else [Text()]))
    parts = [(f"“{token.strip()}” ({n})", value) for n, token in enumerate(panel.tokens)
             if (value := panel.values[n]) is not None]  # fmt: skip
    parts.sort(key=lambda each: -abs(each[1]))
    whole = sum(each for _, each in parts) if panel.signed else None
    own = Bars(
        name=panel.name, title=panel.title, parts=parts, part="token", unit=panel.unit, whole=whole, signed=panel.signed
    )
    return _bars(own, width, top, more)


@drawn.register
def _curves(panel: Curves, width: int, top: int, more: str) -> RenderableType:
    """Each line in small, with its first and last number; one that has a full bar as wide as the screen."""
    if panel.full is not None:
        (curve,) = panel.series
        bars = resampled([y or 0.0 for y in curve.y], width - 4)
        step = (curve.x[-1] - curve.x[0]) / max(1, len(curve.x) - 1)
        each = max(1, round(step * len(curve.x) / len(bars)))
        what = f"a {panel.x}" if each == 1 else f"about {each} {panel.x}s, the largest of them"
        line = Text(f"  {heights(bars, panel.full)}", style="cyan")
        legend = f"a bar: {what}; full at {number_text(panel.full, panel.digits)} {panel.y}"
        return _section(panel, line, Text(legend, style="dim"))
    grid = columns("", panel.y, ("first", "right"), ("last", "right"))
    full = max((abs(y) for curve in panel.series for y in curve.y if y is not None and math.isfinite(y)), default=0.0)
    for curve in panel.series[:top]:
        known = [y for y in curve.y if y is not None and math.isfinite(y)]
        ends = [number_text(y, panel.digits) for y in (known[0], known[-1])] if known else ["–", "–"]
        grid.add_row(visible(curve.name), heights(resampled([abs(y) for y in known], CURVE), full), *ends)
    left = len(panel.series) - top
    return _section(panel, grid, *_left([f"{left:,} more lines" if left > 0 else ""], more))


@drawn.register
def _scatter(panel: Scatter, width: int, top: int, more: str) -> RenderableType:
    """The points' places; of a path, its first and last."""
    followed = {point.after for point in panel.points}
    ends = [point for n, point in enumerate(panel.points) if point.after is None or n not in followed]
    rows: list[list[Cell]] = [[point.label, point.group, point.x, point.y] for point in ends]
    called = [Column(panel.called.label), Column(panel.called.group), Column(panel.x, 2), Column(panel.y, 2)]
    return _table(Table(name=panel.name, title=panel.title, columns=called, rows=rows), width, top, more)


@drawn.register
def _arcs(panel: Arcs, width: int, top: int, more: str) -> RenderableType:
    """The largest weights, from which token to which."""
    pairs = [
        (f"“{a.strip()}” ({i}) to “{b.strip()}” ({j})", value)
        for i, (a, row) in enumerate(zip(panel.tokens, panel.values, strict=True))
        for j, (b, value) in enumerate(zip(panel.targets, row, strict=True))
        if value
    ]
    pairs.sort(key=lambda each: -each[1])
    own = Bars(name=panel.name, title=panel.title, parts=pairs, part="from, to", unit=panel.unit, signed=False)
    return _bars(own, width, top, more)


def axis_names(panel: Heat) -> tuple[list[str], list[str]]:
    """(rows, columns): the names of a heat map's axes, without what the axis says already: "head 3" is 3."""
    rows, across = panel.axes
    return [name.removeprefix(f"{rows} ") for name in panel.rows], [
        name.removeprefix(f"{across} ") for name in panel.columns
    ]


def number_text(value: int | Number, digits: int) -> str:
    """A number with so many decimals, a dash where there is none; what rounds to 0 has no sign."""
    return "–" if value is None or not math.isfinite(value) else number(float(value), f".{digits}f")


def with_sign(value: int | float) -> str:
    """A number with its sign, a dash where there is none."""
    return signed(float(value)) if math.isfinite(value) else "–"


def _first_sentence(note: str) -> str:
    """The first sentence of a note, without its full stop: what stands under a panel in a terminal."""
    return note.split(". ")[0].removesuffix(".")


def others(count: int) -> str:
    """What so many parts are called that a view shows as one."""
    return "1 other" if count == 1 else f"{count:,} others together"


def _section(panel: Panel, *parts: RenderableType) -> RenderableType:
    return section(visible(panel.title), *parts) if panel.title else Group(*parts, Text())


def _bar(number: float, largest: float, both: bool, room: int = BAR) -> Text:
    """A bar; of numbers of both signs red above 0 and blue below, as pictures and pages have them."""
    own = bar(abs(number), largest, room)
    own.stylize("red" if both and number >= 0 else "cyan")
    return own


def _cell(cell: Cell, column: Column) -> str:
    if isinstance(cell, InContext):
        return visible(f"{cell.left}[{cell.form}]{cell.right}")
    if isinstance(cell, Shares):
        return visible(shares_text(cell))
    if isinstance(cell, str):
        return visible(cell)
    if column.signed and cell is not None:
        return with_sign(cell)
    return number_text(cell, column.digits or 0)


def _number(cell: Cell) -> float | None:
    return float(cell) if isinstance(cell, (int, float)) and math.isfinite(cell) else None


def _shade(value: Number, text: str, largest: float, both: bool) -> Text:
    strong = value is not None and abs(value) >= STRONG * largest
    return Text(text, style=("bold red" if both and (value or 0) > 0 else "bold cyan") if strong else "dim")


def _left(parts: Sequence[str], more: str) -> Iterable[Text]:
    """In one line what is left out, and where it is; nothing where nothing is."""
    named = [part for part in parts if part]
    return [Text(f"{' and '.join(named)}: left out here, {more}", style="dim")] if named else []
