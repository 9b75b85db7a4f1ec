"""Positional encodings in a terminal: the first rows and columns of their matrices."""

import math

from jaxtyping import Float
from rich.console import Console
from rich.table import Table
from rich.text import Text
from torch import Tensor

from regard.explain.findings.positions import alike, positions_findings, slopes, turns
from regard.explain.vectors.positions import matrix_names, title
from regard.views.terminal.layout import columns, put, section
from regard.views.terminal.one_screen import bar, ending, sentences

MOST_ROWS = 10  # of the table on the first screen
DISTANCES = (1, 8, 64)  # at which ALiBi's weights are shown
ROWS, COLUMNS = 6, 6  # how much of a matrix is printed
AXES = ("rows", "columns")


def show_positions_shortly(kind: str, pictures: Float[Tensor, "n rows columns"], of: str, console: Console) -> None:
    """Print on one screen: sentences, then by distance how alike positions are, or what is turned or taken off."""
    heading = Text(title(kind, pictures, of)[:1].upper() + title(kind, pictures, of)[1:], style="bold")
    room = max(4, min(32, console.width - 40))
    if kind in ("sinusoidal", "learned"):
        rows, note = _alike(pictures[0], room), "of the vectors of two positions so far apart, mean over all such pairs"
    elif pictures.shape[1] < 2:
        rows, note = columns(""), "one position alone: there is no distance"
    elif kind == "rotary":
        rows, note = (
            _turns(pictures, room),
            "a bar: how much of a turn it makes within the positions shown, at most one",
        )
    else:
        rows, note = _slopes(pictures, room), "weight: what exp(score) is multiplied by at that distance"
    last = ending([], "--all (the numbers themselves), --figure FILE")
    put([sentences(positions_findings(kind, pictures)), heading, rows, Text(note, style="dim"), Text(), last], console)


def _alike(table: Float[Tensor, "rows columns"], room: int) -> Table:
    rows = columns(("positions apart", "right"), ("cosine", "right"), "")
    for each in alike(table):
        rows.add_row(str(each.distance), f"{each.cosine:z.3f}", bar(each.cosine, 1.0, room))
    return rows


def _turns(pictures: Float[Tensor, "2 rows pairs"], room: int) -> Table:
    rows = columns(("pair", "right"), ("one turn in", "right"), "")
    every, length = turns(pictures), pictures.shape[1]
    count = min(MOST_ROWS, len(every))
    for n in sorted({round(place * (len(every) - 1) / max(1, count - 1)) for place in range(count)}):
        rows.add_row(str(n), f"{every[n]:,.1f} positions", bar(length / every[n], 1.0, room))
    return rows


def _slopes(pictures: Float[Tensor, "heads rows rows"], room: int) -> Table:
    far = [each for each in DISTANCES if each < pictures.shape[1]]
    rows = columns(("head", "right"), ("a position", "right"), *((f"weight at {each}", "right") for each in far), "")
    every = slopes(pictures)
    spare = max(0, room - 14 * len(far) + 10)
    for n, slope in enumerate(every):
        weights = [f"{math.exp(-slope * each):.3f}" for each in far]
        rows.add_row(str(n), f"-{slope:.4g}", *weights, bar(slope, max(every), min(16, spare)))
    return rows


def show_positions(kind: str, pictures: Float[Tensor, "n rows columns"], of: str, console: Console) -> None:
    """Print the first rows and columns of each matrix."""
    parts = []
    for name, picture in zip(matrix_names(kind, len(pictures)), pictures, strict=True):
        corner = picture[:ROWS, :COLUMNS]
        rows = columns(("", "right"), *((str(n), "right") for n in range(corner.shape[1])))
        for n, row in enumerate(corner.tolist()):
            rows.add_row(str(n), *(f"{x:z.4f}" for x in row))
        left = [f"{size - cut} more {what}" for size, cut, what in zip(picture.shape, corner.shape, AXES, strict=True)
                if size > cut]  # fmt: skip
        heading = title(kind, pictures, of) + (f": {name}" if name else "")
        parts.append(section(heading, rows, Text(f"left out here: {', '.join(left)}" if left else "", style="dim")))
    put(parts, console)
