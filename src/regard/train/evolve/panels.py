"""How attention formed in training, in sentences and panels: induction, first and last weights, embeddings."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from regard.display.panels import Called, Cell, Column, Curve, Curves, Heat, Number, Over, Panel, Point, Scatter, Table
from regard.display.sentences import Template, sentences
from regard.explain.wording import quoted, short_head
from regard.train.training import evenly

if TYPE_CHECKING:
    from regard.train.evolve.answer import Evolution

MOST = 12  # steps that a first screen has
CELLS, DECIMALS = 200_000, 4  # that a page's slider over steps has, and decimals of its weights: one more than it shows
SAME = 0.05  # entropies in nats that differ by less are about equal
GREW = 0.05  # smaller changes of a weight are not named

HEAD = "Layer {layer}, head {head} is an induction head "
SPREAD = "spread over {start_spread:n} tokens at step {start} and {spread:n} at step {end}."
TABLE: list[list[Template]] = [
    [
        (HEAD + "from step {formed} on. Its score was {first} at step {previous} and is {last} at step {end}.", None),
        (HEAD + "at step {end} (score {last}).", lambda n: n["found"]),
        ("No head is an induction head at step {end}. The highest score is {last} (layer {layer}, head {head}).", None),
    ],
    [
        ("{query} attends to {key} with weight {weight} at step {end}.", None),
        ("No weight changed between steps {start} and {end}.", lambda n: n["change"] == 0),
        ("No weight changed by {least} or more between steps {start} and {end}.", lambda n: n["change"] < GREW),
        ("Attention from {query} to {key} changed most, from weight {before} to {after}.", None),
    ],
    [
        ("Attention is about as sharp as before: " + SPREAD, lambda n: n["same"]),
        ("Attention became {how}: " + SPREAD, None),
        ("Attention at step {end} is spread over {spread:n} tokens.", None),
    ],
]


def evolution_panels(found: "Evolution") -> list[Panel]:
    """First the steps in short, for a first screen; then what a page shows, and the loss where the run has a log."""
    last = len(found.steps) - 1
    # of many steps some, evenly, the first and the last among them
    shown = evenly(last + 1, MOST)
    title = found.title() + (f", {len(shown)} of {last + 1} steps" if len(shown) <= last else "")
    in_short = replace(_steps(found, shown, "In short"), title=title, screen=True, brief=True)
    panels: list[Panel] = [in_short, *(_weights(found, n) for n in sorted({0, last}))]
    if last:
        panels.append(_difference(found))
        panels += [_course(found, "Entropy", "entropy in nats", found.entropy)]
        panels += [_course(found, "Change", "mean change since the previous step", found.change)]
    panels.append(_steps(found, range(last + 1), "Step by step"))
    if found.induction and last:
        panels.append(_induction(found))
    if found.paths:
        panels.append(_embeddings(found))
    if found.training is not None and found.training.log:
        panels.append(found.training.loss())
    return panels


def _course(found: "Evolution", name: str, y: str, values: Sequence[float]) -> Curves:
    """One number of the weights at each step."""
    line = Curve(found.whose(), found.steps, values)
    return Curves(
        name=name, title=f"{name} of the weights", x="step", y=y, series=[line], picture=True, tab="Over training"
    )


def _steps(found: "Evolution", shown: Sequence[int], name: str) -> Table:
    """Return a row for each of some steps, with the change of the weights since the row above."""
    head, columns, scores = found.induction_head(), list[Column](), list[float]()
    if head is not None and found.formed(*head) is None and not repeats(found.queries):
        head = None  # neither did it form, nor is the text there for it
    if head is not None:
        columns, scores = [Column(f"induction {short_head(*head)}", 2)], found.induction_of(*head)
    changes = [sum(found.change[before + 1 : n + 1]) for before, n in pairwise([-1, *shown])]
    rows: list[list[Cell]] = []
    for n, change in zip(shown, changes, strict=True):
        weight, (i, j) = found.strongest(n)
        link = f"{quoted(found.queries[i])} ({i}) → {quoted(found.keys[j])} ({j})"
        rows.append([found.steps[n], math.exp(found.entropy[n]), change, link, weight, *([scores[n]] if head else [])])
    alone = len(found.free_queries) < len(found.queries)
    return Table(
        name=name, title=f"Attention by step, {found.whose()}", rows=rows,
        note="Spread, in tokens, is exp(entropy). Change is the mean absolute difference from the row above."
        + (" Strongest link leaves out tokens that can attend to one token only." if alone else ""),
        columns=[
            Column("step", 0), Column("spread", 2, unbounded=True), Column("change", 2, bar=True),
            Column("strongest link"), Column("weight", 2), *columns,
        ],
    )  # fmt: skip


def _weights(found: "Evolution", n: int) -> Heat:
    """The weights of a step, in colours that are the same for all; of the last also every step's, for a page."""
    title = f"Step {found.steps[n]}"
    most = max(max(row) for table in found.weights for row in table)
    note, over = f"{found.title()}.{_unseen(found)}", None
    if 0 < n == len(found.steps) - 1:
        shown = evenly(len(found.steps), max(2, CELLS // (len(found.queries) * len(found.keys))))
        values = [
            _seen(found, [[round(weight, DECIMALS) for weight in row] for row in found.weights[m]]) for m in shown
        ]
        over = Over([f"Step {found.steps[m]}" for m in shown], values)
        left = len(found.steps) - len(shown)
        note += f" The slider leaves out {left} of {len(found.steps)} steps." if left else ""
    return Heat(
        name=title, title=title, note=note, rows=_names(found.queries), unit="weight", columns=_names(found.keys),
        values=_seen(found, found.weights[n]), axes=("query", "key"), largest=most, over=over, picture=True,
    )  # fmt: skip


def _difference(found: "Evolution") -> Heat:
    n = len(found.steps) - 1
    return Heat(
        name="Difference", title=f"Step {found.steps[n]} minus step {found.steps[0]}",
        note=f"Red cells grew and blue cells fell.{_unseen(found)}",
        rows=_names(found.queries), columns=_names(found.keys), values=_seen(found, found.from_start(n)),
        axes=("query", "key"), signed=True, unit="difference of weights", picture=True,
    )  # fmt: skip


def _seen(found: "Evolution", values: list[list[float]]) -> list[list[Number]]:
    """The numbers of a grid, none where there is no weight at any step."""
    return [
        [None if never else value for value, never in zip(*rows, strict=True)]
        for rows in zip(values, found.never, strict=True)
    ]


def _unseen(found: "Evolution") -> str:
    return " Cells without a number have no weight at any step." if any(map(any, found.never)) else ""


def _names(tokens: list[str]) -> list[str]:
    """Tokens as a grid names them: blanks alone by a mark."""
    return [token if token.strip() else "␣" for token in tokens]


def _induction(found: "Evolution") -> Curves:
    """A line a head, those first that end highest."""
    heads = [(i, j) for i, row in enumerate(found.induction[0]) for j, score in enumerate(row) if not math.isnan(score)]
    heads.sort(key=lambda head: -found.induction_of(*head)[-1])
    return Curves(
        name="Induction", title="Induction of every head", x="step", y="induction",
        note="Induction is the attention of a repeated token to the tokens that followed its earlier occurrences.",
        series=[Curve(short_head(i, j), found.steps, found.induction_of(i, j)) for i, j in heads],
    )  # fmt: skip


def _embeddings(found: "Evolution") -> Scatter:
    """The path of each token, a point a step."""
    points: list[Point] = []
    for name, path in zip(_names(found.embedded), found.paths, strict=True):
        for n, (x, y) in enumerate(path):
            points.append(Point(x, y, f"{name}, step {found.steps[n]}", name, len(points) - 1 if n else None))
    shares = [f"{axis} has {share:.0%} of the variance" for axis, share in zip("xy", found.share, strict=True)]
    return Scatter(
        name="Embeddings", title="Token embeddings by step", note=", ".join(shares),
        x="x", y="y", points=points, called=Called("token and step", "token"), drawn="groups", equal=True, picture=True,
    )  # fmt: skip


def evolution_sentences(found: "Evolution") -> list[str]:
    """Collect the numbers and write the sentences."""
    numbers: dict[str, Any] = {"start": found.steps[0], "end": found.steps[-1], "least": GREW}
    best = found.induction_head()
    if best is not None and (found.formed(*best) is not None or repeats(found.queries)):
        formed, scores = found.formed(*best), found.induction_of(*best)
        numbers |= {"layer": best[0], "head": best[1], "last": scores[-1], "found": formed is not None}
        if formed:
            numbers |= {"formed": found.steps[formed], "previous": found.steps[formed - 1], "first": scores[formed - 1]}
    weight, cell = found.strongest(0)
    numbers["spread"] = math.exp(found.entropy[-1])
    if len(found.steps) > 1:
        cell = found.most_changed() or cell
        before, after = (found.weights[n][cell[0]][cell[1]] for n in (0, -1))
        numbers |= {"before": before, "after": after, "change": abs(after - before)}
        numbers |= {
            "same": abs(found.entropy[0] - found.entropy[-1]) < SAME,
            "start_spread": math.exp(found.entropy[0]),
        }
        numbers["how"] = "sharper" if found.entropy[-1] < found.entropy[0] else "broader"
    else:
        numbers["weight"] = weight
    names = [
        quoted(tokens[n]) + (f" ({n})" if tokens.count(tokens[n]) > 1 else "")
        for tokens, n in zip((found.queries, found.keys), cell, strict=True)
    ]
    itself = cell[0] == cell[1] and found.queries == found.keys
    return sentences(TABLE, numbers | {"query": names[0], "key": "itself" if itself else names[1]})


def repeats(names: list[str]) -> bool:
    """Return whether a text is its beginning over and over."""
    periods = range(1, len(names) // 2 + 1)
    return any(all(a == b for a, b in zip(names, names[period:], strict=False)) for period in periods)
