"""Score every head's attention to positions, special tokens, sinks, and repeated tokens.

w are the weights (L, S) of one head. Each score is a part of the row w[i], from 0 to 1, as the mean over all queries i
except special tokens and the first token (in causal models, it sees only itself):

    previous    w[i, i - 1]                                             Clark et al. 2019, Voita et al. 2019
    next        w[i, i + 1], of queries with a token after them         Clark et al. 2019, Voita et al. 2019
    same        w[i, i]                                                 Clark et al. 2019
    special     Σ w[i, j] over special tokens j                         Clark et al. 2019
    first       w[i, 0]                                                 Xiao et al. 2023
    sinks       Σ w[i, j] over attention sinks j, and a learned sink    Xiao et al. 2023
    duplicate   Σ w[i, j] over j < i of the same token id               Wang et al. 2022
    induction   Σ w[i, j] over j < i with id[j - 1] = id[i]             Olsson et al. 2022

The last two are means over the queries with such a j. Olsson et al. measure induction ("prefix matching") on repeated
random tokens, where a head can only follow the repetition. `head_scores(model.trace(ids=ids + ids))` computes this
score. In a natural text, the score depends on its repetitions. A score shows where a head attends, not its effect.

Clark et al. 2019, "What Does BERT Look At?"; Voita et al. 2019, "Analyzing Multi-Head Self-Attention" (who count how
often the largest weight is at a position, instead of averaging weights); Olsson et al. 2022, "In-context Learning and
Induction Heads"; Wang et al. 2022, "Interpretability in the Wild" (duplicate token heads); Xiao et al. 2023, "Efficient
Streaming Language Models with Attention Sinks".
"""

import math
from dataclasses import dataclass, fields
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from regard.attention.attention_map import AttentionMap
from regard.explain.weights.attended import held_attention_calls, maps_between_tokens
from regard.explain.weights.sinks import sinks_of
from regard.shown import Row, Tabular
from regard.trace.layers import CallNumber
from regard.trace.trace import Trace

SCORED = 2048  # tokens; in longer texts, a page doesn't read every weight to score heads or follow a word
BLOCK = 1 << 22  # weights of all heads read at once

Scores = Float[Tensor, "layers H"]


@dataclass(frozen=True, eq=False, repr=False)
class HeadScores(Tabular):
    """The scores of every head as defined above, (layers, heads) in float64, one row per attention call.

    calls: each row's layer, and the number of the attention call in this layer. NaN: no query of the text has such a
    key, or the layer has fewer heads than others. nexts, duplicates, inductions: the number of queries that these means
    are over. queries: the same for all other scores. sink_tokens: the numbers of the tokens that are attention sinks.
    """

    calls: tuple[CallNumber, ...]
    previous: Scores
    next: Scores
    same: Scores
    special: Scores
    first: Scores
    sinks: Scores
    duplicate: Scores
    induction: Scores
    queries: int
    nexts: int
    duplicates: int
    inductions: int
    sink_tokens: tuple[int, ...]

    @property
    def layers(self) -> tuple[int, ...]:
        """Return the layer of each row in the tables of head scores."""
        return tuple(layer for layer, _ in self.calls)

    def by_name(self) -> dict[str, Scores]:
        """Return the tables of head scores by name, in the order of their definitions."""
        return {name: getattr(self, name) for name in NAMES}

    def rows(self) -> list[Row]:
        """Return one row per head: layer, call (its number in the layer), head, and every score."""
        scores, heads = self.by_name(), range(self.same.shape[1])
        return [
            {"layer": layer, "call": nth, "head": head}
            | {name: float(values[row, head]) for name, values in scores.items()}
            for row, (layer, nth) in enumerate(self.calls)
            for head in heads
            if self.queries == 0 or not math.isnan(float(self.same[row, head]))  # skip heads that the layer lacks
        ]


NAMES = tuple(field.name for field in fields(HeadScores) if field.type is Scores)


