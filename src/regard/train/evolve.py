"""The formation of a sentence's attention during training: its traces at several steps."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.capture.interventions.names import PARTS
from regard.checks import from_zero
from regard.display.answer import Read, TracesAnswer
from regard.display.panels import Called, Cell, Column, Curve, Curves, Heat, Number, Over, Panel, Point, Scatter, Table
from regard.display.sentences import Template, sentences
from regard.errors import RegardError
from regard.explain.frames import Row
from regard.explain.vectors.planes import plane
from regard.explain.weights.head_scores import head_scores
from regard.explain.wording import capital, quoted, short_head
from regard.trace.file import open_traces
from regard.trace.trace import PairTrace, Trace
from regard.train.run_files import WATCH, check_watched_traces
from regard.train.run_folder import run_files_by_step
from regard.train.training import Training, evenly, training_of

CROSS = "cross-attention"
FORMED = 0.3  # of a head's induction score: below it, it is called no induction head
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
        panels.append(_induction_curves(found))
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
    """The numbers of a grid, None in cells without a weight at any step."""
    return [
        [None if never else value for value, never in zip(*rows, strict=True)]
        for rows in zip(values, found.never, strict=True)
    ]


def _unseen(found: "Evolution") -> str:
    return " Cells without a number have no weight at any step." if any(map(any, found.never)) else ""


def _names(tokens: list[str]) -> list[str]:
    """Tokens as a grid names them: blanks alone by a mark."""
    return [token if token.strip() else "␣" for token in tokens]


def _induction_curves(found: "Evolution") -> Curves:
    """A line per head, those first that end highest."""
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


@dataclass(frozen=True, eq=False, repr=False)
class Evolution(TracesAnswer):
    """One head (None: the mean of heads) of one layer, at several steps of training.

    what: which attention it is. queries, keys: the tokens down and across. `weights[n][i][j]`: at steps[n]. entropy[n]:
    the mean, in nats, of what the queries attend to; change[n]: the mean absolute difference from the step before, 0
    for the first. embedded: the tokens whose token embeddings paths follow, one point a step, on the plane of all of
    them; share: the part of the variance each of its axes keeps. `induction[n][layer][head]`: at steps[n], what tokens
    that occurred before give to those behind their earlier occurrences (`head_scores`); empty if there are none, and
    for cross-attention. training: how the run went, whose loss a page shows. Its traces are the first and the last.
    """

    format: ClassVar[str] = "regard evolve"
    findings = evolution_sentences
    panels = evolution_panels

    what: str
    layer: int
    head: int | None
    steps: list[int]
    queries: list[str]
    keys: list[str]
    weights: list[list[list[float]]]
    entropy: list[float]
    change: list[float]
    embedded: list[str]
    paths: list[list[tuple[float, float]]]
    share: tuple[float, float]
    induction: list[list[list[float]]] = field(default_factory=list)
    training: Training | None = field(default=None, kw_only=True)

    def title(self) -> str:
        """Which attention of which layer and head it is."""
        return capital(f"{self.what} of {self.whose()}, during training")

    def whose(self) -> str:
        """Name the layer and the head."""
        return f"layer {self.layer}, {'mean of heads' if self.head is None else f'head {self.head}'}"

    def rows(self) -> list[Row]:
        """One row per step: how spread and changed weights are, the strongest link, and the induction of every head."""
        found: list[Row] = []
        for n, step in enumerate(self.steps):
            weight, (i, j) = self.strongest(n)
            row: Row = {
                "step": step, "entropy": self.entropy[n], "change": self.change[n], "query": i,
                "query_text": self.queries[i], "key": j, "key_text": self.keys[j], "weight": weight,
            }  # fmt: skip
            for layer, scores in enumerate(self.induction[n] if self.induction else []):
                row |= {f"induction {layer}.{h}": None if math.isnan(x) else x for h, x in enumerate(scores)}
            found.append(row)
        return found

    def data(self) -> dict[str, object]:
        """All of it but the traces and how the run went."""
        own = ("layer", "head", "steps", "queries", "keys", "weights", "entropy", "change", "embedded", "paths",
               "share", "induction")  # fmt: skip
        return {"title": self.title(), **{name: getattr(self, name) for name in own}}

    def opening(self) -> dict[str, str | int | None]:
        """The panel of its last step, and that step's trace, of this layer and head."""
        last = int(len(self.steps) > 1)
        return {"view": f"panel {last}", "layer": self.layer, "head": self.head, "trace": last, "title": self.title()}

    def from_start(self, n: int) -> list[list[float]]:
        """Subtract the weights of the first step from those of steps[n]."""
        return [
            [now - then for now, then in zip(*rows, strict=True)]
            for rows in zip(self.weights[n], self.weights[0], strict=True)
        ]

    def most_changed(self) -> tuple[int, int] | None:
        """Find the (query, key) whose weight at the last step differs most from the first; None if none does."""
        rows = self.from_start(len(self.steps) - 1)
        spots = [(abs(value), -i, -j) for i, row in enumerate(rows) for j, value in enumerate(row)]
        size, i, j = max(spots, default=(0.0, 0, 0))
        return (-i, -j) if size > 0 else None

    def induction_head(self) -> tuple[int, int] | None:
        """Find the (layer, head) whose induction score is largest at the last step; None if there are no scores."""
        last = self.induction[-1] if self.induction else []
        scores = [(score, -i, -j) for i, row in enumerate(last) for j, score in enumerate(row) if not math.isnan(score)]
        if not scores:
            return None
        _, i, j = max(scores)
        return -i, -j

    @cached_property
    def never(self) -> list[list[bool]]:
        """Whether a weight is 0 at every step, as where a mask forbids it."""
        return [[not any(cell) for cell in zip(*rows, strict=True)] for rows in zip(*self.weights, strict=True)]

    @cached_property
    def free_queries(self) -> list[int]:
        """The queries that can attend to more than one key; one that may not always gives it all. All, if none may."""
        every = range(len(self.queries))
        return [i for i in every if any(sum(w > 0 for w in table[i]) > 1 for table in self.weights)] or list(every)

    def strongest(self, n: int) -> tuple[float, tuple[int, int]]:
        """Find the largest weight at steps[n] and its (query, key), of the queries that can attend to more than one."""
        value, i, j = max((w, i, j) for i in self.free_queries for j, w in enumerate(self.weights[n][i]))
        return value, (i, j)

    def induction_of(self, layer: int, head: int) -> list[float]:
        """The induction score of one head, step by step."""
        return [scores[layer][head] for scores in self.induction]

    def formed(self, layer: int, head: int) -> int | None:
        """Find the number of the step from which on a head's induction score is half of its last or more.

        None if the last one is below FORMED: it did not form.
        """
        scores = self.induction_of(layer, head)
        if not scores or not scores[-1] >= FORMED:
            return None
        below = [n for n, score in enumerate(scores) if not score >= scores[-1] / 2]
        return below[-1] + 1 if below else 0


