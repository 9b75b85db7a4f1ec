"""Write the sentences about a word in two groups: whether its embeddings differ, and which senses came or went."""

from typing import TYPE_CHECKING

from regard.corpus.asking.sense_shares import ALARM
from regard.display.sentences import Template, sentences
from regard.questions.senses.sentences import MAX_NAMED, UNSEPARATED, measures, rounded
from regard.text.quoting import quoted

if TYPE_CHECKING:
    from regard.questions.shift.answer import Shift

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


def shift_title(result: "Shift") -> str:
    """Return the word, its groups, and how often it occurs in each."""
    one, other = (f"{name} ({count:,})" for name, count in zip(result.groups, result.change.occurrences, strict=True))
    return f"{quoted(result.word)} in {one} and {other}"


def of_shift(result: "Shift") -> list[str]:
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
