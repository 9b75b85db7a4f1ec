"""What a positional encoding does, as panels: by distance, pair or head, and the matrices themselves."""

import math
from typing import TYPE_CHECKING

from regard.display.panels import Cell, Column, Heat, Panel, Table
from regard.explain.wording import capital, number
from regard.questions.positions.encodings import alike, positions_per_rotary_turn, slopes

if TYPE_CHECKING:
    from torch import Tensor

    from regard.questions.positions.answer import Positions

SPREAD = 10  # pairs that are named
DISTANCES = (1, 8, 64)  # at which ALiBi's weights are shown
CORNER = (6, 6)  # rows and columns of a matrix that a terminal shows
USUAL = 0.999  # of a trained table: a few numbers far beyond all others would make these pale
DOES = {
    "sinusoidal": "what is added to the embedding at each position",
    "learned": "what is added to the embedding at each position",
    "rotary": "the {} of the angle by which each pair of components of queries and keys is turned",
    "alibi": "{}: what is added to the score of a query and a key",
}


def of_positions(found: "Positions") -> list[Panel]:
    """Show a table by distance, pair or head, and a grid of each matrix."""
    if found.kind in ("sinusoidal", "learned"):
        rows: list[list[Cell]] = [[far, cosine] for far, cosine in alike(found.matrices[0])]
        columns = [Column("positions apart", 0), Column("cosine", 3, bar=True)]
        note = "Of the vectors of two positions so far apart, mean over all such pairs"
    elif found.matrices.shape[1] < 2:
        rows, columns, note = [], [Column("positions apart", 0)], "One position alone: there is no distance"
    elif found.kind == "rotary":
        rows, columns, note = _rotary_turns_table(found.matrices)
    else:
        rows, columns, note = _alibi_slopes_table(found.matrices)
    name = {"rotary": "By pair", "alibi": "By head"}.get(found.kind, "By distance")
    table = Table(name=name, title=found.title(), columns=columns, rows=rows, note=note, screen=True)
    return [table, *(_matrix_grid(found, name, each) for name, each in zip(found.names, found.matrices, strict=True))]


def _rotary_turns_table(matrices: "Tensor") -> tuple[list[list[Cell]], list[Column], str]:
    """Some pairs, spread over all of them."""
    every, length = positions_per_rotary_turn(matrices), matrices.shape[1]
    chosen = sorted({round(place * (len(every) - 1) / (SPREAD - 1)) for place in range(SPREAD)})
    columns = [Column("pair", 0), Column("one turn in … positions", 1), Column(f"turns in {length}", 2, bar=True)]
    which = "" if len(chosen) == len(every) else f"; {len(chosen)} of {len(every)} pairs"
    note = f"How often each pair turns within the {length:,} positions{which}"
    return [[n, every[n], length / every[n]] for n in chosen], columns, note


def _alibi_slopes_table(matrices: "Tensor") -> tuple[list[list[Cell]], list[Column], str]:
    far = [each for each in DISTANCES if each < matrices.shape[1]]
    columns = [Column("head", 0), Column("a position", 6, bar=True), *(Column(f"weight at {each}", 3) for each in far)]
    rows: list[list[Cell]] = [
        [n, -slope, *(math.exp(-slope * each) for each in far)] for n, slope in enumerate(slopes(matrices))
    ]
    return rows, columns, "Weight: what exp(score) is multiplied by at that distance"


def _matrix_grid(found: "Positions", name: str, matrix: "Tensor") -> Heat:
    """One matrix; ALiBi's heads differ 128-fold, and each has a scale of its own."""
    axes = {"rotary": ("position", "pair"), "alibi": ("query", "key")}
    sizes = found.matrices.abs().flatten().sort().values
    rows, columns = ([str(n) for n in range(size)] for size in matrix.shape)
    does = capital(DOES[found.kind].format(name))
    largest, beyond = (None if found.kind == "alibi" else float(sizes[-1])), ""
    if found.kind == "learned" and float(sizes[-1]) > (usual := float(sizes[int(USUAL * (len(sizes) - 1))])):
        ends = [number(float(each)) for each in (matrix.min(), matrix.max())]
        largest, beyond = usual, f"; single numbers reach {ends[0]} and {ends[1]}, beyond the darkest colours"
    return Heat(
        name=capital(name), title=does, caption=f"{does}{beyond}.", unit="", signed=True,
        axes=axes.get(found.kind, ("position", "component")), rows=rows, columns=columns, values=matrix.tolist(),
        largest=largest, digits=4, corner=CORNER, picture=True,
    )  # fmt: skip
