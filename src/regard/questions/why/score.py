"""Split one attention score exactly into pairs of components of the two residual streams.

    score = scale · query · key = Σ_a Σ_b scale · query_a · key_b

query_a is the direct contribution of writer a (an embedding, a head's attention to a source token, a feed-forward
layer, biases) to the query, through the residual stream, norms with fixed statistics, W_Q, and rotary positions. key_b
is defined in the same way (`gradients.score_path`). A head's output belongs to the head, whatever its input was.
The softmax depends only on differences, so contributions that are equal for all keys have no effect.
`ScoreSources.beside_the_others` removes them.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.capture.gradients.score_path import Side, SideParts, score_path
from regard.capture.interventions.names import PARTS, CallId, Part
from regard.checks import from_zero
from regard.display.answer import Read, TracesAnswer
from regard.display.panels import Cell, Column, Heat, Panel, Sums, Table
from regard.display.sentences import Template, sentences
from regard.errors import RegardError
from regard.explain.causes.score_writers import By, largest_writers_and_rest, named, writers_by_group
from regard.explain.weights.attended import check_layer
from regard.explain.wording import Place, exactly_split, fixed, listed, number, place_in, short_head, signed, tokens_of
from regard.models.model import Model
from regard.models.readout import bind_to_trace
from regard.shown import Row
from regard.text.quoting import quoted
from regard.text.tokens import Token
from regard.trace.layers import kept_numbers
from regard.trace.trace import PairTrace, Trace

MAX_GRID_PARTS = 96  # components of a side with a separate row or column in a grid; the others share one
MAX_DRAWN_PARTS = 48  # components of a side; with more, the plot doesn't show each writer
MAX_PAIRS = 300  # pairs in the table
TAB = "The score"  # the page's tab with all panels
GROUPS: tuple[tuple[By, str], ...] = (
    ("source", "By source token"), ("layer", "By layer"), ("writer", "By writer"), ("kind", "By kind"),
)  # fmt: skip
CARRIED = re.compile(r"attention from (?:“(.*)”|(a blank|a line break)) \((\d+)\)", re.DOTALL)


def score_panels(answer: "ScoreSources") -> list[Panel]:
    """Return a grid of pairs for each grouping of components, and a table of the largest pairs.

    Equal groupings share a grid. Source tokens need attention components. The plot shows writers, or layers if many.
    """
    difference = _score_less_other_keys(answer)
    small = max(len(names) for names in difference.table()[:2]) <= MAX_DRAWN_PARTS
    grouped: dict[str, list[tuple[By, str]]] = {}
    for by, name in GROUPS:
        queries, keys, scores = difference.table(by)
        if by == "source" and not any(map(CARRIED.fullmatch, [*queries, *keys])):
            continue
        grouped.setdefault(str((queries, keys, scores.tolist())), []).append((by, name))
    groups = list(grouped.values())
    drawn: By = "writer" if small else "layer"
    grids = [_pairs_grid(answer, same, drawn=drawn in {by for by, _ in same}) for same in groups]
    return [*grids, _score_pairs_table(answer)]


def short_score_part_name(name: str) -> str:
    """Shorten a component's name for a label. For a source token, keep only the token and its number."""
    carried = CARRIED.fullmatch(name)
    return name if carried is None else f"{carried[1] or carried[2]} {carried[3]}"


def _score_less_other_keys(answer: "ScoreSources") -> "ScoreSources":
    """Return the score minus the mean over all keys, or the score itself if there is a single key."""
    return answer.beside_the_others() if answer.seen > 1 else answer


