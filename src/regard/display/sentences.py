"""Write an answer's findings from templates, and format its numbers and cells as text for terminals and figures.

A finding is a template with a condition, filled with the answer's numbers.

A question has a table of groups. A group covers a single fact and lists its templates, most specific first:

    TABLE = [
        [("“{word}” attends most to “{key}” ({weight}) in {head}.", lambda n: n["weight"] >= 0.3),
         ("No token receives 0.30 or more from “{word}”. The largest weight is {weight}.", None)],
    ]
    sentences(TABLE, {"word": "bank", "key": "river", "weight": 0.831, "head": "layer 0, head 4"})

A template applies if the answer has every number that it names and its condition is true.
"""

import math
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from regard.display.panels import Cell, Column, Heat, InContext, Number, Shares
from regard.explain.wording import capital, fixed, listed, number, signed
from regard.text.quoting import visible

MAX_SENTENCES = 3  # per answer

Numbers = Mapping[str, Any]
Template = tuple[str, Callable[[Numbers], Any] | None]


class _NumberFormatter(string.Formatter):
    """A template formatter: two decimals by default. `:+` adds a sign, `:n` is for any size, `:%` means percent."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, bool) or not isinstance(value, float | int):
            return listed(value) if isinstance(value, list) else format(value, format_spec)
        if format_spec == "%":
            return "<1%" if 0 < value < 0.005 else f"{value:z.0%}".replace("-", "−")
        if format_spec == "+":
            return signed(float(value))
        if isinstance(value, int) or (format_spec == "n" and abs(value) >= 100):
            return number(float(value), ",.0f")
        return fixed(value, 2, unbounded=format_spec == "n") if format_spec in ("", "n") else format(value, format_spec)


def sentences(table: Sequence[Sequence[Template]], numbers: Numbers, most: int = MAX_SENTENCES) -> list[str]:
    """Fill the first template that applies in each group. Returns at most `most` sentences."""
    filled = []
    for group in table:
        for template, condition in group:
            names = [name for _, name, _, _ in string.Formatter().parse(template) if name]
            if all(numbers.get(name) is not None for name in names) and (condition is None or condition(numbers)):
                filled.append(capital(_NumberFormatter().vformat(template, (), numbers)))
                break
    return filled[:most]


def axis_names(panel: Heat) -> tuple[list[str], list[str]]:
    """Return the names of a heat map's rows and columns without the axis name: "3" instead of "head 3"."""
    down, across = ([name.removeprefix(f"{axis} ") for name in names]
                    for axis, names in zip(panel.axes, (panel.rows, panel.columns), strict=True))  # fmt: skip
    return down, across


def number_text(value: int | Number, digits: int, unbounded: bool = False, sign: bool = False) -> str:
    """Format a number like `fixed`, or with its sign if `sign`. None, NaN and infinity become a dash."""
    if value is None or not math.isfinite(value):
        return "–"
    return signed(float(value), f".{digits}f") if sign else fixed(float(value), digits, unbounded)


def shares_text(shares: Shares) -> str:
    """Format a cell of named numbers as text."""
    numbers = [f"{name} {number_text(value, shares.digits, sign=shares.signed)}" for name, value in shares.parts]
    return ", ".join(numbers) + shares.mark


def other_panel_parts_name(count: int) -> str:
    """Return the name of the bar for all parts that aren't shown: "12 others together"."""
    return "1 other" if count == 1 else f"{count:,} others together"


def cell_text(cell: Cell, column: Column) -> str:
    """Format a table cell as text, with the decimals and sign of its column."""
    if isinstance(cell, InContext):
        return visible(f"{cell.left}[{cell.form}]{cell.right}")
    if isinstance(cell, Shares | str):
        return visible(cell if isinstance(cell, str) else shares_text(cell))
    return number_text(cell, column.digits or 0, column.unbounded, column.signed)


def finite_number_of_cell(cell: Cell) -> float | None:
    """Return a table cell's number, None if it has none or isn't finite."""
    return float(cell) if isinstance(cell, (int, float)) and math.isfinite(cell) else None
