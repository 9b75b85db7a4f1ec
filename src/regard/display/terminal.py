"""Draw every kind of panel in a terminal."""

import math
from functools import partial, singledispatch
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from regard.display.notebook import tokens_html
from regard.display.panels import Bars, Cell, Column, Curves, Heat, Number, Panel, Scatter, Strip, Table
from regard.display.sentences import axis_names, number_text, other_panel_parts_name, with_sign
from regard.display.terminal_parts import SET_IN, columns, resampled_for_terminal, terminal_height_characters
from regard.display.terminal_tables import (
    TEXT,
    coloured,
    column_and_folded_width,
    draw_table,
    left_out,
    panel_section,
    signed_bar,
    text_with_bars,
    total_column_width,
)
from regard.text.quoting import display_text, short, visible

NAME = 10  # cells of a heat map's column name
STRONG = 0.25  # of the largest: numbers from which on a heat map's are coloured
CURVE = 32  # characters


@singledispatch
def drawn(panel: Panel, width: int, top: int, more: str) -> RenderableType:
    """Draw a panel for a terminal of width columns.

    top: how many parts or rows are named. more: where those are that are left out, "--json".
    """
    raise NotImplementedError(type(panel).__name__)


drawn.register(Table, draw_table)


@drawn.register
def _bars(panel: Bars, width: int, top: int, more: str) -> RenderableType:
    """The first parts, the others together, and the sum of all, where it means something."""

    def write(number: float) -> str:
        return with_sign(number, panel.digits) if panel.signed else number_text(number, panel.digits, panel.unbounded)

    grid = columns(panel.part, (panel.unit, "right"), "")
    largest = max((abs(each) for _, each in panel.parts if math.isfinite(each)), default=0.0)
    for name, value in panel.parts[:top]:
        grid.add_row(visible(name), write(value), signed_bar(value, largest, panel.signed))
    rest = panel.parts[top:]
    if rest and panel.whole is not None:
        grid.add_row(Text(other_panel_parts_name(len(rest)), style="dim"), write(sum(each for _, each in rest)), "")
    if panel.whole is not None:
        grid.add_row(Text("sum", style="bold"), write(panel.whole), "")
    left = f"{len(rest):,} smaller ones" if rest and panel.whole is None else ""
    return panel_section(panel, grid, *left_out([left], more))