def _pairs_grid(answer: "ScoreSources", same: Sequence[tuple[By, str]], *, drawn: bool) -> Heat:
    """Return a grid of all pairs of components. same: the groupings that share this grid. drawn: whether to plot it."""
    difference = _score_less_other_keys(answer)
    queries, keys, scores = difference.table(same[0][0])
    queries, scores = largest_writers_and_rest(queries, scores, MAX_GRID_PARTS)
    keys, across = largest_writers_and_rest(keys, scores.T, MAX_GRID_PARTS)
    scores = across.T
    less = f" minus the mean of {answer.seen} keys" if difference.difference else ""
    total = f"the score {signed(answer.score)} minus the mean score {signed(answer.mean)}" if less else "the score"
    caption = f"All cells sum to {signed(difference.score)}, {total}."
    head = short_head(answer.layer, answer.head)
    by = " and ".join(name.lower() for _, name in same)
    return Heat(
        name=same[0][1], title=f"Score from {quoted(answer.query)} to {quoted(answer.key)} in {head}, {by}",
        note=f"Each cell is a component of the query times a component of the key. {caption}",
        caption=caption,
        rows=[short_score_part_name(name) for name in queries], columns=[short_score_part_name(name) for name in keys],
        values=scores.tolist(), signed=True, unit="score", picture=drawn, tab=TAB, unbounded=True,
        axes=(f"components of {quoted(answer.query)} (query)", f"components of {quoted(answer.key)} (key){less}"),
        sums=Sums(
            rows=scores.sum(1).tolist(), columns=scores.sum(0).tolist(), all=float(scores.sum()),
            across="sum of row", down="sum of column", name="sum of all cells",
        ),
    )  # fmt: skip


def _score_pairs_table(answer: "ScoreSources") -> Table:
    """Return a table of the largest pairs of writers, with their parts of the score and of its difference."""
    difference = _score_less_other_keys(answer)
    queries, keys, scores = answer.table()
    rows_of, columns_of = ({name: n for n, name in enumerate(names)} for names in (queries, keys))
    rows: list[list[Cell]] = []
    for pair in difference.top(MAX_PAIRS):
        score = float(scores[rows_of[pair.query], columns_of[pair.key]]) if pair.key in columns_of else 0.0
        rows.append([pair.query, pair.key, pair.score, score])
    count = len(difference.table()[0]) * len(difference.table()[1])
    columns = [
        Column(f"of {quoted(answer.query)}"), Column(f"of {quoted(answer.key)}"),
        Column("difference", 2, bar=True, signed=True, unbounded=True),
        Column("score", 2, signed=True, unbounded=True),
    ]  # fmt: skip
    head, largest = short_head(answer.layer, answer.head), f"{MAX_PAIRS:,} largest" if count > MAX_PAIRS else "Largest"
    added = [f"a bias of {signed(answer.bias)}"] if answer.bias else []
    added += [f"the softcap (to {fixed(answer.softcapped, 2, True)})"] if answer.softcapped is not None else []
    without = f" The score excludes {listed(added)}." if added else ""
    return Table(
        name="Largest pairs", columns=columns, rows=rows, screen=True, tab=TAB,
        title=f"{largest} pairs of components in the score from {quoted(answer.query)} to {quoted(answer.key)}, {head}",
        total=[f"all {count:,} pairs", "", difference.score, answer.score],
        note=f"Difference: score minus the mean over the {answer.seen} tokens that the query can attend to.{without}",
    )  # fmt: skip


LEAST_SHARE = 0.1  # of the sum of absolute values; sentences name no smaller pair

TABLE: list[list[Template]] = [
    [
        ("{query} can attend only to {key} in {place} (weight {weight}).", lambda n: n["seen"] == 1),
        ("{query} attends to {key} in {place} with weight {weight}: the score is {apart:n} {side} the mean of "
         "{seen} tokens.", None),
    ],
    [
        ("No pair of components moves the score from the mean.", lambda n: n.get("share") == 0),
        ("The largest pair is {query_of_pair} of {query} with {key_of_pair} of {key} ({pair_score:+}).",
         lambda n: n["share"] >= LEAST_SHARE),
        ("No single pair explains this: the largest of {pairs} has {share:%} of the sum of absolute values.", None),
    ],
    [
        ("The largest components are {query_part} of {query} ({query_sum:+}) and {key_part} of {key} "
         "({key_sum:+}).",
         lambda n: n["share"] > 0 and (n["query_of_pair"], n["key_of_pair"]) != (n["query_part"], n["key_part"])),
    ],
]  # fmt: skip
TOLERANCE = 1e-5  # largest difference between the pairs' sum and the score, relative to the sum of absolute values
SAME = 1e-4  # largest difference between a query or key and the trace's, relative to its norm
NUMBERS = (  # fields of the JSON data
    "query", "key", "layer", "head", "part", "score", "softcapped", "bias", "weight", "mean", "seen", "error",
)  # fmt: skip
# Returns the components of some tokens' mean query, and of the mean key of each list of tokens.
Split = Callable[[CallId, int, Sequence[int], Sequence[Sequence[int]]], tuple[SideParts, list[SideParts]]]


