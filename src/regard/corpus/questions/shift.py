"""Compare a word's meaning between two corpora or two parts of a corpus, and find gained and lost senses.

`regard.corpus.asking.change` measures and tests the change. Senses are clusters of the occurrences of both groups. A
gained sense has at most 2 % of the first group and at least 10 % of the second, and these fractions must differ
significantly (`sense_share_test`, p ≤ 0.05 after correction for the number of senses). A lost sense is the reverse. If
such a difference isn't significant or has no test (fewer than 5 occurrences), the sense is "unsure".
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np

from regard.checks import check_seed
from regard.corpus.asking.change import ABSENT, ALARM, PRESENT, ROUNDS, Change, permutation_test, sense_share_test
from regard.corpus.asking.clusters import NOT_SEPARATED, Clusters, find_clusters
from regard.corpus.asking.occurrences import CONTEXT, Line, Occurrences, flat_rows, look_up
from regard.corpus.questions.find import context_cells
from regard.corpus.questions.senses.panels import MAX_NAMED, UNSEPARATED, measures, rounded
from regard.corpus.store_tables import StoreTables
from regard.display.answer import Answer
from regard.display.panels import Bars, Cell, Column, Panel, Table
from regard.display.sentences import Template, sentences
from regard.errors import RegardError
from regard.shown import Row
from regard.text.quoting import quoted

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
    """Return the tables of senses, distances and examples, and bars of each sense's fraction per group."""
    one, other = result.groups
    examples: list[list[Cell]] = [
        [name, _sense_label(sense), *context_cells(line)]
        for sense in result.senses
        for name, lines in zip(result.groups, sense.examples, strict=True)
        for line in lines
    ]
    columns = [Column("group"), Column("sense"), Column("sentence"), Column("document"), Column("from", 0)]
    return [
        _table_of_senses(result),
        Bars(
            name="Fractions", title=f"Fraction of each sense in {one} and {other}", part="sense and group",
            unit="fraction", signed=False, digits=2, picture=True,
            parts=[
                (f"{_sense_label(sense)} in {name}", share)
                for sense in result.senses
                for name, share in zip(result.groups, sense.shares, strict=True)
            ],
            note="Fraction of all occurrences in the group.",
        ),
        _table_of_distances(result),
        Table(
            name="Examples", title="Examples of each sense in both groups", columns=columns, rows=examples,
            note="Examples nearest to the sense's centroid come first. from: position of the first character in the "
            "document.", screen=True,
        ),
    ]  # fmt: skip


def _table_of_senses(result: "Shift") -> Table:
    one, other = result.groups
    columns = [
        Column("sense"), Column(one, 0), Column("fraction", 2, bar=True), Column(other, 0),
        Column("fraction", 2, bar=True), Column("p", 4), Column("change"),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [_sense_label(sense), sense.occurrences[0], sense.shares[0], sense.occurrences[1], sense.shares[1], sense.p,
         FATES[sense.fate]]
        for sense in result.senses
    ]  # fmt: skip
    note = (
        "p: probability that chance alone changes the fraction of any sense this much. gained: at most "
        f"{ABSENT:.0%} of {one}, at least {PRESENT:.0%} of {other} and p at most {ALARM}; lost: the reverse."
    )
    title = f"Senses of {shift_title(result)}, layer {result.layer}"
    return Table(name="Senses", title=title, columns=columns, rows=rows, note=note, screen=True)


def _table_of_distances(result: "Shift") -> Table:
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


def _sense_label(sense: "SharedSense") -> str:
    return sense.name if sense.name == NOT_SEPARATED else f"sense {sense.name}"


def shift_title(result: "Shift") -> str:
    """Return the title: the word, both groups, and the number of occurrences in each."""
    one, other = (f"{name} ({count:,})" for name, count in zip(result.groups, result.change.occurrences, strict=True))
    return f"{quoted(result.word)} in {one} and {other}"


def shift_sentences(result: "Shift") -> list[str]:
    """Report the result of the test, the gained and lost senses, and the largest change of a sense."""
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


DOCUMENTS = 5  # minimum number per group for a test that permutes whole documents: 252 labellings
EXAMPLES = 3
Fate = Literal["gained", "lost", "kept", "unsure"]


