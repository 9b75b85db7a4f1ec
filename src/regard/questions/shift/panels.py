"""A change of meaning as panels: the senses of both groups, how far apart they are, and good examples."""

from typing import TYPE_CHECKING

from regard.corpus.asking.clusters import NOT_TOLD_APART
from regard.display.contexts import in_context
from regard.display.panels import Bars, Cell, Column, Panel, Table
from regard.questions.shift.sentences import shift_title

if TYPE_CHECKING:
    from regard.questions.shift.answer import SharedSense, Shift

FATES = {"kept": "", "gained": "gained", "lost": "lost", "unsure": "not shown"}


def of_shift(found: "Shift") -> list[Panel]:
    """Show the senses with their shares in both groups, these as bars, the distances and the examples."""
    examples: list[list[Cell]] = [
        [name, _called(sense), *in_context(line)]
        for sense in found.senses
        for name, lines in zip(found.groups, sense.examples, strict=True)
        for line in lines
    ]
    columns = [Column("group"), Column("sense"), Column("sentence"), Column("document"), Column("from", 0)]
    return [
        _senses(found),
        Bars(
            name="Shares", title="The share of each sense in both groups", part="sense and group", unit="share",
            parts=[
                (f"{_called(sense)} in {name}", share)
                for sense in found.senses
                for name, share in zip(found.groups, sense.shares, strict=True)
            ],
            signed=False, digits=2, picture=True,
            note=f"A share is of all occurrences of its group; groups are {' and '.join(found.groups)}.",
        ),
        _distances(found),
        Table(
            name="Examples", title="Good examples of each sense in both groups", columns=columns, rows=examples,
            note="those nearest to the centroid of their sense, the nearest first; from: the first character in the "
            "document", screen=True,
        ),
    ]  # fmt: skip


def _senses(found: "Shift") -> Table:
    one, other = found.groups
    columns = [
        Column("sense"), Column(one, 0), Column("share", 2, bar=True), Column(other, 0), Column("share", 2, bar=True),
        Column("p", 4), Column("came or went"),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [_called(sense), sense.occurrences[0], sense.shares[0], sense.occurrences[1], sense.shares[1], sense.p,
         FATES[sense.fate]]
        for sense in found.senses
    ]  # fmt: skip
    note = "p: that chance alone makes shares as different as these of any sense. Gained and lost are tested by it."
    return Table(
        name="Senses",
        title=f"Senses of {shift_title(found)} together",
        columns=columns,
        rows=rows,
        note=note,
        screen=True,
    )


def _distances(found: "Shift") -> Table:
    change = found.change
    rows: list[list[Cell]] = [
        ["average pairwise distance (APD)", change.apd],
        [f"within {found.groups[0]}", change.within[0]],
        [f"within {found.groups[1]}", change.within[1]],
        ["2 APD less both: 0 where nothing changed", change.statistic],
    ]
    return Table(
        name="Distances", title="How far apart the occurrences are", columns=[Column("of"), Column("distance", 2)],
        rows=rows, screen=True,
        note="The mean of 1 − cosine over all pairs of one occurrence of each group, or of two of one group.",
    )  # fmt: skip


def _called(sense: "SharedSense") -> str:
    return sense.name if sense.name == NOT_TOLD_APART else f"sense {sense.name}"
