"""Draw every kind of panel in a terminal: tables as wide as the screen, concordances, tokens with bars."""

import math
from collections.abc import Iterable, Sequence
from functools import partial, singledispatch
from typing import Any

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from regard.display.notebook import tokens_html
from regard.display.panels import (
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
)
from regard.display.sentences import (
    axis_names,
    cell_text,
    finite_number_of_cell,
    number_text,
    other_panel_parts_name,
)
from regard.display.terminal_parts import (
    APART,
    SET_IN,
    columns,
    resampled_for_terminal,
    terminal_bar,
    terminal_height_characters,
)
from regard.text.quoting import display_text, short, visible

NAME = 14  # characters of a name in a cell of named numbers
MAX_LINES = 4  # lines shown of a long text
GAP = "  "  # between two names
# Background colours for black text that colour-blind readers can distinguish. Neighbours differ in lightness.
COLOURS = ("#e69f00", "#9fd4f2", "#3fb28f", "#f0e442", "#e8a9c8", "#d9d9d9")


def coloured(strip: Strip) -> Text:
    """Return a strip's text with a background colour for each token, but none for blanks between tokens."""
    line = Text()
    for n, (gap, token) in enumerate(zip(strip.before, strip.tokens, strict=True)):
        line.append(_printable_for_terminal(gap)).append(
            _printable_for_terminal(token), style=f"black on {COLOURS[n % len(COLOURS)]}"
        )
    return line


def _printable_for_terminal(text: str) -> str:
    """Return a text that keeps its blanks and shows other unprintable characters as visible symbols."""
    return "".join(c if c in " \xa0" else visible(c) for c in text)


def in_lines(shares: Shares, room: int) -> Text:
    """Return a cell of named numbers in lines of `room` characters. A name and its number stay on one line."""
    line, used = Text(), 0
    for n, (name, value) in enumerate(shares.parts):
        text = f"{display_text(name, NAME + 10)} {number_text(value, shares.digits, sign=shares.signed)}"
        if used and used + len(GAP) + len(text) > room - len(shares.mark):
            if shares.one_line:
                break
            line.append("\n")
            used = 0
        between = GAP if used else ""
        name, _, value_text = text.rpartition(" ")
        line.append(between + name, style="dim" if n < shares.apart else "")
        line.append(f" {value_text}", style="dim")
        used += len(between) + len(text)
    return line.append(shares.mark, style="dim") if shares.parts else Text("–", style="dim")


def text_with_bars(strip: Strip, width: int) -> list[RenderableType]:
    """Return the lines of a strip's text, each followed by a line of bars. Lines without numbers have no bars.

    A long text is cut to the lines around its first marked token, or to its first lines.
    """
    gap = "" if strip.running else " "
    names = [visible(token) if strip.running else display_text(token, 1000) for token in strip.tokens]
    before = f"{strip.label}  " if strip.label else ""
    lines, used = list[list[int]]([[]]), 0
    for position, name in enumerate(names):
        if used and used + len(name) > width - len(before):
            lines.append([])
            used = 0
        lines[-1].append(position)
        used += len(name) + len(gap)
    first = 0
    if len(lines) > MAX_LINES and strip.marked:
        middle = next(n for n, line in enumerate(lines) if strip.marked[0] in line)
        first = max(0, min(middle - 1, len(lines) - MAX_LINES))
    parts: list[RenderableType] = []
    for n, line in enumerate(lines[first : first + MAX_LINES]):
        name_line = Text(before if n == 0 else " " * len(before), style="bold" if n == 0 else "")
        bar_line = Text(" " * len(before))
        for position in line:
            dimmed = position in strip.special or (strip.running and strip.values[position] is None)
            special = "dim" if dimmed else ""
            name_line.append(names[position], style="bold underline magenta" if position in strip.marked else special)
            name_line.append(gap)
            size = len(names[position].rstrip(" ↵")) if strip.running else len(names[position])
            value = strip.values[position]
            bars = " " * size if value is None else terminal_height_characters([value], strip.full or 1.0) * size
            bar_line.append(bars + " " * (len(names[position]) - size) + gap, special or "cyan")
        values = [strip.values[position] for position in line] if strip.running else strip.values
        parts += [name_line, bar_line] if any(value is not None for value in values) else [name_line]
    hidden = len(lines) - MAX_LINES
    if hidden > 0:
        note = f"… {hidden} of {len(lines)} lines not shown ({len(names)} tokens in all)"
        parts.append(Text(note, style="dim"))
    return parts


