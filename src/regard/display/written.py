"""Write numbers, cells and names as text, the same in a terminal and in pictures."""

import math

from regard.display.panels import Cell, Column, Heat, InContext, Number, Shares
from regard.explain.wording import fixed, signed
from regard.text.quoting import visible


def axis_names(panel: Heat) -> tuple[list[str], list[str]]:
    """Name a heat map's rows and columns without what their axis says already: "head 3" is 3."""
    down, across = ([name.removeprefix(f"{axis} ") for name in names]
                    for axis, names in zip(panel.axes, (panel.rows, panel.columns), strict=True))  # fmt: skip
    return down, across


def number_text(value: int | Number, digits: int, unbounded: bool = False) -> str:
    """Write a number as `fixed` does, a dash where there is none."""
    return "–" if value is None or not math.isfinite(value) else fixed(float(value), digits, unbounded)


def shares_text(shares: Shares) -> str:
    """Write named numbers as one text."""
    write = with_sign if shares.signed else number_text
    return ", ".join(f"{name} {write(value, shares.digits)}" for name, value in shares.parts) + shares.mark


def with_sign(value: int | float, digits: int = 2) -> str:
    """Write a number with its sign, a dash where there is none."""
    return signed(float(value), f".{digits}f") if math.isfinite(value) else "–"


def other_panel_parts_name(count: int) -> str:
    """Name so many parts that a view shows as one."""
    return "1 other" if count == 1 else f"{count:,} others together"


def cell_text(cell: Cell, column: Column) -> str:
    """Write a cell as its column has it."""
    if isinstance(cell, InContext):
        return visible(f"{cell.left}[{cell.form}]{cell.right}")
    if isinstance(cell, Shares):
        return visible(shares_text(cell))
    if isinstance(cell, str):
        return visible(cell)
    if column.signed and cell is not None:
        return with_sign(cell, column.digits or 0)
    return number_text(cell, column.digits or 0, column.unbounded)


def finite_number_of_cell(cell: Cell) -> float | None:
    """Return a cell's number, None where there is none."""
    return float(cell) if isinstance(cell, (int, float)) and math.isfinite(cell) else None