def head_scores(trace: Trace) -> HeadScores:
    """Score every head of all layers in a trace. For an encoder-decoder, pass `.encoder` or `.decoder`.

    Every weight is read once, a few rows at a time, without a tensor of all heads' L × S weights.
    """
    calls, maps = held_attention_calls(trace), maps_between_tokens(trace)
    ids = torch.tensor([token.id for token in trace.tokens])
    special = torch.tensor([token.special for token in trace.tokens])
    sums = [_ScoreSums(weights, ids, special) for weights in maps]
    sink_tokens = [s.token for s in sinks_of(maps, trace.tokens, received=[total.received for total in sums])]
    rows = [total.means(sink_tokens) for total in sums]
    tables: Any = {name: pad_sequence([row[name] for row in rows], True, math.nan) for name in NAMES}  # layers, heads
    first, names = sums[0], ("next", "duplicate", "induction")  # all layers have the same counts
    counts: Any = {f"{name}s": first.counts[name] for name in names}
    return HeadScores(calls, **tables, queries=first.queries, **counts, sink_tokens=tuple(sink_tokens))


class _ScoreSums:
    """Sums of weights for the scores of one map (H, L, L), from one pass over its rows.

    received: each key's weights from all queries, (H, L). counted: the weights from the queries that scores average
    over.
    """

    def __init__(self, weights: AttentionMap, ids: Int[Tensor, " L"], special: Bool[Tensor, " L"]) -> None:
        heads, length, _ = weights.shape
        self.special = special
        self.received = torch.zeros(heads, length, dtype=torch.float64)
        self.counted, self.sink = torch.zeros_like(self.received), torch.zeros(heads, dtype=torch.float64)
        self.followed = {name: torch.zeros(heads, dtype=torch.float64) for name in FOLLOWED}
        self.counts = dict.fromkeys(FOLLOWED, 0)
        asks = ~special & (torch.arange(length) > 0)  # the queries that scores average over
        self.queries = int(asks.sum())
        for rows in torch.arange(length).split(max(1, BLOCK // (heads * length))):
            part = weights[:, int(rows[0]) : int(rows[-1]) + 1].cpu().double()  # (H, r, L)
            self.received += part.sum(1)
            queries = asks[rows]
            self._add_rows(part[:, queries], rows[queries], ids)
        if weights.given is None and weights.rule.sinks is not None:
            self.sink += weights.sink_share.cpu().double()[:, asks].sum(1)

    def _add_rows(self, part: Float[Tensor, "H q L"], rows: Int[Tensor, " q"], ids: Int[Tensor, " L"]) -> None:
        """Add the attention of some queries to the sums of head scores."""
        self.counted += part.sum(1)
        for name, shift in POSITIONS.items():
            inside = rows + shift < len(ids)
            at = torch.arange(len(rows))[inside]
            self.followed[name] += part[:, at, rows[inside] + shift].sum(1)
            self.counts[name] += len(at)
        before = torch.arange(len(ids)) < rows[:, None]
        same = (ids == ids[rows][:, None]) & before  # (q, L): earlier tokens of the same id
        successor = torch.zeros_like(same)
        successor[:, 1:] = (ids[:-1] == ids[rows][:, None]) & before[:, 1:]
        for name, spots in (("duplicate", same), ("induction", successor)):
            query, key = spots.nonzero().unbind(1)
            self.followed[name] += part[:, query, key].sum(1)
            self.counts[name] += int(spots.any(1).sum())

    def means(self, sink_tokens: list[int]) -> dict[str, Float[Tensor, " H"]]:
        """Return every score by name, each (H,): the sums divided by the number of queries."""
        means = {name: total / (self.counts[name] or math.nan) for name, total in self.followed.items()}
        sums = {
            "special": self.counted[:, self.special].sum(1),
            "first": self.counted[:, 0],
            "sinks": self.counted[:, sink_tokens].sum(1) + self.sink,
        }
        return means | {name: total / (self.queries or math.nan) for name, total in sums.items()}


POSITIONS = {"previous": -1, "same": 0, "next": 1}  # key's number minus the query's
FOLLOWED = (*POSITIONS, "duplicate", "induction")