BAR, SHORT = 16, 4  # cells of a full bar: usually, and at least if there is little room
TEXT = 24  # maximum cells of a text column if bars need room, and of a heat map's row names
SHARES = 24  # the minimum width of a column of named numbers, in cells
MIN_COLUMN = 8  # the minimum width of other text columns, in cells


def draw_table(panel: Table, width: int, top: int, more: str) -> RenderableType:
    """Draw the first `top` rows of a table, with as many columns as fit the width, and a note on the rest."""
    rows = [*panel.rows[:top], *([panel.total] if panel.total else [])]
    marked = [n for n in range(len(panel.columns)) if all(isinstance(row[n], InContext) for row in rows)]
    names: list[str] = []  # names of columns that don't fit
    if any(isinstance(cell, Shares) for row in rows for cell in row):
        grid = _grid_of_named_numbers(panel, rows, width)
    elif rows and marked:
        grid = _grid_of_contexts(panel, marked, rows, width)
    else:
        cells = [[cell_text(cell, column) for cell, column in zip(row, panel.columns, strict=True)] for row in rows]
        widths, bars = _widths_with_room(panel, cells, width)
        grid, names = _grid_with_bars(panel, rows, cells, widths, bars), [c.name for c in panel.columns[len(widths) :]]
    hidden = len(panel.rows) - top
    missing = [f"{hidden:,} more row{'s' * (hidden > 1)}" if hidden > 0 else ""]
    missing += [f"{'column' if len(names) == 1 else 'columns'} {', '.join(names)}"] if names else []
    return panel_section(panel, grid, *_note_line(panel), *left_out(missing, more))


def _grid_with_bars(
    panel: Table,
    rows: Sequence[Sequence[Cell]],
    cells: Sequence[Sequence[RenderableType]],
    widths: Sequence[int | None],
    bars: int,
) -> Grid:
    """Return a grid of a table's cells, with as many columns as `widths`. bars: their length, 0 for none."""
    grid = columns()
    barred: dict[int, tuple[float, bool]] = {}  # by column: its largest number, and whether numbers have a sign
    for n, (column, width) in enumerate(zip(panel.columns, widths, strict=False)):
        grid.add_column(column.name, justify="left" if column.digits is None else "right", width=width, overflow="fold")
        if column.bar and bars:
            sizes = (abs(finite_number_of_cell(row[n]) or 0.0) for row in panel.rows)
            barred[n] = max(sizes, default=0.0), panel.signed(n)
            grid.add_column("")
    for row, texts in zip(rows, cells, strict=True):
        line: list[RenderableType] = []
        for n, text in enumerate(texts[: len(widths)]):
            number = 0.0 if row is panel.total else finite_number_of_cell(row[n]) or 0.0
            line += [text, terminal_bar(number, *barred[n], bars)] if n in barred else [text]
        grid.add_row(*line, style="bold" if row is panel.total else "")
    return grid


def _note_line(panel: Panel) -> list[Text]:
    """Return the note on how to read a panel, as a list of one line or none."""
    return [Text(visible(panel.note), style="dim")] if panel.note else []


def _grid_of_contexts(panel: Table, marked: Sequence[int], rows: Sequence[Sequence[Cell]], width: int) -> Grid:
    """Return a grid of words in context, aligned, with as much context as fits next to the other columns.

    Other columns are cut at their beginning, because a document's name matters more than its folder. marked: the
    columns of contexts, which have the same width.
    """
    others = [n for n in range(len(panel.columns)) if n not in marked]
    cells = [[cell_text(row[n], panel.columns[n]) for n in others] for row in rows]
    cells = [[f"…{cell[1 - TEXT :]}" if len(cell) > TEXT else cell for cell in row] for row in cells]
    sizes = [max([cell_len(panel.columns[n].name), *(cell_len(row[k]) for row in cells)]) for k, n in enumerate(others)]
    room = (width - SET_IN - sum(sizes) - APART * (len(panel.columns) - 1)) // len(marked)
    texts: dict[int, Sequence[RenderableType]] = {n: [row[k] for row in cells] for k, n in enumerate(others)}
    texts |= {n: _aligned_contexts([row[n] for row in rows], room) for n in marked}
    grid = columns()
    for column in panel.columns:
        grid.add_column(column.name, justify="left" if column.digits is None else "right", no_wrap=True)
    for n in range(len(rows)):
        grid.add_row(*(texts[column][n] for column in range(len(panel.columns))))
    return grid


