"""Say in sentences what a sweep of patches found: what changed most, what was measured, what was so by construction."""

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from regard.explain.wording import capital, listed, number, quoted
from regard.questions.patch.by_construction import NEAR, Reason
from regard.text.tokens import shortened

if TYPE_CHECKING:
    from regard.questions.patch.answer import PatchSweep

MOST = 3  # patches that a sentence names
PLACED = re.compile(r"(.*) (\d+)", re.DOTALL)  # a column of one position: its token, and its number
LEAST = 5e-3  # of the way: shares below it are printed as 0 %
UNREAD = 1e-4  # of the way: a patch that goes less far differs from none by rounding
REASONS: dict[Reason, str] = {
    "elsewhere": "as the texts hold the same everywhere else there",
    "read": "as the outcome is read there, after the last layer",
}


def of_patches(sweep: "PatchSweep") -> list[str]:
    """Say what the run's outcome is, what the source's, and which patches went furthest from one to the other.

    The answer comes first, and how it was measured behind it. Patches that go all of the way by construction are told
    apart, last, with the reason.
    """
    read, source = sweep.corrupted, sweep.clean
    if sweep.direction == "noising":
        read, source = source, read
    measured = [
        f"{sweep.outcome}: {number(sweep.run, '.3g')} without patches, {number(sweep.source, '.3g')} in the other text",
        f"{sweep.direction}: the model reads {shortened(read)} with {sweep.what} of {shortened(source)} put in, "
        + ("one head at a time" + f", {sweep.at}" if sweep.by == "heads" else "one place at a time"),
    ]
    if sweep.run == sweep.source:
        found = ["both texts have the same outcome: there is no way between them to measure", *measured]
    else:
        found = [_furthest(sweep), *_patch_layer_bringing_most(sweep), *measured, *_given(sweep)]
    return [f"{capital(sentence)}." for sentence in found]


def _place_of(sweep: "PatchSweep", row: int, column: int) -> str:
    """How a patch is called: its layer and its column."""
    layer = sweep.layers[row]
    return f"{_named(sweep, column)} {'entering layer 0' if layer == 'input' else f'in layer {layer}'}"


def _named(sweep: "PatchSweep", column: int) -> str:
    """A column's name: a token in quotes with its number and what was put in, words and heads as they are."""
    name = sweep.columns[column]
    found = PLACED.fullmatch(name)
    there = other_token_put_in(sweep, column)
    put_in = f", {quoted(there)} put in" if there else ""
    return name if sweep.by == "heads" or found is None else f"{quoted(found[1])} ({found[2]}{put_in})"


def other_token_put_in(sweep: "PatchSweep", column: int) -> str:
    """Say what stands in the source where a column's patch was taken; empty where it is the same as in the run."""
    if column >= len(sweep.sources):
        return ""
    found = PLACED.fullmatch(sweep.columns[column])
    own = found[1].strip() if found else sweep.columns[column].strip("“”")
    return "" if own == sweep.sources[column].strip() else sweep.sources[column].strip()


def reason_of(sweep: "PatchSweep", row: int, column: int) -> str:
    """Say why a patch goes all of the way by construction; empty where it does not."""
    reasons = {(r, c): reason for r, c, reason in sweep.given}
    return REASONS[reasons[row, column]] if (row, column) in reasons else ""


def _patch_layer_bringing_most(sweep: "PatchSweep") -> list[str]:
    """The layer that brings most to a place: the largest rise of a share from what enters it to what leaves it.

    A patch that changes nothing at all puts in what is not read any more, as behind the last layer at all places but
    one: where a share falls back to 0 so, no layer brought anything.
    """
    if sweep.what != "hidden_states":
        return []
    numbers = [-1 if layer == "input" else layer for layer in sweep.layers]
    given = {(row, column) for row, column, _ in sweep.given}
    rises = [
        (sweep.shares[row][column] - sweep.shares[row - 1][column], row, column)
        for (_, before), (row, after) in pairwise(enumerate(numbers))
        if after == before + 1
        for column in range(len(sweep.columns))
        if (row, column) not in given or _all_the_way(sweep, row, column)
    ]
    read = [each for each in rises if abs(sweep.shares[each[1]][each[2]]) > UNREAD]
    rise, row, column = max(read, key=lambda each: each[0], default=(0.0, 0, 0))
    if rise < LEAST:
        return []
    shares = [number(sweep.shares[n][column], ".0%") for n in (row - 1, row)]
    all_of = "" if max(rises)[0] == rise else " from which the outcome is still read"
    return [
        f"of all layers and places{all_of}, layer {sweep.layers[row]} brings most to {_named(sweep, column)}: from "
        f"{shares[0]} to {shares[1]} of the way to the other's outcome"
    ]


def _furthest(sweep: "PatchSweep") -> str:
    """The patch that changed most, and of other places, or heads, the best: those by construction aside."""
    given = {(row, column) for row, column, _ in sweep.given}
    aside = " (those that do so by construction aside)" if given else ""
    best: dict[object, tuple[int, int]] = {}
    for row, column in sweep.best(len(sweep.layers) * len(sweep.columns)):
        if (row, column) not in given and abs(sweep.shares[row][column]) >= LEAST:
            best.setdefault((row, column) if sweep.by == "heads" else column, (row, column))
    if not best:
        return f"no patch{aside} changed the outcome by {LEAST:.1%} of the way to the other's"
    first, *others = [(_place_of(sweep, n, c), number(sweep.shares[n][c], ".0%")) for n, c in best.values()][:MOST]
    to = "clean" if sweep.direction == "denoising" else "corrupted"
    then = listed([f"{place} ({share})" for place, share in others])
    of = f"; of other {'heads' if sweep.by == 'heads' else 'places'} go furthest {then}" if others else ""
    return f"the patch of {first[0]} changes most: it goes {first[1]} of the way to the {to} text's outcome{aside}{of}"


def _given(sweep: "PatchSweep") -> list[str]:
    """The patches that go all of the way by construction, those of one place and reason together."""
    together: dict[tuple[int, Reason], list[int]] = {}
    for row, column, reason in sweep.given:
        together.setdefault((column, reason), []).append(row)
    said = []
    for (column, reason), rows in together.items():
        one = _place_of(sweep, rows[0], column)
        where = one if len(rows) == 1 else f"{_named(sweep, column)} in {len(rows)} rows, the first {one}"
        estimates = [number(sweep.shares[row][column], ".0%") for row in rows if not _all_the_way(sweep, row, column)]
        where += f" (estimated here as {listed(estimates)})" if estimates else ""
        said.append(f"{where}, {REASONS[reason]}")
    return [f"by construction these go all of the way, whatever the model does: {'; '.join(said)}"] if said else []


def _all_the_way(sweep: "PatchSweep", row: int, column: int) -> bool:
    """Whether a patch went all of the way: one that is so by construction may be estimated otherwise."""
    return abs(sweep.shares[row][column] - 1) <= NEAR