def open_watched(run: Path) -> list[tuple[int, Trace | PairTrace]]:
    """Open the kept traces of a run, by step; each is read when it is looked at."""
    check_watched_traces(run)
    found = []
    for step, file in run_files_by_step(run / WATCH, ".safetensors"):
        trace, *others = open_traces(file)
        if others:
            raise RegardError(f"{str(file)!r} has several traces, expected the trace that a run keeps")
        found.append((step, trace))
    return found


def evolution_of(run: Path, layer: int, head: int | None = None, *, part: str | None = None) -> Evolution:
    """Put the watched traces of a run side by side; with how it went, where its folder has that."""
    return replace(evolution(open_watched(run), layer, head, part=part), training=training_of(run))


def evolution(
    traces: Sequence[tuple[int, Trace | PairTrace]], layer: int, head: int | None = None, *, part: str | None = None
) -> Evolution:
    """Put the traces of one sentence side by side, by step.

    part: for an encoder-decoder, "cross" (by default), "encoder" or "decoder".
    """
    if not traces:
        raise RegardError("evolution: got no trace, expected at least one")
    read = [(step, *_part(trace, part)) for step, trace in traces]
    _, first, own, other, what = read[0]
    layer = from_zero("layer", layer, len(first), "there are")
    head = None if head is None else from_zero("head", head, first[0].shape[0], "there are")
    tables = []
    for step, maps, queries, keys, _ in read:
        if [t.id for t in queries.tokens] != [t.id for t in own.tokens] or len(keys.tokens) != len(other.tokens):
            raise RegardError(f"evolution: the trace of step {step} has another text")
        dense = maps[layer].dense()
        tables.append(dense.mean(0) if head is None else dense[head])  # (L, S)
    stacked = torch.stack(tables).double()
    change = (stacked[1:] - stacked[:-1]).abs().mean((1, 2)).tolist()
    ends = sorted({0, len(read) - 1})
    names, paths, share = _paths([queries for _, _, queries, _, _ in read])
    return Evolution(
        what=what, layer=layer, head=head, steps=[step for step, *_ in read],
        queries=[token.text for token in own.tokens], keys=[token.text for token in other.tokens],
        weights=stacked.tolist(), entropy=torch.special.entr(stacked).sum(-1).mean(-1).tolist(), change=[0.0, *change],
        embedded=names, paths=paths, share=share,
        induction=[] if what == CROSS else _induction([queries for _, _, queries, _, _ in read]),
        about=Read.of(traces[-1][1]), traces=[traces[n][1] for n in ends], names=[f"step {read[n][0]}" for n in ends],
    )  # fmt: skip