def _aligned_contexts(cells: Sequence[Cell], room: int) -> list[Text]:
    """Return words in context as lines in which the words are aligned, with as much context as fits the room."""
    contexts = [(visible(c.left), visible(c.form), visible(c.right)) for c in cells if isinstance(c, InContext)]
    form = max(cell_len(word) for _, word, _ in contexts)
    room = max(MIN_COLUMN, room - form)
    before, after = (max(cell_len(context[n]) for context in contexts) for n in (0, 2))
    before = min(before, max(room // 2, room - after))
    after = min(after, room - before)
    lines = []
    for left, word, right in contexts:
        line = Text(left[-before:].rjust(before) if before else "", no_wrap=True, overflow="crop")
        lines.append(line.append(word, style="bold").append(right[: after + form - cell_len(word)]))
    return lines


def _grid_of_named_numbers(panel: Table, rows: Sequence[Sequence[Cell]], width: int) -> Grid:
    """Return a grid of a table with cells of named numbers. Their columns share the width that other columns leave."""
    texts = [["" if cell is None or isinstance(cell, Shares) else cell_text(cell, column)
              for cell, column in zip(row, panel.columns, strict=True)] for row in rows]  # fmt: skip
    named = [any(isinstance(row[n], Shares) for row in rows) for n in range(len(panel.columns))]
    by_column = zip([column.name for column in panel.columns], *texts, strict=True)
    sizes = [max(map(cell_len, column)) for column in by_column]
    fixed = [size for size, is_named in zip(sizes, named, strict=True) if not is_named]
    room = max(SHARES, (width - SET_IN - total_column_width(fixed) - APART * sum(named)) // sum(named))
    barred = any(column.bar for column in panel.columns) and room - SHARES >= MIN_COLUMN + APART
    room, size = (SHARES, min(BAR, room - SHARES - APART)) if barred else (room, 0)
    cells = [
        [in_lines(cell, room) if isinstance(cell, Shares) else text for cell, text in zip(row, row_texts, strict=True)]
        for row, row_texts in zip(rows, texts, strict=True)
    ]
    return _grid_with_bars(panel, rows, cells, [None] * len(panel.columns), size)


def tables_side_by_side(panels: Sequence[Table], width: int, top: int, more: str) -> RenderableType:
    """Draw tables side by side if all fit the width with short bars, otherwise one below the other."""
    needs = []  # the width of each table with short bars
    for panel in panels:
        texts = [[cell_text(row[n], column) for row in panel.rows[:top]] for n, column in enumerate(panel.columns)]
        names = [column_and_folded_width(c.name, cells)[0] for c, cells in zip(panel.columns, texts, strict=True)]
        needs.append(SET_IN + total_column_width(names) + sum(SHORT + APART for c in panel.columns if c.bar))
    left = width - sum(needs) - len(needs) + 1
    if left < 0:
        return Group(*(draw_table(panel, width, top, more) for panel in panels))
    grid = Grid.grid(padding=(0, 1, 0, 0), pad_edge=False)
    for need in needs:
        grid.add_column(width=need + left // len(needs))
    grid.add_row(
        *(draw_table(panel, need + left // len(needs), top, more) for panel, need in zip(panels, needs, strict=True))
    )
    return grid


def _widths_with_room(panel: Table, rows: Sequence[Sequence[str]], width: int) -> tuple[list[int], int]:
    """Return the width of each column that fits the terminal, and the length of bars, 0 if they don't fit.

    If there isn't enough room, bars are dropped first, then text is wrapped, then columns are dropped.
    """
    sizes = [column_and_folded_width(column.name, [row[n] for row in rows]) for n, column in enumerate(panel.columns)]
    text = [column.digits is None for column in panel.columns]
    room, count = width - SET_IN, sum(column.bar for column in panel.columns)
    limited = [min(full, TEXT) if is_text else full for (full, _), is_text in zip(sizes, text, strict=True)]
    widths, remaining = [full for full, _ in sizes], room - total_column_width(limited)
    longest = min(BAR, remaining // count - APART) if count else 0
    longest = longest if longest >= SHORT else 0
    bars = (longest + APART) * count if longest else 0
    if total_column_width(limited) > room:
        entries = [(*size, is_text) for size, is_text in zip(sizes, text, strict=True)]
        min_widths = [min(full, MIN_COLUMN) if is_text else folded for full, folded, is_text in entries]
        kept = max([1, *(n for n in range(1, len(min_widths) + 1) if total_column_width(min_widths[:n]) <= room)])
        widths = [full if is_text else folded for full, folded, is_text in entries[:kept]]
    max_width = min(max(widths, default=0), room)  # cells of the widest column of text
    while max_width > MIN_COLUMN and total_column_width(_folded_column_widths(widths, text, max_width)) + bars > room:
        max_width -= 1
    return _folded_column_widths(widths, text, max_width), longest


def _folded_column_widths(widths: Sequence[int], text: Sequence[bool], max_width: int) -> list[int]:
    """Return the widths of columns, limiting text columns to `max_width`."""
    return [min(width, max_width) if is_text else width for width, is_text in zip(widths, text, strict=False)]


def column_and_folded_width(name: str, cells: Iterable[str]) -> tuple[int, int]:
    """Return a column's width with its name on a single line, and with one word of the name per line."""
    numbers = max(map(cell_len, cells), default=1)
    return max(numbers, cell_len(name)), max([numbers, *map(cell_len, name.split())])


def total_column_width(widths: Sequence[int]) -> int:
    """Return the total width of columns, with the gaps between them."""
    return sum(widths) + APART * (len(widths) - 1)


def panel_section(panel: Panel, *parts: RenderableType) -> RenderableType:
    """Return a panel's parts, indented under the panel's title if it has one."""
    if not panel.title:
        return Group(*parts, Text())
    indented = (Padding(part, (0, 0, 0, SET_IN), expand=False) for part in parts)
    return Group(Text(visible(panel.title), style="bold"), *indented, Text())


def left_out(parts: Sequence[str], more: str) -> Iterable[Text]:
    """Return a list with a line that names the omitted parts and where to find them, or an empty list."""
    names = [part for part in parts if part]
    return [Text(f"Not shown: {' and '.join(names)} (see {more})", style="dim")] if names else []


COLUMN_NAME = 10  # maximum cells of a word in a heat map's column name
STRONG = 0.25  # a heat map's numbers are coloured if they are at least this fraction of the largest
CURVE = 32  # characters of a small curve


@singledispatch
def drawn(panel: Panel, width: int, top: int, more: str) -> RenderableType:
    """Draw a panel for a terminal of width columns.

    top: the maximum number of parts or rows. more: where to find the others, such as "--json".
    """
    raise NotImplementedError(type(panel).__name__)


drawn.register(Table, draw_table)


@drawn.register
def _bars(panel: Bars, width: int, top: int, more: str) -> RenderableType:
    """Draw the first parts as bars in a terminal. If the sum is meaningful, add rows for other parts and the sum."""
    write = partial(number_text, digits=panel.digits, unbounded=panel.unbounded, sign=panel.signed)
    grid = columns(panel.part, (panel.unit, "right"), "")
    largest = max((abs(value) for _, value in panel.parts if math.isfinite(value)), default=0.0)
    for name, value in panel.parts[:top]:
        grid.add_row(visible(name), write(value), terminal_bar(value, largest, panel.signed, BAR))
    rest = panel.parts[top:]
    if rest and panel.whole is not None:
        grid.add_row(Text(other_panel_parts_name(len(rest)), style="dim"), write(sum(value for _, value in rest)), "")
    if panel.whole is not None:
        grid.add_row(Text("sum", style="bold"), write(panel.whole), "")
    omitted = f"{len(rest):,} smaller ones" if rest and panel.whole is None else ""
    return panel_section(panel, grid, *left_out([omitted], more))


@drawn.register
def _heat(panel: Heat, width: int, top: int, more: str) -> RenderableType:
    """Draw a heat map's numbers in a terminal. If not all columns fit, show those with the largest numbers."""
    digits = panel.digits
    down, across = axis_names(panel)
    down = [visible(name) for name in down]
    words_of_names = [display_text(name, 2 * COLUMN_NAME).split(" ") for name in across]
    names = [" ".join(short(word, COLUMN_NAME) for word in words) for words in words_of_names]
    cells = [[number_text(value, digits, panel.signed or panel.unbounded) for value in row] for row in panel.values]
    sizes = [column_and_folded_width(name, [row[n] for row in cells]) for n, name in enumerate(names)]
    first = min(column_and_folded_width(panel.axes[0], down)[1], TEXT, width // 2)
    room, widths = width - SET_IN, [full for full, _ in sizes]
    if total_column_width([first, *widths]) > room:
        widths = [folded for _, folded in sizes]
    maxima = [max((abs(row[n] or 0.0) for row in panel.values), default=0.0) for n in range(len(names))]
    order = sorted(range(len(names)), key=lambda n: -maxima[n])
    count = max(
        [1, *(n for n in range(len(order) + 1) if total_column_width([first, *(widths[m] for m in order[:n])]) <= room)]
    )
    kept = sorted(order[:count])
    grid = columns()
    grid.add_column(panel.axes[0], justify="right", width=first, overflow="fold")
    for n in kept:
        grid.add_column(names[n], justify="right", width=widths[n], overflow="fold")
    largest = panel.largest or max(maxima, default=0.0)
    for r, (name, row, texts) in enumerate(zip(down, panel.values, cells, strict=True)):
        values = [None if (r, n) in panel.grey else row[n] for n in kept]
        grid.add_row(name, *(_number_in_colour(value, texts[n], largest, panel.signed)
                             for n, value in zip(kept, values, strict=True)))  # fmt: skip
    more_columns = len(names) - len(kept)
    missing = left_out([f"{more_columns:,} columns with smaller numbers" if more_columns else ""], more)
    return panel_section(panel, grid, *_note_line(panel), *missing)


@drawn.register
def _strip(panel: Strip, width: int, top: int, more: str) -> RenderableType:
    """Draw a token strip in a terminal: as bars, the largest first, or as text if `full` or `before` is set."""
    if panel.full is not None or panel.before:
        title = [Text(visible(panel.title), style="bold")] if panel.title else []
        lines = [coloured(panel)] if panel.before else text_with_bars(panel, width)
        shown: Any = Group(*title, *lines, *_note_line(panel), *([] if panel.joined else [Text()]))
        cut = [0.25 + 0.5 * (n % 2) for n in range(len(panel.tokens))]
        shades, label = cut if panel.before else panel.values, f"{panel.label} {panel.title}".strip()
        shown._repr_html_ = partial(tokens_html, panel.tokens, shades, label, panel.special, panel.full or 1.0)
        return shown
    parts = [(f"“{token.strip()}” ({n})", value) for n, token in enumerate(panel.tokens)
             if (value := panel.values[n]) is not None]  # fmt: skip
    parts.sort(key=lambda part: -abs(part[1]))
    total = sum(value for _, value in parts) if panel.signed else None
    bars = Bars(
        name=panel.name, title=panel.title, parts=parts, part="token", unit=panel.unit, whole=total,
        signed=panel.signed, unbounded=panel.unbounded, digits=panel.digits,
    )  # fmt: skip
    return _bars(bars, width, top, more)


@drawn.register
def _curves(panel: Curves, width: int, top: int, more: str) -> RenderableType:
    """Draw small curves with their first and last number, or one curve across the terminal if `full` is set."""
    if panel.full is not None:
        (curve,) = panel.series
        bars = resampled_for_terminal([y or 0.0 for y in curve.y], width - 4)
        step = (curve.x[-1] - curve.x[0]) / max(1, len(curve.x) - 1)
        points = max(1, round(step * len(curve.x) / len(bars)))
        meaning = f"one {panel.x}" if points == 1 else f"the largest value of about {points} {panel.x}s"
        line = Text(f"  {terminal_height_characters(bars, panel.full)}", style="cyan")
        cut = " or more" * (max(bars) > panel.full)
        legend = f"Each bar is {meaning}. A full bar is {number_text(panel.full, panel.digits)} {panel.y}{cut}."
        lines = [Text(text, style="dim") for text in (legend, visible(panel.caption)) if text]
        return panel_section(panel, line, *lines)
    grid = columns("", panel.y, ("first", "right"), ("last", "right"))
    full = max((abs(y) for curve in panel.series for y in curve.y if y is not None and math.isfinite(y)), default=0.0)
    for curve in panel.series[:top]:
        known = [y for y in curve.y if y is not None and math.isfinite(y)]
        ends = [number_text(y, panel.digits, panel.unbounded) for y in (known[0], known[-1])] if known else ["–", "–"]
        grid.add_row(
            visible(curve.name),
            terminal_height_characters(resampled_for_terminal([abs(y) for y in known], CURVE), full),
            *ends,
        )
    hidden = len(panel.series) - top
    return panel_section(panel, grid, *left_out([f"{hidden:,} more lines" if hidden > 0 else ""], more))


@drawn.register
def _scatter(panel: Scatter, width: int, top: int, more: str) -> RenderableType:
    """Draw a scatter plot in a terminal as a table of positions: only the first and last point of each path."""
    followed = {point.after for point in panel.points}
    ends = [point for n, point in enumerate(panel.points) if point.after is None or n not in followed]
    rows: list[list[Cell]] = [[point.label, point.group, point.x, point.y] for point in ends]
    table_columns = [Column(panel.called.label), Column(panel.called.group)]
    table_columns += [Column(axis, 2, unbounded=True) for axis in (panel.x, panel.y)]
    return draw_table(Table(name=panel.name, title=panel.title, columns=table_columns, rows=rows), width, top, more)


def _number_in_colour(value: Number, text: str, largest: float, signed: bool) -> Text:
    strong = value is not None and abs(value) >= STRONG * largest
    return Text(text, style=("bold red" if signed and (value or 0) > 0 else "bold cyan") if strong else "dim")
