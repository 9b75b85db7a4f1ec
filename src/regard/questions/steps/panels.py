"""Every step of a word's way through one head, as panels: from scores to weights, every number, and the vectors."""

from typing import TYPE_CHECKING

from regard.display.panels import Cell, Column, Heat, Panel, Table, numbered
from regard.explain.wording import count_of_tokens, fixed
from regard.questions.steps.sentences import root_of, shares
from regard.text.quoting import quoted, spelled

if TYPE_CHECKING:
    from regard.explain.weights.head_steps import HeadSteps
    from regard.questions.steps.answer import Steps

EXP = "exp(score − max)"
KEYS = 14  # of the first table; the others are one row
DRAWN = 24  # rows of vectors, those with the largest weights


def of_steps(found: "Steps") -> list[Panel]:
    """Of the last token the way from scores to weights; of each every number, and what the vectors are.

    Of a causal model the last one is the one that sees most.
    """
    panels: list[Panel] = []
    for n, (query, record) in enumerate(found.found):
        last = n == len(found.found) - 1
        where = f"{quoted(spelled(found.tokens[query].text))} (token {query}) in layer {found.layer}, "
        where += f"head {found.head}"
        tab = f", token {query}" if len(found.found) > 1 else ""
        panels += [_weights(found, record, where)] if last else []
        panels += [
            _numbers(found, record, where, tab),
            _query(record, where, tab, last),
            _weighted(found, record, where, tab, last),
        ]
    return panels


def _weights(found: "Steps", record: "HeadSteps", where: str) -> Table:
    """The keys with the largest weights in the text's order, the others together, and the sum."""
    order = record.weights.sort(descending=True, stable=True).indices.tolist()
    seen = [n for n in order if not record.scores[n].isinf()]
    given, rest = shares(record), seen[KEYS:]
    rows: list[list[Cell]] = [
        [_key(found, n), *(float(each[n]) for each in (record.products, record.scores, record.exponentials,
         record.weights, given))]
        for n in sorted(seen[:KEYS])
    ]  # fmt: skip
    if rest:
        sums = (float(each[rest].sum()) for each in (record.exponentials, record.weights, given))
        rows.append([f"{len(rest)} more token{'s' * (len(rest) > 1)}", None, None, *sums])
    if record.sink is not None:
        grown = 1 - float(record.weights.sum())
        rows.append(["learned sink", None, record.sink, grown * record.total, grown, 0.0])
    hidden = len(order) - len(seen)
    out = f"; {count_of_tokens(hidden)} masked" if hidden else ""
    return Table(
        name="Weights", title=f"Attention from {where}: from scores to weights", rows=rows,
        screen=True, brief=True, picture=True,
        total=["sum", None, None, record.total, 1.0, float(given.sum())],
        columns=[Column("key"), *(Column(name, 2, unbounded=True) for name in ("q · k", "score")), Column(EXP, 2),
                 Column("weight", 2, bar=True), Column("contribution", 2, unbounded=True)],
        note=f"Weight is {EXP} / {fixed(record.total, 2, unbounded=True)}; contribution is the fraction of "
        f"the context vector from this token{out}.",
    )  # fmt: skip


def _numbers(found: "Steps", record: "HeadSteps", where: str, tab: str) -> Table:
    """Every key in the text's order, with every number from q · k to its weight."""
    steps = [("q · k", record.products), ("× scale", record.scaled)]
    steps += [] if record.softcap is None else [(f"capped at {record.softcap:g}", record.capped)]
    steps += [("+ bias", record.capped + record.bias)] if bool((record.bias != 0).any()) else []
    ends = [(EXP, record.exponentials), ("weight", record.weights), ("contribution", shares(record))]
    hidden = record.scores.isinf().tolist()
    rows: list[list[Cell]] = [
        [_key(found, n) + " (masked)" * hidden[n], *(float(each[n]) for _, each in steps),
         *(None if hidden[n] else float(each[n]) for _, each in ends)]
        for n in range(len(hidden))
    ]  # fmt: skip
    root = f" = {root_of(record)}" if root_of(record) else ""
    total = f"{fixed(record.total, 2, unbounded=True)}{', with a learned sink' if record.sink is not None else ''}"
    note = f"Scale is {record.scale:.4g}{root}; weight is {EXP} / {total}"
    return Table(
        name=f"Every number{tab}", title=f"{where}, step by step", rows=rows, note=f"{note}.",
        columns=[Column("key"), *(Column(name, 2, unbounded=True) for name, _ in steps),
                 *(Column(name, 2, bar=name == "weight", unbounded=name == "contribution") for name, _ in ends)],
    )  # fmt: skip


def _query(record: "HeadSteps", where: str, tab: str, picture: bool) -> Heat:
    """The query as one row."""
    return Heat(
        name=f"Query{tab}", title=f"{where}: the query", rows=["query"], columns=numbered(len(record.query)),
        values=[record.query.tolist()], axes=("vector", "component"), unit="component", signed=True,
        picture=picture,
    )  # fmt: skip


def _weighted(found: "Steps", record: "HeadSteps", where: str, tab: str, picture: bool) -> Heat:
    """The weighted values of the keys with the largest weights, and the context vector, which is the sum of all."""
    most = sorted(record.weights.argsort(descending=True, stable=True)[:DRAWN].tolist())
    few = f"; the {DRAWN} with the largest weights are shown" if len(most) < len(record.weights) else ""
    return Heat(
        name=f"Weighted values{tab}", title=f"{where}: weight × value, and their sum", signed=True,
        rows=[*(_key(found, n) for n in most), "context"], columns=numbered(len(record.context)),
        values=[*record.weighted[most].tolist(), record.context.tolist()], axes=("key", "component"), unit="component",
        picture=picture,
        note=f"The last row, the context vector, is the sum of all {len(record.weights)} keys' rows{few}.",
    )  # fmt: skip


def _key(found: "Steps", n: int) -> str:
    """A key by its number and text, as one line; what is a sink is called one."""
    sink = " (sink)" if any(sink.token == n for sink in found.sinks) else ""
    return f"{n} {spelled(found.tokens[n].text)}{sink}"
