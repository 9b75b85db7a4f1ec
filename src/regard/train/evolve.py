"""Show how the attention on a watched sentence changed during training, from traces at several steps."""

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
from regard.explain.vectors.similarity import plane
from regard.explain.weights.head_scores import head_scores
from regard.explain.wording import capital, quoted, short_head
from regard.shown import Row
from regard.trace.file import open_traces
from regard.trace.trace import PairTrace, Trace
from regard.train.run_files import WATCH, check_watched_traces
from regard.train.run_folder import run_files_by_step
from regard.train.training import Training, evenly_spaced, training_of

CROSS = "cross-attention"
FORMED = 0.3  # minimum induction score of an induction head
MOST = 12  # maximum steps on the first screen
CELLS, DECIMALS = 200_000, 4  # maximum cells of a page's slider over steps, and their decimals
SAME = 0.05  # nats: entropies that differ by less are about equal
GREW = 0.05  # minimum change of a weight to report

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


def evolution_panels(data: "Evolution") -> list[Panel]:
    """Return the panels of an evolution: a short table, heat maps, curves, embeddings and the loss."""
    last = len(data.steps) - 1
    # at most MOST evenly spaced steps, including the first and the last
    indices = evenly_spaced(last + 1, MOST)
    title = data.title() + (f", {len(indices)} of {last + 1} steps" if len(indices) <= last else "")
    in_short = replace(_table_of_steps(data, indices, "In short"), title=title, screen=True, brief=True)
    panels: list[Panel] = [in_short, *(_heat_of_weights(data, n) for n in sorted({0, last}))]
    if last:
        panels.append(_heat_of_change(data))
        panels += [_curve_over_steps(data, "Entropy", "entropy in nats", data.entropy)]
        panels += [_curve_over_steps(data, "Change", "mean change since the previous step", data.change)]
    panels.append(_table_of_steps(data, range(last + 1), "Step by step"))
    if data.induction and last:
        panels.append(_induction_curves(data))
    if data.paths:
        panels.append(_scatter_of_embeddings(data))
    if data.training is not None and data.training.log:
        panels.append(data.training.loss())
    return panels


def _curve_over_steps(data: "Evolution", name: str, y: str, values: Sequence[float]) -> Curves:
    """Return the curve of a statistic of the weights over the steps."""
    line = Curve(data.layer_and_head(), data.steps, values)
    return Curves(
        name=name, title=f"{name} of the weights", x="step", y=y, series=[line], picture=True, tab="Over training"
    )


def _table_of_steps(data: "Evolution", indices: Sequence[int], name: str) -> Table:
    """Return a table of some steps, each with the change of the weights since the row above."""
    head, columns, scores = data.induction_head(), list[Column](), list[float]()
    if head is not None and data.formed(*head) is None and not repeats(data.queries):
        head = None  # no head formed, and the text has no repeats
    if head is not None:
        columns, scores = [Column(f"induction {short_head(*head)}", 2)], data.induction_of(*head)
    changes = [sum(data.change[before + 1 : n + 1]) for before, n in pairwise([-1, *indices])]
    rows: list[list[Cell]] = []
    for n, change in zip(indices, changes, strict=True):
        weight, (i, j) = data.strongest(n)
        link = f"{quoted(data.queries[i])} ({i}) → {quoted(data.keys[j])} ({j})"
        rows.append([data.steps[n], math.exp(data.entropy[n]), change, link, weight, *([scores[n]] if head else [])])
    has_fixed = len(data.free_queries) < len(data.queries)
    return Table(
        name=name, title=f"Attention by step, {data.layer_and_head()}", rows=rows,
        note="Spread, in tokens, is exp(entropy). Change is the mean absolute difference from the row above."
        + (" Strongest link leaves out tokens that can attend to one token only." if has_fixed else ""),
        columns=[
            Column("step", 0), Column("spread", 2, unbounded=True), Column("change", 2, bar=True),
            Column("strongest link"), Column("weight", 2), *columns,
        ],
    )  # fmt: skip


