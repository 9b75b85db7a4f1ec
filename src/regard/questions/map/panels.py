"""One layer's attention over a text as panels: along the text, far pairs, who receives most, each head, by distance."""

import math
from typing import TYPE_CHECKING

from regard.display.panels import Cell, Column, Curve, Curves, Heat, Number, Panel, Table
from regard.explain.wording import number

if TYPE_CHECKING:
    from regard.questions.map.answer import Matrix

MIN_FULL_BAR = 2.0  # times the average: bars along a text are full there or beyond
ATTENDED = 0.05  # a smaller weight from another token does not count as attending to it
FULL_QUANTILE = 0.98  # of the parts: one special token would make all others flat


def of_matrix(found: "Matrix") -> list[Panel]:
    """List what each part of the text receives, the far pairs (if any), the receivers and the heads."""
    pairs: list[Panel] = [_far_pairs_of_map(found)] if found.pairs else []
    return [_received_along_map(found), *pairs, _receivers_of_map(found), _heads_of_map(found),
            near_offsets_of_map(found)]  # fmt: skip


def _whose(found: "Matrix") -> str:
    heads = f"mean of {len(found.heads)} heads" if found.head is None else f"head {found.head}"
    return f"layer {found.layer}, {heads}"


def _received_along_map(found: "Matrix") -> Curves:
    count, received = len(found.received), list[Number](found.received)
    full = max(MIN_FULL_BAR, sorted(found.received)[int(FULL_QUANTILE * (count - 1))])
    tall = [
        receiver for receiver in found.receivers if (receiver.special or receiver.sink) and receiver.received > full
    ]
    parts = [((n + 1) * count - 1) // found.tokens for n in range(found.tokens)]  # that the tokens are in
    for part in {parts[each.place.token] for each in tall}:
        own = [each.received for each in tall if parts[each.place.token] == part]
        rest = parts.count(part) - len(own)
        received[part] = (found.received[part] * (rest + len(own)) - sum(own)) / rest if rest else None
    left = ", ".join(f"{each.place.text.strip()} {number(each.received, '.2f')}" for each in tall)
    starts = [n * found.tokens // count for n in range(count)]
    return Curves(
        name="Along the text",
        title=f"Attention received along the text ({found.tokens:,} tokens), {_whose(found)}",
        note="The average token receives 1.", x="token", y="times the average",
        caption=f"Left out to keep the others visible: {left}." if left else "",
        series=[Curve("received", starts, received)], screen=True, full=full,
    )  # fmt: skip


def _far_pairs_of_map(found: "Matrix") -> Table:
    """Return the far pairs, each token in its context."""
    several = len(found.heads) > 1
    columns = [
        Column("weight", 2, bar=True), *([Column("head", 0)] if several else []), Column("distance", 0),
        Column("query"), Column("key"), Column("tokens", detail=True),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [
            pair.weight, *([pair.head] if several else []), pair.distance, pair.query.in_text(), pair.key.in_text(),
            f"{pair.query.token}→{pair.key.token}",
        ]
        for pair in found.pairs
    ]  # fmt: skip
    return Table(
        name="Far pairs", columns=columns, rows=rows, screen=True,
        title=f"Strongest links over more than {found.far} tokens, layer {found.layer}, "
        + ("all heads" if found.head is None else f"head {found.head}"),
        note="Special tokens and attention sinks are left out. The query attends to the key.",
    )  # fmt: skip


def _receivers_of_map(found: "Matrix") -> Table:
    rows: list[list[Cell]] = [
        [
            receiver.place.text + (" (special)" if receiver.special else " (sink)" if receiver.sink else ""),
            receiver.place.token, receiver.received, receiver.largest, receiver.place.in_text(),
        ]
        for receiver in found.receivers
    ]  # fmt: skip
    note = (
        "Received is the sum of the weights on the token (average: 1). Max weight is the largest from another token in "
        f"any head. It is less than {number(ATTENDED)} for {found.unattended:,} of {found.tokens:,} tokens."
    )
    columns = [Column("token"), Column("position", 0), Column("received", 2, bar=True, unbounded=True)]
    return Table(
        name="Who receives most", title=f"Tokens that receive most attention, {_whose(found)}", rows=rows,
        columns=[*columns, Column("max weight", 2), Column("context")],
        note=note, screen=not found.pairs,
    )  # fmt: skip


def _heads_of_map(found: "Matrix") -> Table:
    """Return one row per head."""
    shares = {"special": "% to special tokens", "sink_tokens": "% to sink tokens", "sink": "% to learned sink"}
    there = [name for name in shares if name == "special" or any(getattr(head, name) > 0 for head in found.heads)]
    columns = [Column("head", 0), Column("spread", 2, unbounded=True), Column("distance", 2, bar=True, unbounded=True)]
    return Table(
        name="Each head", title=f"Layer {found.layer}, {'each head' if found.head is None else f'head {found.head}'}",
        columns=[*columns, *(Column(shares[name], 2, unbounded=True) for name in there)],
        rows=[
            [head.head, math.exp(head.entropy), head.distance, *(100 * getattr(head, name) for name in there)]
            for head in found.heads
        ],
        note="Means over all queries, in tokens. Spread is the number of equally attended tokens (exp(entropy)).",
    )  # fmt: skip


def near_offsets_of_map(found: "Matrix") -> Heat:
    """Plot the mean weight of each head at each offset that has some, in a causal model earlier tokens only."""
    values, first = found.near.values, found.near.first
    there = [n for n in range(len(values[0])) if any(row[n] for row in values)] or [0]
    shown = range(there[0], there[-1] + 1)
    return Heat(
        name="By distance", title=f"Mean weight by distance, layer {found.layer}, per head",
        note="Offsets below 0 are earlier tokens.", axes=("head", "offset"),
        rows=[f"head {head.head}" for head in found.heads], columns=[str(first + n) for n in shown],
        values=[[row[n] for n in shown] for row in values], unit="mean weight",
    )  # fmt: skip
