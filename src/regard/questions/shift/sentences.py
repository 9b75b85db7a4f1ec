"""Say in sentences whether a word differs between two groups, and of each sense whether it came, went or neither."""

from typing import TYPE_CHECKING

from regard.corpus.asking.sense_shares import ABSENT, ALARM, LEAST, PRESENT
from regard.questions.senses.sentences import senses_not_supported, senses_not_told_apart
from regard.text.quoting import quoted

if TYPE_CHECKING:
    from regard.questions.shift.answer import SharedSense, Shift


def shift_title(found: "Shift") -> str:
    """Say which word in which groups, and how often it occurs in each."""
    one, other = (f"{name} ({count:,})" for name, count in zip(found.groups, found.change.occurrences, strict=True))
    return f"{quoted(found.word)} in {one} and {other}"


def of_shift(found: "Shift") -> list[str]:
    """Say how the test of the whole word ended, then of each sense that came, went or has another share."""
    sentences = [_test_outcome(found)]
    if found.k is None and len(found.senses) == 1:
        return [*sentences, senses_not_told_apart(found.word, sum(found.senses[0].occurrences), found.clusters)]
    told = [_sense(found, each) for each in found.senses if each.fate != "kept" or (each.p or 1) <= ALARM]
    if not told and len(found.senses) > 1:
        told = [
            f"None of the {len(found.senses)} senses came or went (at most {ABSENT:.0%} of one side and at least "
            f"{PRESENT:.0%} of the other), and none has a share that differs by more than chance."
        ]
    return [*sentences, *senses_not_supported(found.k, found.clusters), *told]


def _test_outcome(found: "Shift") -> str:
    """The outcome of the test of all occurrences."""
    one, other = found.groups
    test = f"p = {_shift_p_value(found.change.p)}, {found.change.rounds:,} permutations of {found.permuted}"
    if found.permuted == "occurrences":
        test += ", which takes those of one document as independent"
    if found.change.p <= ALARM:
        return f"{quoted(found.word)} differs between {one} and {other} by more than chance: {test}."
    return f"{quoted(found.word)} differs between {one} and {other} no more than by chance: {test}."


def _sense(found: "Shift", sense: "SharedSense") -> str:
    """A sense that came, went or has another share, with its counts on both sides and its test."""
    one, other = (
        f"{count:,} of {whole:,} occurrences in {name} ({share:.0%})"
        for count, whole, share, name in zip(
            sense.occurrences, found.change.occurrences, sense.shares, found.groups, strict=True
        )
    )
    several = f", corrected for {len(found.senses)} senses" if len(found.senses) > 1 else ""
    tested = "" if sense.p is None else f"p = {_shift_p_value(sense.p)}{several}"
    if sense.fate == "unsure":
        what = "gained" if sense.shares[0] < sense.shares[1] else "lost"
        why = f"{tested}, and {ALARM} or less is needed" if tested else f"it takes {LEAST} occurrences to test it"
        return f"It is not shown that sense {sense.name} was {what}: {one}, {other}; {why}."
    if sense.fate == "kept":
        return f"The share of sense {sense.name} differs by more than chance: {one}, {other}; {tested}."
    return f"Sense {sense.name} was {sense.fate}: {one}, {other}; {tested}."


def _shift_p_value(value: float) -> str:
    """A p with three digits that count, or as many as keep it on its side of what is more than chance."""
    return next(
        text
        for digits in range(3, 18)
        if (float(text := f"{value:.{digits}g}") <= ALARM) == (value <= ALARM) or digits == 17
    )