def _heat_of_weights(data: "Evolution", n: int) -> Heat:
    """Return the heat map of a step's weights. All steps have the same colour scale. The last has a slider."""
    title = f"Step {data.steps[n]}"
    largest = max(max(row) for table in data.weights for row in table)
    note, slider = f"{data.title()}.{_note_on_empty_cells(data)}", None
    if 0 < n == len(data.steps) - 1:
        indices = evenly_spaced(len(data.steps), max(2, CELLS // (len(data.queries) * len(data.keys))))
        values = [
            _non_zero(data, [[round(weight, DECIMALS) for weight in row] for row in data.weights[m]]) for m in indices
        ]
        slider = Over([f"Step {data.steps[m]}" for m in indices], values)
        omitted = len(data.steps) - len(indices)
        note += f" The slider leaves out {omitted} of {len(data.steps)} steps." if omitted else ""
    return Heat(
        name=title, title=title, note=note, rows=_labels(data.queries), unit="weight", columns=_labels(data.keys),
        values=_non_zero(data, data.weights[n]), axes=("query", "key"), largest=largest, over=slider, picture=True,
    )  # fmt: skip


def _heat_of_change(data: "Evolution") -> Heat:
    n = len(data.steps) - 1
    return Heat(
        name="Difference", title=f"Step {data.steps[n]} minus step {data.steps[0]}",
        note=f"Red cells grew and blue cells fell.{_note_on_empty_cells(data)}",
        rows=_labels(data.queries), columns=_labels(data.keys), values=_non_zero(data, data.from_start(n)),
        axes=("query", "key"), signed=True, unit="difference of weights", picture=True,
    )  # fmt: skip


def _non_zero(data: "Evolution", values: list[list[float]]) -> list[list[Number]]:
    """Return the values of a grid, with None in cells whose weight is 0 at every step."""
    return [
        [None if always_zero else value for value, always_zero in zip(*rows, strict=True)]
        for rows in zip(values, data.always_zero, strict=True)
    ]


def _note_on_empty_cells(data: "Evolution") -> str:
    return " Cells without a number have no weight at any step." if any(map(any, data.always_zero)) else ""


def _labels(tokens: list[str]) -> list[str]:
    """Return tokens as labels of a grid, with a symbol for blanks."""
    return [token if token.strip() else "␣" for token in tokens]


def _induction_curves(data: "Evolution") -> Curves:
    """Return the curves of each head's induction score over the steps, sorted by last score, highest first."""
    heads = [(i, j) for i, row in enumerate(data.induction[0]) for j, score in enumerate(row) if not math.isnan(score)]
    heads.sort(key=lambda head: -data.induction_of(*head)[-1])
    return Curves(
        name="Induction", title="Induction of every head", x="step", y="induction",
        note="Induction is the attention of a repeated token to the tokens that followed its earlier occurrences.",
        series=[Curve(short_head(i, j), data.steps, data.induction_of(i, j)) for i, j in heads],
    )  # fmt: skip


def _scatter_of_embeddings(data: "Evolution") -> Scatter:
    """Return a scatter plot of the tokens' paths, with a point per token and step."""
    points: list[Point] = []
    for name, path in zip(_labels(data.embedded), data.paths, strict=True):
        for n, (x, y) in enumerate(path):
            points.append(Point(x, y, f"{name}, step {data.steps[n]}", name, len(points) - 1 if n else None))
    shares = [f"{axis} has {share:.0%} of the variance" for axis, share in zip("xy", data.share, strict=True)]
    return Scatter(
        name="Embeddings", title="Token embeddings by step", note=", ".join(shares),
        x="x", y="y", points=points, called=Called("token and step", "token"), picture=True,
    )  # fmt: skip


def evolution_sentences(data: "Evolution") -> list[str]:
    """Write findings on the induction head, the largest change of a weight, and the sharpness of attention."""
    numbers: dict[str, Any] = {"start": data.steps[0], "end": data.steps[-1], "least": GREW}
    best = data.induction_head()
    if best is not None and (data.formed(*best) is not None or repeats(data.queries)):
        formed, scores = data.formed(*best), data.induction_of(*best)
        numbers |= {"layer": best[0], "head": best[1], "last": scores[-1], "found": formed is not None}
        if formed:
            numbers |= {"formed": data.steps[formed], "previous": data.steps[formed - 1], "first": scores[formed - 1]}
    weight, cell = data.strongest(0)
    numbers["spread"] = math.exp(data.entropy[-1])
    if len(data.steps) > 1:
        cell = data.most_changed() or cell
        before, after = (data.weights[n][cell[0]][cell[1]] for n in (0, -1))
        numbers |= {"before": before, "after": after, "change": abs(after - before)}
        numbers |= {
            "same": abs(data.entropy[0] - data.entropy[-1]) < SAME,
            "start_spread": math.exp(data.entropy[0]),
        }
        numbers["how"] = "sharper" if data.entropy[-1] < data.entropy[0] else "broader"
    else:
        numbers["weight"] = weight
    names = [
        quoted(tokens[n]) + (f" ({n})" if tokens.count(tokens[n]) > 1 else "")
        for tokens, n in zip((data.queries, data.keys), cell, strict=True)
    ]
    itself = cell[0] == cell[1] and data.queries == data.keys
    return sentences(TABLE, numbers | {"query": names[0], "key": "itself" if itself else names[1]})


def repeats(names: list[str]) -> bool:
    """Return whether a list of tokens repeats its beginning to the end."""
    periods = range(1, len(names) // 2 + 1)
    return any(all(a == b for a, b in zip(names, names[period:], strict=False)) for period in periods)


@dataclass(frozen=True, eq=False, repr=False)
class Evolution(TracesAnswer):
    """The attention of a head (None: mean of heads) in a layer at several training steps.

    what: the kind of attention. queries, keys: the tokens of rows and columns. `weights[n][i][j]`: weights at steps[n].
    entropy[n]: the mean entropy of queries in nats. change[n]: the mean absolute difference from the previous step, 0
    for the first step. embedded: the distinct tokens. paths: the token embedding of each at every step, projected to a
    common plane. share: the fraction of variance that each axis explains. `induction[n][layer][head]`: the induction
    score at steps[n] (`head_scores`), empty for cross-attention or if no token repeats. training: the run's log, for
    the loss curve. `traces` has the traces of the first and the last step.
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
        """Return the title: the kind of attention, the layer and the head."""
        return capital(f"{self.what} of {self.layer_and_head()}, during training")

    def layer_and_head(self) -> str:
        """Return the layer and the head in words."""
        return f"layer {self.layer}, {'mean of heads' if self.head is None else f'head {self.head}'}"

    def rows(self) -> list[Row]:
        """Return a row per step: entropy, change, strongest link, and every head's induction score."""
        rows: list[Row] = []
        for n, step in enumerate(self.steps):
            weight, (i, j) = self.strongest(n)
            row: Row = {
                "step": step, "entropy": self.entropy[n], "change": self.change[n], "query": i,
                "query_text": self.queries[i], "key": j, "key_text": self.keys[j], "weight": weight,
            }  # fmt: skip
            for layer, scores in enumerate(self.induction[n] if self.induction else []):
                row |= {f"induction {layer}.{h}": None if math.isnan(x) else x for h, x in enumerate(scores)}
            rows.append(row)
        return rows

    def data(self) -> dict[str, object]:
        """Return all fields for JSON, except the traces and the training log."""
        names = ("layer", "head", "steps", "queries", "keys", "weights", "entropy", "change", "embedded", "paths",
               "share", "induction")  # fmt: skip
        return {"title": self.title(), **{name: getattr(self, name) for name in names}}

    def opening(self) -> dict[str, str | int | None]:
        """Return the view that a page opens with: the last step's panel and trace, and this layer and head."""
        last = int(len(self.steps) > 1)
        return {"view": f"panel {last}", "layer": self.layer, "head": self.head, "trace": last, "title": self.title()}

    def from_start(self, n: int) -> list[list[float]]:
        """Return the weights at steps[n] minus those at the first step."""
        return [
            [last - first for last, first in zip(*rows, strict=True)]
            for rows in zip(self.weights[n], self.weights[0], strict=True)
        ]

    def most_changed(self) -> tuple[int, int] | None:
        """Return the (query, key) whose weight changed most from the first to the last step, None if none changed."""
        rows = self.from_start(len(self.steps) - 1)
        changes = [(abs(value), -i, -j) for i, row in enumerate(rows) for j, value in enumerate(row)]
        largest, i, j = max(changes, default=(0.0, 0, 0))
        return (-i, -j) if largest > 0 else None

    def induction_head(self) -> tuple[int, int] | None:
        """Return the (layer, head) with the largest induction score at the last step, None without scores."""
        last = self.induction[-1] if self.induction else []
        scores = [(score, -i, -j) for i, row in enumerate(last) for j, score in enumerate(row) if not math.isnan(score)]
        if not scores:
            return None
        _, i, j = max(scores)
        return -i, -j

    @cached_property
    def always_zero(self) -> list[list[bool]]:
        """Return for each (query, key) whether its weight is 0 at every step, for example because it is masked."""
        return [[not any(cell) for cell in zip(*rows, strict=True)] for rows in zip(*self.weights, strict=True)]

    @cached_property
    def free_queries(self) -> list[int]:
        """Return the queries that attend to more than one key at some step, or all queries if there are none."""
        queries = range(len(self.queries))
        return [i for i in queries if any(sum(w > 0 for w in table[i]) > 1 for table in self.weights)] or list(queries)

    def strongest(self, n: int) -> tuple[float, tuple[int, int]]:
        """Return the largest weight of the `free_queries` at steps[n], and its (query, key)."""
        value, i, j = max((w, i, j) for i in self.free_queries for j, w in enumerate(self.weights[n][i]))
        return value, (i, j)

    def induction_of(self, layer: int, head: int) -> list[float]:
        """Return the induction scores of a head over the steps."""
        return [scores[layer][head] for scores in self.induction]

    def formed(self, layer: int, head: int) -> int | None:
        """Return the index of the first step from which a head's induction score stays at least half its last score.

        None if the last score is below FORMED, that is, if the head isn't an induction head.
        """
        scores = self.induction_of(layer, head)
        if not scores or not scores[-1] >= FORMED:
            return None
        low_steps = [n for n, score in enumerate(scores) if not score >= scores[-1] / 2]
        return low_steps[-1] + 1 if low_steps else 0


def open_watched(run: Path) -> list[tuple[int, Trace | PairTrace]]:
    """Open the watched traces of a run, as (step, trace) sorted by step. A trace is read on first access."""
    check_watched_traces(run)
    traces = []
    for step, file in run_files_by_step(run / WATCH, ".safetensors"):
        trace, *others = open_traces(file)
        if others:
            raise RegardError(f"{str(file)!r} has several traces, expected the trace that a run keeps")
        traces.append((step, trace))
    return traces


def evolution_of(run: Path, layer: int, head: int | None = None, *, part: str | None = None) -> Evolution:
    """Compare the watched traces of a run, and add its training log if there is one."""
    return replace(evolution(open_watched(run), layer, head, part=part), training=training_of(run))


def evolution(
    traces: Sequence[tuple[int, Trace | PairTrace]], layer: int, head: int | None = None, *, part: str | None = None
) -> Evolution:
    """Compare the attention in traces of a sentence at several training steps.

    part: for encoder-decoders, the stack: "cross" (default), "encoder" or "decoder".
    """
    if not traces:
        raise RegardError("evolution: got no trace, expected at least one")
    steps = [(step, *_attention_of_stack(trace, part)) for step, trace in traces]
    _, first, rows, columns, stack = steps[0]
    layer = from_zero("layer", layer, len(first), "there are")
    head = None if head is None else from_zero("head", head, first[0].shape[0], "there are")
    tables = []
    for step, maps, queries, keys, _ in steps:
        if [t.id for t in queries.tokens] != [t.id for t in rows.tokens] or len(keys.tokens) != len(columns.tokens):
            raise RegardError(f"evolution: the trace of step {step} has another text")
        dense = maps[layer].dense()
        tables.append(dense.mean(0) if head is None else dense[head])  # (L, S)
    stacked = torch.stack(tables).double()
    change = (stacked[1:] - stacked[:-1]).abs().mean((1, 2)).tolist()
    ends = sorted({0, len(steps) - 1})
    names, paths, share = _embedding_paths([queries for _, _, queries, _, _ in steps])
    return Evolution(
        what=stack, layer=layer, head=head, steps=[step for step, *_ in steps],
        queries=[token.text for token in rows.tokens], keys=[token.text for token in columns.tokens],
        weights=stacked.tolist(), entropy=torch.special.entr(stacked).sum(-1).mean(-1).tolist(), change=[0.0, *change],
        embedded=names, paths=paths, share=share,
        induction=[] if stack == CROSS else _induction_scores([queries for _, _, queries, _, _ in steps]),
        about=Read.of(traces[-1][1]), traces=[traces[n][1] for n in ends], names=[f"step {steps[n][0]}" for n in ends],
    )  # fmt: skip


def _attention_of_stack(trace: Trace | PairTrace, part: str | None) -> tuple[Sequence[AttentionMap], Trace, Trace, str]:
    """Return a stack's attention maps, the traces of its queries and keys, and its name in words."""
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


def _induction_scores(traces: Sequence[Trace]) -> list[list[list[float]]]:
    """Return every head's induction score at each step, or an empty list if no token occurs twice."""
    ids = [token.id for token in traces[0].tokens if not token.special]
    if len(set(ids[:-1])) == len(ids[:-1]):
        return []
    scores = [head_scores(trace) for trace in traces]
    return [score.induction.tolist() for score in scores] if scores[0].inductions else []


def _embedding_paths(traces: Sequence[Trace]) -> tuple[list[str], list[list[tuple[float, float]]], tuple[float, float]]:
    """Project the token embeddings of a text's distinct tokens at all steps to a common plane."""
    if any(trace.token_embeddings is None for trace in traces):
        return [], [], (0.0, 0.0)
    order = {token.id: n for n, token in reversed(list(enumerate(traces[0].tokens)))}
    positions = sorted(order.values())
    tables = (trace.token_embeddings for trace in traces)
    rows: list[Float[Tensor, "n M"]] = [table[positions].double() for table in tables if table is not None]
    flat = plane(torch.cat(rows))
    points = torch.stack([flat.place(row) for row in rows])  # (steps, n, 2)
    paths = [[(x, y) for x, y in points[:, n].tolist()] for n in range(len(positions))]
    return [traces[0].tokens[n].text for n in positions], paths, flat.share