@dataclass(frozen=True)
class SharedSense:
    """A sense in both groups: its number and fraction of occurrences in each, with examples.

    p: the probability that the fractions of any sense differ at least this much by chance. None for a sense that isn't
    tested, because it has fewer than 5 or all occurrences.
    """

    name: str
    occurrences: tuple[int, int]
    shares: tuple[float, float]
    fate: Fate
    examples: tuple[tuple[Line, ...], tuple[Line, ...]]
    p: float | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Shift(Answer):
    """The result of `shift`: a word in two groups of occurrences. permuted: "documents" or "occurrences".

    groups: their names. k: requested number of senses, None to choose it by silhouette. context: characters per side.
    """

    format: ClassVar[str] = "regard shift"
    title = shift_title
    panels = shift_panels

    word: str
    layer: int
    groups: tuple[str, str]
    change: Change
    permuted: str
    senses: tuple[SharedSense, ...]
    notes: tuple[str, ...]
    found: tuple[Occurrences, Occurrences] = field(repr=False)
    clusters: Clusters = field(repr=False)
    k: int | None = None
    context: int = CONTEXT

    def findings(self) -> list[str]:
        """Report the result of the test, and the gained and lost senses."""
        return shift_sentences(self)

    def exactness(self) -> list[str]:
        """Return the notes on the indexes and on the test."""
        return list(self.notes)

    def rows(self) -> list[Row]:
        """Return every occurrence with its group and sense, sorted by group, sense and distance from the centroid."""
        rows: list[Row] = []
        first = 0
        for name, occurrences in zip(self.groups, self.found, strict=True):
            labels = self.clusters.labels[first : first + len(occurrences)]
            distances = self.clusters.distances[first : first + len(occurrences)]
            first += len(occurrences)
            order = np.lexsort((distances, labels))
            for n, row in zip(order, flat_rows(occurrences.take(order).lines(self.context)), strict=True):
                sense, distance = self.senses[int(labels[n])].name, float(distances[n])
                rows.append({"group": name, "sense": sense, "distance": distance, **row})
        return rows

    def data(self) -> dict[str, object]:
        """Return the change, its test, and the senses of both groups for JSON."""
        return {
            "word": self.word, "layer": self.layer, "groups": list(self.groups), "change": asdict(self.change),
            "permuted": self.permuted, "senses": [asdict(sense) for sense in self.senses],
            "silhouettes": {str(k): value for k, value in self.clusters.silhouettes.items()},
            "separations": {str(k): value for k, value in self.clusters.separations.items()}, "notes": list(self.notes),
        }  # fmt: skip


def find_shift(
    tables: StoreTables,
    word: str,
    other: StoreTables | None = None,
    column: str | None = None,
    *,
    values: Sequence[str] | None = None,
    k: int | None = None,
    by: str = "word",
    layer: int | None = None,
    rounds: int = ROUNDS,
    examples: int = EXAMPLES,
    context: int = CONTEXT,
    seed: int = 0,
) -> Shift:
    """Compare a word between two embedding indexes, or between two values of a metadata column."""
    if (other is None) == (column is None):
        raise RegardError("shift: needs a second embedding index, or a metadata column to compare by: pass one of them")
    if examples < 0:
        raise RegardError(f"examples: got {examples}, expected 0 or more")
    check_seed(seed)
    notes = list(tables.notes)
    if other is not None:
        _check_same_model(tables, other)
        notes = [f"{nth} index: {note}" for nth, data in (("first", tables), ("second", other)) for note in data.notes]
        matches = look_up(tables, word, by), look_up(other, word, by)
        groups = tables.path.resolve().name, other.path.resolve().name
        if groups[0] == groups[1]:
            groups = str(tables.path), str(other.path)
    else:
        assert column is not None
        matches, groups = _shift_groups_by_column(look_up(tables, word, by), column, values, notes)
    chosen_layer = tables.layer if layer is None else layer
    one, two = (group.vectors(chosen_layer) for group in matches)
    left, right = (np.unique(np.array(group.document), return_inverse=True)[1].astype(np.int64) for group in matches)
    documents = left, right + left.max(initial=-1) + 1  # documents of two indexes differ, even with equal names
    smallest = min(len(np.unique(numbers)) for numbers in documents)
    by_document = smallest >= DOCUMENTS
    if not by_document:
        notes.append(
            f"One group has only {smallest} document{'s' * (smallest != 1)} ({DOCUMENTS} needed to permute documents). "
            "p can be too small, because occurrences in a document are similar."
        )
    change = permutation_test(one, two, documents if by_document else None, rounds=rounds, seed=seed)
    clusters = find_clusters(np.concatenate([one, two]), k, seed=seed)
    first, units = np.arange(len(one) + len(two)) < len(one), np.concatenate(documents)
    units = units if by_document else np.arange(len(first))
    tested = sense_share_test(clusters.labels, first, units, clusters.k, rounds=rounds, seed=seed)
    senses = [_shared_sense(sense, p, clusters, matches, examples, context) for sense, p in enumerate(tested)]
    if k is None and clusters.k == 1:
        senses = [replace(senses[0], name=NOT_SEPARATED)]
    permuted = "documents" if by_document else "occurrences"
    notes += clusters.notes
    return Shift(
        word, chosen_layer, groups, change, permuted, tuple(senses), tuple(notes), matches, clusters, k,
        context,
    )  # fmt: skip


