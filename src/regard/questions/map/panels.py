"""One layer's attention over a text as panels: along the text, far pairs, who receives most, each head, by distance."""

import math
from typing import TYPE_CHECKING

from regard.display.panels import Cell, Column, Curve, Curves, Heat, Number, Panel, Table
from regard.explain.wording import number

if TYPE_CHECKING:
    from regard.questions.map.answer import Matrix

LEAST = 2.0  # times what tokens receive on average: bars along a text are full there or beyond
ATTENDED = 0.05  # a smaller weight from another token does not count as attending to it
MOST = 0.98  # of the parts: one special token would make all others flat


def of_matrix(found: "Matrix") -> list[Panel]:
    """First what the parts of the text receive, and the far pairs, or who receives most where none are."""
    pairs: list[Panel] = [_far_pairs_of_map(found)] if found.pairs else []
    return [
        _received_along_map(found),
        *pairs,
        _receivers_of_map(found),
        _heads_of_map(found),
        near_offsets_of_map(found),
    ]


def _received_along_map(found: "Matrix") -> Curves:
    count, received = len(found.received), list[Number](found.received)
    full = max(LEAST, sorted(found.received)[int(MOST * (count - 1))])
    tall = [each for each in found.receivers if (each.special or each.sink) and each.received > full]
    parts = [((n + 1) * count - 1) // found.tokens for n in range(found.tokens)]  # that the tokens are in
    for part in {parts[each.place.token] for each in tall}:
        own = [each.received for each in tall if parts[each.place.token] == part]
        rest = parts.count(part) - len(own)
        received[part] = (found.received[part] * (rest + len(own)) - sum(own)) / rest if rest else None
    left = ", ".join(f"{each.place.text.strip()} {number(each.received, '.1f')}" for each in tall)
    starts = [n * found.tokens // count for n in range(count)]
    return Curves(
        name="Along the text",
        title=f"Where the text is looked at, from its first of {found.tokens:,} tokens to its last",
        note="1 is what tokens receive on average.", x="token", y="times what tokens receive on average", digits=1,
        caption=f"Not drawn, since it would make all others small: {left}." if left else "",
        series=[Curve("received", starts, received)], screen=True, full=full,
    )  # fmt: skip


def _far_pairs_of_map(found: "Matrix") -> Table:
    """The far pairs, each token in the text around it."""
    several = len(found.heads) > 1
    columns = [
        Column("weight", 2, bar=True), *([Column("head", 0)] if several else []), Column("apart", 0), Column("looks"),
        Column("at"), Column("query", 0, detail=True), Column("key", 0, detail=True),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [
            pair.weight, *([pair.head] if several else []), pair.distance, pair.query.in_text(), pair.key.in_text(),
            pair.query.token, pair.key.token,
        ]
        for pair in found.pairs
    ]  # fmt: skip
    return Table(
        name="Far pairs", title=f"The largest weights between tokens more than {found.far} apart", screen=True,
        note="Special tokens and sinks aside.", columns=columns, rows=rows,
    )  # fmt: skip


def _receivers_of_map(found: "Matrix") -> Table:
    rows: list[list[Cell]] = [
        [
            each.place.text + (" (special)" if each.special else " (sink)" if each.sink else ""), each.place.token,
            each.received, each.largest, 100 * each.share, each.place.in_text(),
        ]
        for each in found.receivers
    ]  # fmt: skip
    note = (
        "Received: the weights on it, summed over all queries; 1 is what tokens get on average. From one: the largest "
        f"weight from another token in any head. {found.unattended:,} of {found.tokens:,} tokens get less than "
        f"{ATTENDED:g} from every other token."
    )
    if any(each.sink for each in found.receivers):
        note += " A sink receives far more than its share in most heads, whatever it means."
    columns = [Column("token"), Column("number", 0), Column("received", 1, bar=True), Column("from one", 2)]
    return Table(
        name="Who receives most", title="Tokens that receive most", rows=rows,
        columns=[*columns, Column("% of all", 2, unbounded=True), Column("in the text")],
        note=note, screen=not found.pairs,
    )  # fmt: skip


def _heads_of_map(found: "Matrix") -> Table:
    """One row a head."""
    shares = {"special": "% to special tokens", "sink_tokens": "% to sink tokens", "sink": "% to its sink"}
    there = [name for name in shares if name == "special" or any(getattr(each, name) > 0 for each in found.heads)]
    columns = [Column("head", 0), Column("spread over", 1), Column("distance", 1, bar=True)]
    return Table(
        name="Each head", title=f"Layer {found.layer}, {'each head' if found.head is None else f'head {found.head}'}",
        columns=[*columns, *(Column(shares[name], 1) for name in there)],
        rows=[
            [each.head, math.exp(each.entropy), each.distance, *(100 * getattr(each, name) for name in there)]
            for each in found.heads
        ],
        note="Means over all queries, in tokens; spread over: as many as equal weights would go to (e to the entropy).",
    )  # fmt: skip


def near_offsets_of_map(found: "Matrix") -> Heat:
    """A row a head: the mean weight at each offset that has some; a causal model looks back alone."""
    values, first = found.near.values, found.near.first
    there = [n for n in range(len(values[0])) if any(row[n] for row in values)] or [0]
    shown = range(there[0], there[-1] + 1)
    return Heat(
        name="By distance", title=f"How far each head looks: the mean weight at each distance up to {-first}",
        note="The key's number less the query's: below 0 are earlier tokens.", axes=("head", "offset"),
        rows=[f"head {each.head}" for each in found.heads], columns=[str(first + n) for n in shown],
        values=[[row[n] for n in shown] for row in values], unit="mean weight",
    )  # fmt: skip
