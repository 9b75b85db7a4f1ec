"""Positional encodings in a terminal: the first rows and columns of their matrices."""

from jaxtyping import Float
from rich.console import Console
from rich.text import Text
from torch import Tensor

from regard.explain.positions import matrix_names, title
from regard.views.terminal.layout import columns, put, section

ROWS, COLUMNS = 6, 6  # how much of a matrix is printed
AXES = ("rows", "columns")


def show_positions(kind: str, pictures: Float[Tensor, "n rows columns"], of: str, console: Console) -> None:
    """Print the first rows and columns of each matrix."""
    parts = []
    for name, picture in zip(matrix_names(kind, len(pictures)), pictures, strict=True):
        corner = picture[:ROWS, :COLUMNS]
        rows = columns(("", "right"), *((str(n), "right") for n in range(corner.shape[1])))
        for n, row in enumerate(corner.tolist()):
            rows.add_row(str(n), *(f"{x:.4f}" for x in row))
        left = [f"{size - cut} more {what}" for size, cut, what in zip(picture.shape, corner.shape, AXES, strict=True)
                if size > cut]  # fmt: skip
        heading = title(kind, pictures, of) + (f": {name}" if name else "")
        parts.append(section(heading, rows, Text(f"left out here: {', '.join(left)}" if left else "", style="dim")))
    put(parts, console)