def _check_same_model(one: StoreTables, other: StoreTables) -> None:
    """Check that two indexes are comparable: from the same model, both of words or both of tokens."""
    first, second = one.manifest.model, other.manifest.model
    if (first.digest, first.layers, first.width) != (second.digest, second.layers, second.width):
        raise RegardError(
            f"shift: the embedding indexes have two models, {first.name} and {second.name}: use the same model"
        )
    units = [index.manifest.settings.get("unit") for index in (one, other)]
    if units[0] != units[1]:
        raise RegardError(f"shift: one embedding index has {units[0]}, the other {units[1]}: use the same unit")


def _shift_groups_by_column(
    occurrences: Occurrences, column: str, values: Sequence[str] | None, notes: list[str]
) -> tuple[tuple[Occurrences, Occurrences], tuple[str, str]]:
    """Split occurrences into two groups by the value of a metadata column. Also return the groups' names."""
    texts = occurrences.texts()
    cells = [texts[key].metadata.get(column) for key in zip(occurrences.shard, occurrences.part.tolist(), strict=True)]
    present = sorted({value for value in cells if value is not None})
    if not present:
        columns = ", ".join(sorted({name for part in texts.values() for name in part.metadata})) or "none"
        raise RegardError(f"column: no document with the word has a column {column!r}; there are {columns}")
    selected = list(present if values is None else values)
    if len(selected) != 2 or selected[0] == selected[1]:
        options = ", ".join(present[:12]) + (", …" if len(present) > 12 else "")
        raise RegardError(f"got {len(selected)} value(s) of {column!r}, expected two: pass values= of {options}")
    missing = [value for value in selected if value not in present]
    if missing:
        options = ", ".join(present[:12])
        raise RegardError(f"column: no document with the word has {column!r} {missing[0]!r}; there are {options}")
    left_out = sum(value not in selected for value in cells)
    if left_out:
        neither = f"neither {selected[0]} nor {selected[1]}"
        notes.append(f"{left_out} of {len(cells)} occurrences are left out, because their {column} is {neither}.")
    parts = [occurrences.take([n for n, value in enumerate(cells) if value == choice]) for choice in selected]
    return (parts[0], parts[1]), (f"{column}={selected[0]}", f"{column}={selected[1]}")


def _shared_sense(
    sense: int, p: float | None, clusters: Clusters, pair: tuple[Occurrences, Occurrences], examples: int, context: int
) -> SharedSense:
    """Return a sense's counts, fractions and nearest examples in both groups."""
    counts, shares, lines, first = [], [], [], 0
    for group in pair:
        labels, distances = (values[first : first + len(group)] for values in (clusters.labels, clusters.distances))
        members = np.flatnonzero(labels == sense)
        best = members[np.argsort(distances[members], kind="stable")][:examples]
        counts.append(len(members))
        shares.append(len(members) / len(group))
        lines.append(tuple(group.take(best).lines(context)))
        first += len(group)
    return SharedSense(
        str(sense + 1), (counts[0], counts[1]), (shares[0], shares[1]), _fate_of_sense(shares[0], shares[1], p),
        (lines[0], lines[1]), p,
    )  # fmt: skip


def _fate_of_sense(before: float, after: float, p: float | None) -> Fate:
    """Return whether a sense is gained, lost, kept or unsure, by its fractions and their p-value."""
    gained, lost = before <= ABSENT and after >= PRESENT, after <= ABSENT and before >= PRESENT
    if not gained and not lost:
        return "kept"
    if p is None or p > ALARM:
        return "unsure"
    return "gained" if gained else "lost"
