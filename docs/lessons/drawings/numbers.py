"""A small matrix in a terminal or a notebook: its numbers in columns, with names down and across."""

from collections.abc import Sequence

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
