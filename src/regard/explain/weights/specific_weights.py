"""Find weights that depend on both tokens, beyond the effect of the distance or the key alone.

    divergence = weight · ln(weight / expected),  expected = the largest of (by distance, by key, equal)

by distance: the mean weight from the head's other queries to the token at the same distance, on the same side. The mean
is over all of them or, if that is larger, over the eight nearest, because some heads attend at a fixed distance only in
stretches of a text. by key: the mean weight to this key from the other queries that see it. equal: 1 / the number of
keys that the query sees. The divergence, in nats, is the key's term in the Kullback-Leibler divergence of the row from
the expected row.

If a head always attends to the previous token, its large weights don't depend on these tokens. The same holds if every
token attends to the same position (positional heads and sinks: Voita et al. 2019, "Analyzing Multi-Head
Self-Attention"; Clark et al. 2019, "What Does BERT Look At?"). Weight above all three expectations is specific to this
query and key. For a word, the head with the largest divergence is the most informative. Special tokens, attention
sinks, and tokens of the query's word are left out as keys.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.attention.masks import Mask
from regard.attention.region_scores import MAX_KEPT, dtype_of
from regard.explain.weights.attended import WordLink, keys_of_other_words
from regard.text.tokens import Token
from regard.text.words import words
from regard.trace.layers import kept_numbers
from regard.trace.trace import Trace

NEAREST = (-4, -3, -2, -1, 1, 2, 3, 4)
DISTINCTIVE = 0.25  # smallest divergence, in nats, of a distinctive weight
SMALL = 1 << 22  # maps with at most this many weights are read as a whole
AT_ONCE = 64  # queries read at once
SAMPLED = 512  # queries that means are over; in a longer text, they are evenly spaced
DivergenceMap = tuple[int, Float[Tensor, "H L L"], Float[Tensor, "H L L"]]  # layer, weights, divergences


@dataclass(frozen=True)
class SpecificWeight:
    """The weight from a word (or a token) to a key in one head.

    weight, expected, divergence (in nats): as defined above, each as the mean over the word's queries.
    """

    layer: int
    head: int
    queries: tuple[int, ...]
    key: int
    weight: float
    expected: float
    divergence: float


def specific_weights(
    trace: Trace, groups: Sequence[Sequence[int]] | None = None, sinks: Collection[int] = (), *,
    layers: Sequence[int] | None = None, head: int | None = None, words_alone: bool = False,
) -> list[list[SpecificWeight]]:  # fmt: skip
    """Find each word's weight with the largest divergence, in each layer. The largest divergences come first.

    groups: the tokens of each word. Default: each token that isn't special or in sinks, at most 512, evenly spaced.
    sinks: the numbers of the tokens that are attention sinks. layers: default: all in the trace. head: one head of each
    layer. Default: the head with the largest divergence. words_alone: use only tokens of words with another spelling as
    keys, without punctuation. Words without a positive divergence are left out.
    """
    tokens = trace.tokens
    candidates = [n for n, token in enumerate(tokens) if not token.special and n not in sinks]
    if groups is None:
        count = min(len(candidates), SAMPLED)
        groups = [[candidates[n * len(candidates) // count]] for n in range(count)]
    if words_alone:  # the allowed keys of each word
        allowed = keys_of_other_words(tokens, groups, sinks)
    else:
        word_of = torch.tensor(word_numbers(trace.text, tokens))
        allowed = torch.zeros(len(groups), len(tokens), dtype=torch.bool)
        allowed[:, candidates] = True
        for keys, group in zip(allowed, groups, strict=True):
            keys &= ~torch.isin(word_of, word_of[list(group)])
    queries = torch.tensor(sorted({n for group in groups for n in group}), dtype=torch.long)
    row_of = {n: at for at, n in enumerate(queries.tolist())}
    result: list[list[SpecificWeight]] = []
    for layer in kept_numbers(trace.attention) if layers is None else layers:
        weights = weights_at_hand([trace.attention[layer]])
        no_head = head is not None and head >= weights.shape[0]
        if weights.shape[2] != len(tokens) or not len(queries) or no_head:  # keys aren't the text's tokens
            result.append([])
            continue
        rows, expected, beyond = row_divergences(weights, queries)
        beyond, first = (beyond, 0) if head is None else (beyond[head : head + 1], head)
        best = []
        for group, keys in zip(groups, allowed, strict=True):
            at = [row_of[n] for n in group]
            divergence = beyond[:, at].mean(1).masked_fill_(~keys, -torch.inf)
            h, j = divmod(int(divergence.argmax()), len(tokens))
            if divergence[h, j] > 0:
                weight, usual = (float(values[first + h, at, j].mean()) for values in (rows, expected))
                largest = float(divergence[h, j])
                best.append(SpecificWeight(layer, first + h, tuple(group), j, weight, usual, largest))
        result.append(sorted(best, key=lambda weight: -weight.divergence))
    return result


def word_links(
    trace: Trace, words: Sequence[Sequence[int]], sinks: Collection[int] = (), layers: Sequence[int] | None = None
) -> list[WordLink | None]:
    """Find each word's weight on another word's token with the largest divergence, over all heads.

    words: the tokens of each. sinks: the numbers of the tokens that are attention sinks. layers: default: all. None if
    no divergence is 0.25 nats or more. Of equal divergences, the first layer's is used.
    """
    best: dict[tuple[int, ...], SpecificWeight] = {}
    for layer in specific_weights(trace, words, sinks, layers=layers, words_alone=True):
        for w in layer:
            if w.queries not in best or w.divergence > best[w.queries].divergence:
                best[w.queries] = w
    links = {
        queries: WordLink(w.layer, w.head, w.key, trace.tokens[w.key].text, w.weight, w.expected)
        for queries, w in best.items() if w.divergence >= DISTINCTIVE
    }  # fmt: skip
    return [links.get(tuple(word)) for word in words]


def runs_of_layers(attention: Any, layers: Iterable[int]) -> list[list[int]]:
    """Group layers to read together: a single layer, or several of one shape with at most 2^22 weights in total."""
    runs: list[list[int]] = []
    for layer in layers:
        shape, before = attention[layer].shape, runs[-1] if runs else []
        if before and shape == attention[before[0]].shape and (len(before) + 1) * math.prod(shape) <= SMALL:
            before.append(layer)
        else:
            runs.append([layer])
    return runs


def weights_at_hand(maps: Sequence[AttentionMap]) -> AttentionMap | Float[Tensor, "H L S"]:
    """Return the weights of all heads of several layers as one tensor, for faster reading, or a large map unchanged."""
    in_double = maps[0].given is None and dtype_of(maps[0].query, maps[0].key) == torch.float64
    if sum(math.prod(weights.shape) for weights in maps) > (MAX_KEPT if in_double else SMALL):
        return maps[0]
    return maps[0].dense().cpu() if len(maps) == 1 else torch.cat([weights.dense().cpu() for weights in maps])


def divergences(weights: AttentionMap | Float[Tensor, "H L S"], pairs: Int[Tensor, "3 n"]) -> Float[Tensor, "3 n"]:
    """Compute the weight, expected weight and divergence (in nats) of query-key pairs, each with its head."""
    _, length, size = weights.shape
    if isinstance(weights, AttentionMap) and length > SAMPLED and weights.given is None and weights.rule.only_band:
        return _divergences_of_large_map(weights, pairs)
    head, query, key = pairs
    shifts = torch.tensor([0, *NEAREST])
    queries, keys = query[:, None] + shifts, key[:, None] + shifts  # (n, 9): each pair and its neighbours
    rows, row, column = weights, queries.clamp(0, length - 1), keys.clamp(0, size - 1)
    inside = torch.from_numpy((row.numpy() == queries.numpy()) & (column.numpy() == keys.numpy()))
    if isinstance(weights, AttentionMap):
        distinct = row.unique()
        rows, row = weights[:, distinct].cpu(), torch.searchsorted(distinct, row)
    values = rows[head[:, None], row, column].double() * inside
    weight, neighbours = values[:, 0], values[:, 1:]
    sample, by_distance, by_key = _sampled_sums(weights)
    removed = torch.stack([weight, _larger_than(weight, 0).double()])
    removed = removed if len(sample) == length else removed * torch.isin(query, sample)
    baselines = [
        _mean_or_0(by_distance[:, head, key - query + length - 1] - removed),
        neighbours.sum(1) / _larger_than(neighbours, 0).sum(1).clamp(min=1),
        _mean_or_0(by_key[:, head, key] - removed),
        1 / _larger_than(rows[head, row[:, 0]], 0).sum(-1).clamp(min=1),
    ]
    expected = torch.stack(baselines).amax(0)
    return torch.stack([weight, expected, torch.xlogy(weight, weight) - torch.xlogy(weight, expected)])


def _divergences_of_large_map(weights: AttentionMap, pairs: Int[Tensor, "3 n"]) -> Float[Tensor, "3 n"]:
    """Compute `divergences` from few weights. Each is its row's largest weight · exp(score - largest score)."""
    heads, length, size = weights.shape
    largest, at = (tensor[..., 0].cpu() for tensor in weights.top(1))  # (H, L)
    mask, softcap = weights.rule.mask or Mask(), weights.rule.softcap
    low, high = -length if mask.low is None else mask.low, size if mask.high is None else mask.high
    sample, result = torch.arange(min(length, SAMPLED)), torch.zeros(3, pairs.shape[1], dtype=torch.float64)
    sample = sample * length // len(sample)
    for head in pairs[0].unique().tolist():
        q, k = (x[0, head * x.shape[1] // heads].cpu().double() for x in (weights.query, weights.key))

        def scores(rows: Tensor, cols: Tensor, q: Tensor = q, k: Tensor = k) -> Tensor:
            product = torch.einsum("...d,...d->...", q[rows], k[cols]) * weights.rule.scale
            return product if softcap is None else softcap * torch.tanh(product / softcap)

        base = scores(torch.arange(length), at[head].clamp(min=0))

        def read(rows: Tensor, cols: Tensor, head: int = head, scores: Any = scores, base: Tensor = base) -> Tensor:
            shift, inside = cols - rows, (rows >= 0) & (rows < length) & (cols >= 0) & (cols < size)
            rows, cols = rows.clamp(0, length - 1), cols.clamp(0, size - 1)
            values = (largest[head][rows] * (scores(rows, cols) - base[rows]).exp()).to(weights.dtype).double()
            return torch.where(inside & (shift >= low) & (shift <= high), values, 0.0)  # exp may be inf at masked keys

        query, key = pairs[1:, pairs[0] == head][..., None]
        rows, is_other = weights[head, query[:, 0]].cpu(), sample != query
        weight, baselines = rows.gather(1, key)[:, 0].double(), [1 / (rows > 0).sum(-1).clamp(min=1)]
        for values in (
            read(sample[None], sample + key - query) * is_other,
            read(query + torch.tensor(NEAREST), key + torch.tensor(NEAREST)),
            read(sample[None], key) * is_other,
        ):
            baselines.append(values.sum(1) / (values > 0).sum(1).clamp(min=1))
        expected = torch.stack(baselines).amax(0)
        result[:, pairs[0] == head] = torch.stack(
            [weight, expected, torch.xlogy(weight, weight) - torch.xlogy(weight, expected)]
        )
    return result


def divergence_maps(
    tokens: Sequence[Token], attention: Any, sinks: Collection[int], layers: Sequence[int], heads: Sequence[int]
) -> Iterator[DivergenceMap]:
    """Yield each layer's weights of a short text, and their divergences, 0 unless the tokens are of two words.

    attention: each layer's weights. sinks: the numbers of the tokens that are attention sinks. heads: the divergences
    of all other heads are 0.
    """
    asking = [word for word in words(tokens) if not tokens[word[0]].special and not set(word) <= set(sinks)]
    allowed = torch.zeros(len(tokens), len(tokens), dtype=torch.bool)
    for word, keys in zip(asking, keys_of_other_words(tokens, asking, sinks), strict=True):
        allowed[list(word)] = keys
    queries = torch.arange(len(allowed))
    for run in runs_of_layers(attention, layers):
        weights, count = weights_at_hand([attention[layer] for layer in run]), attention[run[0]].shape[0]
        rows, _, beyond = row_divergences(weights, queries)
        divergence = beyond * allowed
        divergence[[h for h in range(len(divergence)) if h % count not in heads]] = 0
        divergence.nan_to_num_(0)  # a NaN would hide other layers' links
        yield from zip(run, rows.split(count), divergence.split(count), strict=True)


def distinctive_pairs(maps: Iterable[DivergenceMap]) -> list[tuple[int, int, int, int, float, float, float]]:
    """Find the head with the largest divergence for each pair of tokens of two words.

    maps: from `divergence_maps`. Returns (query, key, layer, head, weight, expected, divergence) of pairs with a
    divergence of at least 0.25 nats, the largest first.
    """
    pairs: dict[tuple[int, int], tuple[int, int, int, int, float, float, float]] = {}
    for layer, weights, divergence in maps:
        best, head = divergence.max(0)
        for q, k in (best >= DISTINCTIVE).nonzero().tolist():
            if float(best[q, k]) > pairs.get((q, k), (0.0,))[-1]:
                h, beyond = int(head[q, k]), float(best[q, k])
                weight = float(weights[h, q, k])
                pairs[q, k] = q, k, layer, h, weight, expected_weight(weight, beyond), beyond
    return sorted(pairs.values(), key=lambda pair: -pair[-1])


def largest_divergences(
    divergences: Sequence[Float[Tensor, "H L L"]],
) -> tuple[Float[Tensor, "n H 2 L"], Int[Tensor, "n H 2 L"]]:
    """Find each token's most distinctive link as a query, and as a key, in every head of some layers.

    Returns the divergences, and the tokens at the other ends.
    """
    maxima = [torch.stack([layer, layer.mT], 1).max(-1) for layer in divergences]
    return torch.stack([best.values for best in maxima]), torch.stack([best.indices for best in maxima])


def row_divergences(
    weights: AttentionMap | Float[Tensor, "H L S"], queries: Int[Tensor, " q"]
) -> tuple[Float[Tensor, "H q S"], Float[Tensor, "H q S"], Float[Tensor, "H q S"]]:
    """Compute queries' weights, their expected weights, and the divergences in nats.

    Means over other queries include only weights above 0, and are 0 without such weights. For more than 512 queries,
    512 evenly spaced queries are read.
    """
    heads, length, size = weights.shape
    sample, sums, cols = _sampled_sums(weights)
    positions = (queries[:, None] + torch.tensor([0, *NEAREST])).clamp(0, length - 1)  # (q, 9)
    if isinstance(weights, AttentionMap) and len(queries) <= AT_ONCE:  # a single read is faster than nine
        needed, positions = positions.unique(return_inverse=True)
        weights = weights[:, needed]
    rows = weights[:, positions[:, 0]].cpu().double()
    removed = torch.stack([rows, _larger_than(rows, 0).double()])
    removed = removed if len(sample) == length else removed * torch.isin(queries, sample).double()[:, None]
    by_distance = _mean_or_0(sums.unfold(2, size, 1)[:, :, length - 1 - queries] - removed)
    total = torch.zeros(heads, len(queries), size, dtype=torch.float64)  # of the nearest queries
    many = torch.zeros_like(total, dtype=torch.uint8)
    for shift, near in zip(NEAREST, positions[:, 1:].T, strict=True):
        neighbours, near_weights = queries + shift, weights[:, near].cpu().double()
        near_weights[:, (neighbours < 0) | (neighbours >= length)] = 0
        first, last = max(0, -shift), min(size, size - shift)  # keys whose shifted key exists
        if first < last:
            shifted = near_weights[:, :, first + shift : last + shift]
            total[:, :, first:last] += shifted
            many[:, :, first:last] += _larger_than(shifted, 0).byte()
    by_distance, by_key = torch.maximum(by_distance, total / many.clamp(min=1)), _mean_or_0(cols[:, :, None] - removed)
    equal = 1 / _larger_than(rows, 0).sum(-1, keepdim=True).clamp(min=1)
    expected = torch.maximum(torch.maximum(by_distance, by_key), equal)
    return rows, expected, torch.xlogy(rows, rows) - torch.xlogy(rows, expected)


def expected_weight(weight: float, divergence: float) -> float:
    """Return the expected weight of a weight with this divergence."""
    return weight * math.exp(-divergence / weight) if weight else 0.0


def _sampled_sums(
    weights: AttentionMap | Float[Tensor, "H L S"],
) -> tuple[Int[Tensor, " n"], Float[Tensor, "2 H d"], Float[Tensor, "2 H S"]]:
    """Return up to 512 queries, and the sums and counts of their positive weights by distance and by key."""
    heads, length, size = weights.shape
    count = min(length, SAMPLED)
    sample = torch.arange(count) * length // count
    by_distance = torch.zeros(2, heads, length + size - 1, dtype=torch.float64)
    by_key = torch.zeros(2, heads, size, dtype=torch.float64)
    for start in range(0, count, AT_ONCE):  # so few rows stay in the cache
        block = sample[start : start + AT_ONCE]
        block_weights = weights[:, block if count < length else slice(start, start + AT_ONCE)].cpu()
        at = (torch.arange(size) - block[:, None] + length - 1).flatten()
        together = max(1, AT_ONCE * 512 // max(1, at.numel()))  # heads
        for head in range(0, heads, together):
            rows = block_weights[head : head + together].double()
            by_key[0, head : head + together] += rows.sum(1)
            by_distance[0, head : head + together].scatter_add_(1, at.expand(len(rows), -1), rows.flatten(1))
        positive = block_weights.numpy() > 0  # usually the same in all heads
        counts = torch.from_numpy(positive[:1] if (positive == positive[:1]).all() else positive).double()
        by_key[1] += counts.sum(1)
        by_distance[1] += by_distance.new_zeros(len(counts), by_distance.shape[2]).index_add_(1, at, counts.flatten(1))
    return sample, by_distance, by_key


def _mean_or_0(sums: Float[Tensor, "2 *n"]) -> Float[Tensor, "*n"]:
    """Divide sums of weights by their counts, with 0 for counts of 0."""
    total, many = sums
    return torch.where(_larger_than(many, 0.5), total / many.clamp(min=1), 0.0).clamp(min=0)


def _larger_than(numbers: Shaped[Tensor, "*n"], bound: int | float) -> Bool[Tensor, "*n"]:
    """Return which numbers are larger than `bound`. NumPy does this in a tenth of PyTorch's time."""
    return torch.from_numpy(numpy.asarray(numbers.numpy() > bound))


def word_numbers(text: str, tokens: Sequence[Token]) -> list[int]:
    """Return the word number of each token. Tokens without a blank between them belong to one word."""
    numbers, number, end = [], -1, -1
    for token in tokens:
        if number < 0 or token.special or token.start > end or text[token.start : token.start + 1].isspace():
            number += 1
        numbers.append(number)
        end = -1 if token.special else token.end
    return numbers


def most_specific_weight(layers: Sequence[Sequence[SpecificWeight]]) -> SpecificWeight | None:
    """Choose the most informative layer and head of a text, and return its weight with the largest divergence.

    The layer has the largest sum of divergences over the text's words, and the head the largest part of this sum,
    because a single large weight may be due to chance. layers: as `specific_weights` returns them. Returns None if they
    are empty.
    """
    chosen = [weight for weights in layers for weight in weights]
    for name in ("layer", "head"):
        totals = defaultdict[int, float](float)  # of equal totals, the first head wins
        for weight in chosen:
            totals[getattr(weight, name)] += weight.divergence
        best = max(totals, key=lambda number: totals[number], default=None)
        chosen = [weight for weight in chosen if getattr(weight, name) == best]
    return max(chosen, key=lambda weight: weight.divergence, default=None)


def text_choice(layer: int, head: int | None = None) -> str:
    """Explain in a sentence why a layer was chosen for a text, for all heads or for one head."""
    subject = "its attention" if head is None else f"head {head} there"
    usual = "what the distance alone or the attended token alone predicts"
    return f"Layer {layer} was chosen because {subject} differs most from {usual}."
