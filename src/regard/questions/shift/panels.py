"""A change of meaning in sentences and panels: the senses of both groups, how far apart they are, and examples."""

from typing import TYPE_CHECKING

from regard.corpus.asking.change import ABSENT, ALARM, PRESENT
from regard.corpus.asking.clusters import NOT_SEPARATED
from regard.display.panels import Bars, Cell, Column, Panel, Table
from regard.display.sentences import Template, sentences
from regard.questions.find import in_context
from regard.questions.senses.panels import MAX_NAMED, UNSEPARATED, measures, rounded
from regard.text.quoting import quoted

if TYPE_CHECKING:
    from regard.questions.shift.answer import SharedSense, Shift

FATES = {"kept": "", "gained": "gained", "lost": "lost", "unsure": "not significant"}
TABLE: list[list[Template]] = [
    [
        ("The embeddings of {word} differ significantly between {one} and {other} (p = {p}, {rounds} permutations of "
         "{permuted}).", lambda n: n["differs"]),
        ("The embeddings of {word} do not differ significantly between {one} and {other} (p = {p}, {rounds} "
         "permutations of {permuted}).", None),
    ],
    UNSEPARATED,
    [
        ("From {one} to {other}, {word} gains {gained} and loses {lost}.", None),
        ("From {one} to {other}, {word} gains {gained}.", None),
        ("From {one} to {other}, {word} loses {lost}.", None),
        ("None of the {count} senses changes significantly.", lambda n: n["count"] > 1 and n["sense"] is None),
    ],
    [("The largest significant change is in {sense}: {before:%} of occurrences in {one}, {after:%} in {other} (p = "
      "{p_sense}).", None)],
]  # fmt: skip


def shift_panels(result: "Shift") -> list[Panel]:
    """Show the senses with their fractions of both groups, these as bars, the distances and the examples."""
    one, other = result.groups
    examples: list[list[Cell]] = [
        [name, _called(sense), *in_context(line)]
        for sense in result.senses
        for name, lines in zip(result.groups, sense.examples, strict=True)
        for line in lines
    ]
    columns = [Column("group"), Column("sense"), Column("sentence"), Column("document"), Column("from", 0)]
    return [
        _senses(result),
        Bars(
            name="Fractions", title=f"Fraction of each sense in {one} and {other}", part="sense and group",
            unit="fraction", signed=False, digits=2, picture=True,
            parts=[
                (f"{_called(sense)} in {name}", share)
                for sense in result.senses
                for name, share in zip(result.groups, sense.shares, strict=True)
            ],
            note="Fraction of all occurrences in the group.",
        ),
        _distances(result),
        Table(
            name="Examples", title="Examples of each sense in both groups", columns=columns, rows=examples,
            note="Examples nearest to the sense's centroid come first. from: position of the first character in the "
            "document.", screen=True,
        ),
    ]  # fmt: skip


def _senses(result: "Shift") -> Table:
    one, other = result.groups
    columns = [
        Column("sense"), Column(one, 0), Column("fraction", 2, bar=True), Column(other, 0),
        Column("fraction", 2, bar=True), Column("p", 4), Column("change"),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [_called(sense), sense.occurrences[0], sense.shares[0], sense.occurrences[1], sense.shares[1], sense.p,
         FATES[sense.fate]]
        for sense in result.senses
    ]  # fmt: skip
    note = (
        "p: probability that chance alone changes the fraction of any sense this much. gained: at most "
        f"{ABSENT:.0%} of {one}, at least {PRESENT:.0%} of {other} and p at most {ALARM}; lost: the reverse."
    )
    title = f"Senses of {shift_title(result)}, layer {result.layer}"
    return Table(name="Senses", title=title, columns=columns, rows=rows, note=note, screen=True)


def _distances(result: "Shift") -> Table:
    change, (one, other) = result.change, result.groups
    rows: list[list[Cell]] = [
        [f"between {one} and {other} (APD)", change.apd],
        [f"within {one}", change.within[0]],
        [f"within {other}", change.within[1]],
        ["2 × between − both within", change.statistic],
    ]
    return Table(
        name="Distances", title=f"Mean distance between two occurrences, layer {result.layer}",
        columns=[Column("pairs"), Column("distance", 2)], rows=rows, screen=True,
        note="distance: mean 1 − cosine of all pairs. The last row is the test statistic, about 0 without a change.",
    )  # fmt: skip


def _called(sense: "SharedSense") -> str:
    return sense.name if sense.name == NOT_SEPARATED else f"sense {sense.name}"


def shift_title(result: "Shift") -> str:
    """Return the word, its groups, and how often it occurs in each."""
    one, other = (f"{name} ({count:,})" for name, count in zip(result.groups, result.change.occurrences, strict=True))
    return f"{quoted(result.word)} in {one} and {other}"


def shift_sentences(result: "Shift") -> list[str]:
    """Write how the test of the whole word ended, which senses came or went, and the largest change of a sense."""
    total, separated = sum(result.change.occurrences), result.k is not None or len(result.senses) > 1
    fates: dict[str, list[str] | str | None] = {}
    for fate in ("gained", "lost"):
        names = [f"sense {sense.name}" for sense in result.senses if sense.fate == fate]
        fates[fate] = (names if len(names) <= MAX_NAMED else f"{len(names)} senses") or None
    significant = [sense for sense in result.senses if sense.p is not None and sense.p <= ALARM]
    largest = max(significant, key=lambda sense: abs(sense.shares[0] - sense.shares[1]), default=None)
    numbers = {
        "word": quoted(result.word), "one": result.groups[0], "other": result.groups[1],
        "p": rounded(result.change.p, ALARM, "g"), "differs": result.change.p <= ALARM, "rounds": result.change.rounds,
        "permuted": result.permuted, "separated": separated, "asked": result.k, "total": total,
        "times": f"{total} times", "count": len(result.senses), **fates,
        "sense": largest and f"sense {largest.name}", "before": largest and largest.shares[0],
        "after": largest and largest.shares[1], "p_sense": largest and rounded(largest.p or 0, ALARM, "g"),
    }  # fmt: skip
    return sentences(TABLE, numbers | measures(result.k, result.clusters))