def _part(trace: Trace | PairTrace, part: str | None) -> tuple[Sequence[AttentionMap], Trace, Trace, str]:
    """(maps, the trace of the queries, that of the keys, what it is called)."""
    if isinstance(trace, Trace):
        if part is not None:
            raise RegardError(f"part {part!r}: the model is not an encoder-decoder, so its attention has one part")
        return trace.attention, trace, trace, "attention"
    if part in (None, "cross"):
        return trace.decoder.cross, trace.decoder, trace.encoder, CROSS
    if part == "encoder":
        return trace.encoder.attention, trace.encoder, trace.encoder, "the encoder's attention"
    if part == "decoder":
        return trace.decoder.attention, trace.decoder, trace.decoder, "the decoder's attention"
    raise RegardError(f"part {part!r}: expected {', '.join(PARTS[:-1])} or {PARTS[-1]}")


def _induction(traces: Sequence[Trace]) -> list[list[list[float]]]:
    """The induction scores of every head, step by step; nothing if no token occurs twice."""
    ids = [token.id for token in traces[0].tokens if not token.special]
    if len(set(ids[:-1])) == len(ids[:-1]):
        return []
    found = [head_scores(trace) for trace in traces]
    return [each.induction.tolist() for each in found] if found[0].inductions else []


def _paths(traces: Sequence[Trace]) -> tuple[list[str], list[list[tuple[float, float]]], tuple[float, float]]:
    """The token embeddings of a text's different tokens, step by step, on one plane."""
    if any(trace.token_embeddings is None for trace in traces):
        return [], [], (0.0, 0.0)
    order = {token.id: n for n, token in reversed(list(enumerate(traces[0].tokens)))}
    places = sorted(order.values())
    tables = (trace.token_embeddings for trace in traces)
    rows: list[Float[Tensor, "n M"]] = [table[places].double() for table in tables if table is not None]
    flat = plane(torch.cat(rows))
    points = torch.stack([flat.place(each) for each in rows])  # (steps, n, 2)
    paths = [[(x, y) for x, y in points[:, n].tolist()] for n in range(len(places))]
    return [traces[0].tokens[n].text for n in places], paths, flat.share