@drawn.register
def _heat(panel: Heat, width: int, top: int, more: str) -> RenderableType:
    """Its numbers; where not all columns have room, even with their names folded, those with the largest ones."""
    digits = panel.digits
    down, across = axis_names(panel)
    down = [visible(name) for name in down]
    names = [" ".join(short(word, NAME) for word in display_text(name, 2 * NAME).split(" ")) for name in across]
    cells = [[number_text(value, digits, panel.signed or panel.unbounded) for value in row] for row in panel.values]
    sizes = [column_and_folded_width(name, [row[n] for row in cells]) for n, name in enumerate(names)]
    first = min(column_and_folded_width(panel.axes[0], down)[1], TEXT, width // 2)
    room, widths = width - SET_IN, [whole for whole, _ in sizes]
    if total_column_width([first, *widths]) > room:
        widths = [folded for _, folded in sizes]
    far = [max((abs(row[n] or 0.0) for row in panel.values), default=0.0) for n in range(len(names))]
    order = sorted(range(len(names)), key=lambda n: -far[n])
    count = max(
        [1, *(n for n in range(len(order) + 1) if total_column_width([first, *(widths[m] for m in order[:n])]) <= room)]
    )
    kept = sorted(order[:count])
    grid = columns()
    grid.add_column(panel.axes[0], justify="right", width=first, overflow="fold")
    for n in kept:
        grid.add_column(names[n], justify="right", width=widths[n], overflow="fold")
    largest = panel.largest or max(far, default=0.0)
    for r, (name, row, texts) in enumerate(zip(down, panel.values, cells, strict=True)):
        shown = [None if (r, n) in panel.grey else row[n] for n in kept]
        grid.add_row(name, *(_shaded_panel_number(value, texts[n], largest, panel.signed)
                             for n, value in zip(kept, shown, strict=True)))  # fmt: skip
    more_columns = len(names) - len(kept)
    legend = [Text(visible(panel.note), style="dim")] if panel.note else []
    missing = left_out([f"{more_columns:,} columns with smaller numbers" if more_columns else ""], more)
    return panel_section(panel, grid, *legend, *missing)


@drawn.register
def _strip(panel: Strip, width: int, top: int, more: str) -> RenderableType:
    """Its tokens as bars, the largest first; the text itself where a bar can be full, or it says what is between."""
    if panel.full is not None or panel.before:
        legend = [Text(visible(panel.note), style="dim")] if panel.note else []
        title = [Text(visible(panel.title), style="bold")] if panel.title else []
        lines = [coloured(panel)] if panel.before else text_with_bars(panel, width)
        shown: Any = Group(*title, *lines, *legend, *([] if panel.joined else [Text()]))
        cut = [0.25 + 0.5 * (n % 2) for n in range(len(panel.tokens))]
        shades, said = cut if panel.before else panel.values, f"{panel.label} {panel.title}".strip()
        shown._repr_html_ = partial(tokens_html, panel.tokens, shades, said, panel.special, panel.full or 1.0)
        return shown
    parts = [(f"“{token.strip()}” ({n})", value) for n, token in enumerate(panel.tokens)
             if (value := panel.values[n]) is not None]  # fmt: skip
    parts.sort(key=lambda each: -abs(each[1]))
    whole = sum(each for _, each in parts) if panel.signed else None
    own = Bars(
        name=panel.name, title=panel.title, parts=parts, part="token", unit=panel.unit, whole=whole,
        signed=panel.signed, unbounded=panel.unbounded, digits=panel.digits,
    )  # fmt: skip
    return _bars(own, width, top, more)


@drawn.register
def _curves(panel: Curves, width: int, top: int, more: str) -> RenderableType:
    """Each line in small, with its first and last number; one that has a full bar as wide as the screen."""
    if panel.full is not None:
        (curve,) = panel.series
        bars = resampled_for_terminal([y or 0.0 for y in curve.y], width - 4)
        step = (curve.x[-1] - curve.x[0]) / max(1, len(curve.x) - 1)
        each = max(1, round(step * len(curve.x) / len(bars)))
        what = f"one {panel.x}" if each == 1 else f"the largest value of about {each} {panel.x}s"
        line = Text(f"  {terminal_height_characters(bars, panel.full)}", style="cyan")
        cut = " or more" * (max(bars) > panel.full)
        legend = f"Each bar is {what}. A full bar is {number_text(panel.full, panel.digits)} {panel.y}{cut}."
        said = [Text(each, style="dim") for each in (legend, visible(panel.caption)) if each]
        return panel_section(panel, line, *said)
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
    left = len(panel.series) - top
    return panel_section(panel, grid, *left_out([f"{left:,} more lines" if left > 0 else ""], more))


@drawn.register
def _scatter(panel: Scatter, width: int, top: int, more: str) -> RenderableType:
    """The points' places; of a path, its first and last."""
    followed = {point.after for point in panel.points}
    ends = [point for n, point in enumerate(panel.points) if point.after is None or n not in followed]
    rows: list[list[Cell]] = [[point.label, point.group, point.x, point.y] for point in ends]
    called = [Column(panel.called.label), Column(panel.called.group)]
    called += [Column(axis, 2, unbounded=True) for axis in (panel.x, panel.y)]
    return draw_table(Table(name=panel.name, title=panel.title, columns=called, rows=rows), width, top, more)


def _shaded_panel_number(value: Number, text: str, largest: float, both: bool) -> Text:
    strong = value is not None and abs(value) >= STRONG * largest
    return Text(text, style=("bold red" if both and (value or 0) > 0 else "bold cyan") if strong else "dim")