def score_sentences(answer: "ScoreSources") -> list[str]:
    """Return sentences on the score, its largest pair, and the largest component of each side."""
    difference = answer.beside_the_others()
    where = f"{'cross-attention of ' * (answer.part == 'cross')}layer {answer.layer}, head {answer.head}"
    numbers: dict[str, Any] = {
        "query": quoted(answer.query), "key": quoted(answer.key), "place": where, "weight": answer.weight,
        "seen": answer.seen, "apart": abs(difference.score), "side": "above" if difference.score >= 0 else "below",
    }  # fmt: skip
    if answer.seen > 1:
        *_, scores = difference.table()
        (pair,), total = difference.top(1), float(scores.abs().sum())
        numbers |= {"pairs": scores.numel(), "share": abs(pair.score) / total if total else 0.0}
        numbers |= {"query_of_pair": pair.query, "key_of_pair": pair.key, "pair_score": pair.score}
        for side in ("query", "key"):
            numbers[f"{side}_part"], numbers[f"{side}_sum"] = difference.side(side)[0]
    return sentences(TABLE, numbers)


@dataclass(frozen=True)
class ScorePair:
    """A component of the query, a component of the key, and the score of the pair."""

    query: str
    key: str
    score: float


@dataclass(frozen=True, eq=False, repr=False)
class ScoreSources(TracesAnswer):
    """A head's score, split into pairs of components. For words of several tokens, it is the mean over token pairs.

    score: scale · query · key, the sum of all pairs. bias: a term added to the score, usually for positions.
    softcapped: the score after the softcap, None without a softcap. weight: the attention from the query to the key's
    tokens. mean: the mean score of all keys that the query can attend to. seen: the number of these keys. difference:
    whether the mean is subtracted (`beside_the_others`). error: the difference between the pairs' sum and the score,
    relative to the sum of absolute values.
    """

    format = "regard why --edge"
    findings = score_sentences
    panels = score_panels

    query: str
    key: str
    layer: int
    head: int
    part: Part | None
    score: float
    softcapped: float | None
    bias: float
    weight: float
    mean: float
    seen: int
    error: float
    query_parts: SideParts = field(repr=False)
    key_parts: SideParts = field(repr=False)
    other_keys: SideParts = field(repr=False)
    scale: float = field(repr=False)
    tokens: Mapping[Side | None, Sequence[Token]] = field(repr=False)
    difference: bool = False

    def table(self, by: By = "writer") -> tuple[list[str], list[str], Float[Tensor, "P Q"]]:
        """Return the names of the query's and key's components, and the score of each pair. The pairs sum to the score.

        by: the kind of component: a "writer" (an embedding, a head, a feed-forward layer, a layer's biases), a writer's
        attention to one "token", all attention to one "source" token, a "layer", or a "kind".
        """
        queries, query = writers_by_group(self.query_parts, by)
        keys, key = writers_by_group(self.key_parts, by)
        if self.difference:
            others, other = writers_by_group(self.other_keys, by)
            union = tuple(dict.fromkeys((*keys, *others)))
            row_of = {writer: n for n, writer in enumerate(union)}
            difference = key.new_zeros(len(union), key.shape[1])
            difference[[row_of[writer] for writer in keys]] += key
            difference[[row_of[writer] for writer in others]] -= other
            keys, key = union, difference
        query_names, key_names = ([named(writer, by, self.tokens) for writer in side] for side in (queries, keys))
        return query_names, key_names, self.scale * query @ key.T

    def top(self, count: int = 10, by: By = "writer") -> list[ScorePair]:
        """Return the pairs with the largest absolute scores."""
        queries, keys, scores = self.table(by)
        best = scores.flatten().abs().sort(descending=True, stable=True).indices[:count].tolist()
        return [ScorePair(queries[n // len(keys)], keys[n % len(keys)], float(scores.flatten()[n])) for n in best]

    def side(self, side: Literal["query", "key"], by: By = "writer") -> list[tuple[str, float]]:
        """Return each component of one side, summed over the other side, the largest absolute values first."""
        queries, keys, scores = self.table(by)
        names, sums = (queries, scores.sum(1)) if side == "query" else (keys, scores.sum(0))
        order = sums.abs().sort(descending=True, stable=True).indices.tolist()
        return [(names[n], float(sums[n])) for n in order]

    def beside_the_others(self) -> "ScoreSources":
        """Split the score minus the mean score of all keys that the query can attend to.

        The softmax depends only on this difference. Contributions that are equal for all keys cancel.
        """
        return self if self.difference else replace(self, score=self.score - self.mean, difference=True)

    def rows(self) -> list[Row]:
        """Return one row per pair of writers, the largest absolute scores first: query_part, key_part, score."""
        queries, keys, _ = self.table()
        return [
            {"query_part": pair.query, "key_part": pair.key, "score": pair.score}
            for pair in self.top(len(queries) * len(keys))
        ]

    def exactness(self) -> list[str]:
        """Return a note on how exactly the pairs sum to the score."""
        return [exactly_split("pairs", "score", self.error)]

    def title(self) -> str:
        """Return a title that names the head, the two words and the weight."""
        where = f"{'cross-attention of ' * (self.part == 'cross')}layer {self.layer}, head {self.head}"
        return f"Why {quoted(self.query)} attends to {quoted(self.key)} in {where} (weight {number(self.weight)})"

    def opening(self) -> dict[str, str | int | None]:
        """Return the title, view, head and token at which the page opens: the grid of the score."""
        at = self.query_parts.tokens[0]
        return {"title": self.title(), "view": "panel 0", "layer": self.layer, "head": self.head, "token": at}

    def data(self) -> dict[str, object]:
        """Return the score and all pairs of components in each grouping, with and without the mean over keys."""
        difference, ways = self.beside_the_others(), ("writer", "layer", "source", "kind")
        groups: dict[str, Any] = {by: {} for by in ways}
        for by, (name, answer) in product(ways, (("score", self), ("difference", difference))):
            queries, keys, scores = answer.table(by)  # type: ignore[arg-type]
            groups[by][name] = {"query_parts": queries, "key_parts": keys, "pairs": scores.tolist()}
        text, target = self.about.texts[0] if self.about.texts else ("", None)
        edge = {name: getattr(self, name) for name in NUMBERS}
        return {"text": text, "target": target, "edge": edge, "parts": groups}


def score_sources(
    model: Model, trace: Trace | PairTrace, query: Place, key: Place, *, layer: int, head: int, part: Part | None = None
) -> ScoreSources:
    """Split an attention score into pairs of components of the query's and key's residual streams (QK circuit).

    Args:
        model: the model of the trace.
        trace: a trace without interventions.
        query, key: words that occur once, one of their occurrences, or token numbers.
        layer, head: counted from 0, or from the end: -1 is the last.
        part: for an encoder-decoder, the kind of attention. For "cross", the key is in the source text.

    Raises:
        RegardError: a word, token, layer or head doesn't exist, the query can't attend to the key, or no exact split is
            known for the model's queries and keys.
    """
    split = bind_to_trace(model, trace, "score_sources", score_path)
    return split_score(trace, query, key, layer, head, split, part=part)


def named_score(
    model: Model,
    trace: Trace | PairTrace,
    *,
    query: str | int,
    key: str | int,
    layer: int | None,
    head: int | None,
    part: Any,
) -> ScoreSources:
    """Split the score of a query and key. layer, head: None for those with the largest weight between them."""
    queries, keys, maps = traces_of_score(trace, part)
    positions = [place_in(side, position) if isinstance(position, str) else position
              for side, position in ((queries, query), (keys, key))]  # fmt: skip
    if layer is None or head is None:
        rows, columns = (tokens_of(side, position) for side, position in zip((queries, keys), positions, strict=True))
        best = (-1.0, 0, 0)
        for n in kept_numbers(maps) if layer is None else [layer]:
            weights = maps[n][:, rows][..., columns].sum(-1).mean(-1)  # (H,)
            best = max(best, *((float(weights[h]), -n, -h) for h in (range(len(weights)) if head is None else [head])))
        layer, head = -best[1], -best[2]
    return score_sources(model, trace, *positions, layer=layer, head=head, part=part)


def split_score(
    trace: Trace | PairTrace, query: Place, key: Place, layer: int, head: int, split: Split, *, part: Part | None = None
) -> ScoreSources:
    """Split one head's score for a query and a key. split: runs the model up to the attention call."""
    queries, keys, maps = traces_of_score(trace, part)
    rows, cols = tokens_of(queries, query), tokens_of(keys, key)
    layer = check_layer(queries, layer)
    weights: AttentionMap = maps[layer]
    head = from_zero("head", head, weights.query.shape[1], "there are")
    name = f"score_sources of layer {layer} of {queries.status.model}"
    scores = weights.scores[head, rows].double().cpu()  # (r, S)
    visible = (scores > -torch.inf).all(0).nonzero()[:, 0].tolist()
    words = [
        text.tokens[position].text
        if isinstance(position, int)
        else text.text[text.tokens[n[0]].start : text.tokens[n[-1]].end].strip()
        for text, position, n in ((queries, query, rows), (keys, key, cols))
    ]
    if not set(cols) <= set(visible):
        raise RegardError(f"{name}: {words[0]!r} can't attend to {words[1]!r} there: the score is masked")
    parts, (looked_at, others) = split(CallId(part, layer), head, rows, [cols, visible])
    group = head * weights.key.shape[1] // weights.query.shape[1]
    q, k = weights.query[0, head].double().cpu(), weights.key[0, group].double().cpu()
    for kind, side, traced in (("query", parts, q[rows]), ("key", looked_at, k[cols])):
        ratio = float((side.whole - traced.mean(0)).norm() / traced.mean(0).norm().clamp_min(1e-30))
        if not ratio <= max(SAME, 4 * torch.finfo(weights.query.dtype).eps):
            raise RegardError(
                f"{name}: the {kind} that the model computes is {ratio:.1e} of its length from the trace's: the trace "
                "has to be of this model, in its dtype, without interventions"
            )
    rule = weights.rule
    plain = rule.scale * q[rows] @ k[cols].T
    capped = plain if rule.softcap is None else rule.softcap * torch.tanh(plain / rule.softcap)
    names: tuple[Side | None, ...] = ("encoder", "decoder") if isinstance(trace, PairTrace) else (None,)
    answer = ScoreSources(
        query=words[0], key=words[1], layer=layer, head=head, part=part,
        score=float(rule.scale * parts.whole @ looked_at.whole),
        softcapped=None if rule.softcap is None else float(capped.mean()),
        bias=0.0 if rule.bias is None else float((scores[:, cols] - capped).mean()),
        weight=float(weights[head, rows].double().mean(0)[cols].sum()),
        mean=float(rule.scale * parts.whole @ others.whole), seen=len(visible), error=0.0, query_parts=parts,
        key_parts=looked_at, other_keys=others, scale=float(rule.scale),
        tokens={name: stack.tokens for name, stack in zip(names, trace.sides, strict=True)},
        about=replace(Read.of(trace), statuses=tuple(side.status for side in trace.sides)),
    )  # fmt: skip
    error = max(_relative_error(answer), _relative_error(replace(answer, key_parts=others, score=answer.mean)))
    if not error <= TOLERANCE:
        raise RegardError(
            f"{name}: the parts' sum differs from the score by {error:.1e} of the sum of their absolute values, "
            f"allowed is {TOLERANCE:.0e} (the model computes in {str(weights.query.dtype).removeprefix('torch.')})"
        )
    return replace(answer, error=error)


def _relative_error(answer: ScoreSources) -> float:
    """Return the difference between the pairs' sum and the score, relative to the sum of their absolute values.

    If a query and key are almost orthogonal, the score of a single pair is mostly rounding error. The sum is therefore
    replaced by a tenth of the scaled product of their norms if it is smaller.
    """
    _, _, scores = answer.table()
    lengths = abs(answer.scale) * float(answer.query_parts.whole.norm() * answer.key_parts.whole.norm())
    size = max(float(scores.abs().sum()), lengths / 10, torch.finfo(torch.float64).tiny)
    return abs(float(scores.sum()) - answer.score) / size


def traces_of_score(trace: Trace | PairTrace, part: Part | None) -> tuple[Trace, Trace, Sequence[AttentionMap]]:
    """Return the trace of the queries, the trace of the keys, and the attention maps between them."""
    if isinstance(trace, PairTrace):
        if part not in PARTS:
            ways = ", ".join(f"part={name!r}" for name in PARTS)
            raise RegardError(f"score_sources: {trace.status.model} is an encoder-decoder: choose {ways}")
        queries = trace.encoder if part == "encoder" else trace.decoder
        if part == "cross":
            return queries, trace.encoder, queries.cross
        return queries, queries, queries.attention
    if part is not None:
        raise RegardError(f"score_sources: {trace.status.model} is not an encoder-decoder: leave out part={part!r}")
    return trace, trace, trace.attention
