"""A small matrix in a terminal or a notebook: its numbers in columns, with names down and across."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.text.quoting import visible


def show_numbers(
    matrix: Float[Tensor, "rows columns"],
    rows: Sequence[str] | None = None,
    across: Sequence[str] | None = None,
    *,
    title: str = "",
    digits: int = 3,
) -> None:
    """Print a matrix as a table: rows and across name its rows and columns, of which across may be left out.

    digits: decimals of each number. Plain text, however wide: a table that is folded cannot be read down.

    Raises:
        ValueError: there are more or fewer names than rows or columns.
    """
    down = [visible(name) for name in rows] if rows is not None else [str(n) for n in range(len(matrix))]
    numbers = [[f"{number:z.{digits}f}" for number in row] for row in matrix.detach().tolist()]
    names = [visible(name) for name in across] if across is not None else []
    left = max(map(len, down), default=0)
    wide = max((len(cell) for row in [*numbers, names] for cell in row), default=0)
    if title:
        print(title)
    if names:
        print(" " * left, *(f"{name:>{wide}}" for name, _ in zip(names, matrix[0], strict=True)), sep="  ")
    for name, row in zip(down, numbers, strict=True):
        print(f"{name:<{left}}", *(f"{number:>{wide}}" for number in row), sep="  ")
    print()


def beside(
    found: Float[Tensor, "*shape"],
    figures: Any,
    rows: Sequence[str] | None = None,
    *,
    title: str = "",
    digits: int = 4,
    wide: int = 4,
    shown: int | None = None,
) -> None:
    """Print what was computed beside the figures that an article prints, and hold one against the other.

    rows: names of the numbers of a vector, or of the rows of a matrix. wide: how many numbers stand in a line; with
    four, a name of up to 7 letters leaves the table within 80 columns. shown: how many rows to print, where not all of
    the rows that are compared.

    Raises:
        AssertionError: they differ, by more than half of the last decimal.
    """
    expected, ours = torch.tensor(figures).double(), found.detach().double()
    torch.testing.assert_close(ours, expected, atol=0.51 * 10**-digits, rtol=0)
    both = [(matrix[:, None] if rows else matrix[None]) if matrix.ndim == 1 else matrix for matrix in (ours, expected)]
    names = [visible(name) for name in rows or [""] * len(both[0])]
    left, right = (
        [[" ".join(f"{number:z8.{digits}f}" for number in part.tolist()) for part in row.split(wide)] for row in matrix]
        for matrix in both
    )
    across, down = len(left[0][0]), max(map(len, names))
    if title:
        print(title)
    print(f"{'':{down}} {'computed':>{across}}  {'printed':>{max(across, 8)}}")
    for name, row, other in list(zip(names, left, right, strict=True))[:shown]:
        for n, (part, printed) in enumerate(zip(row, other, strict=True)):
            print(f"{'' if n else name:{down}} {part:{across}}  {printed}")
    if shown is not None:
        print(f"… and {len(names) - shown} more rows")
    print(f"the same to {digits} decimals: {expected.numel()} of {expected.numel()}\n")
