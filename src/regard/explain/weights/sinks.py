"""Find attention sinks: tokens that receive attention regardless of their meaning.

    excess = (share - equal) / (1 - equal),  a sink if excess ≥ 0.2 in more than half of all heads

share is the mean weight of a token from the other tokens that see it. equal is the same mean if they all attended
evenly. After Xiao et al. 2023, "Efficient Streaming Language Models with Attention Sinks".

A softmax always distributes all of its weight. If a head finds nothing relevant, it attends to a token that every query
can see, usually the first token. A weight of 0.94 on "Anna" is then due to Anna's position, not to Anna. Special
tokens, which the tokenizer marks, also receive such weight. This module finds the others.

In texts of any length, the excess is 0 for an equal share and 1 for the whole weight. A token is a sink if its excess
is at least EXCESS in more than half of all heads of all layers. For the first token of a causal model, FIRST is enough:
every token sees it, so its share falls as texts grow. SEEN_BY tokens must see any other token, because a mean over
fewer is noise.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.text.tokens import Token
from regard.trace.layers import kept_numbers
from regard.trace.trace import PairTrace, Trace

EXCESS = 0.2
FIRST = 0.1
SEEN_BY = 4
HIDDEN = -1e30  # a bias of this or less masks a key
BAND = 1 << 22  # cells of a map or mask read at once


@dataclass(frozen=True)
class Sink:
    """A token that is an attention sink. share: as defined above, mean over heads. heads: the fraction of all heads in
    which its excess is large enough."""

    token: int
    text: str
    share: float
    heads: float


def sinks(trace: Trace) -> list[Sink]:
    """Find the attention sinks of a text, without special tokens, from all layers in the trace."""
    return sinks_of([trace.attention[n] for n in kept_numbers(trace.attention)], trace.tokens)


def cross_sinks(pair: PairTrace) -> list[Sink]:
    """Find the source tokens that are sinks of the decoder's cross-attention, without special tokens."""
    cross = pair.decoder.cross
    return sinks_of([cross[n] for n in kept_numbers(cross)], pair.encoder.tokens, itself=False)


def sinks_of(
    maps: Sequence[AttentionMap],
    tokens: Sequence[Token],
    *,
    itself: bool = True,
    received: Sequence[Float[Tensor, "_ S"]] | None = None,
) -> list[Sink]:
    """Find the sinks among the keys of some maps (H, L, S). itself: whether queries and keys are one text.

    received: the maps' `received()`, if already known. Maps whose keys aren't these tokens are skipped.
    """
    size = len(tokens)
    received_sums = [None] * len(maps) if received is None else received
    of_text = [
        (weights, sums)
        for weights, sums in zip(maps, received_sums, strict=True)
        if weights.shape[2] == size and (not itself or weights.shape[1] == size)
    ]
    if not of_text:
        return []
    causal = itself and all(float(weights[:, 0][:, 1:].sum()) == 0 for weights, _ in of_text)
    threshold = torch.full((size,), EXCESS, dtype=torch.float64)
    threshold[0] = FIRST if causal else EXCESS
    candidates = torch.tensor([not token.special for token in tokens])
    seen_by, above, parts = torch.zeros(size, dtype=torch.float64), [], []
    for weights, sums in of_text:
        seen, equal = equal_shares(weights, itself)
        seen_by = torch.maximum(seen_by, seen.amin(0))
        queries = seen.clamp(min=1)  # (1 or H, S): the other tokens that see a key
        if sums is None:
            tiny = math.prod(weights.shape) <= BAND  # then reading the matrix is faster
            sums = torch.stack([head.double().sum(0) for head in weights.dense().cpu()]) if tiny else weights.received()
        sums, equal = sums.cpu().double(), equal / queries
        # `sums` includes a token's weight on itself. Without it, no excess is larger, so few tokens need to be read
        # below.
        above.append((sums / queries - equal) / (1 - equal).clamp(min=1e-9) >= threshold)
        parts.append((weights, sums, queries, equal))
    enough = seen_by >= SEEN_BY
    enough[0] |= causal and bool(seen_by[0] > 0)
    results = []
    for token in (candidates & enough & (torch.cat(above).double().mean(0) > 0.5)).nonzero()[:, 0].tolist():
        shares, excess = [], []
        for weights, sums, queries, equal in parts:
            itself_too = weights[:, token, token].cpu().double() if itself else 0.0
            shares.append((sums[:, token] - itself_too) / queries[:, token])
            excess.append((shares[-1] - equal[:, token]) / (1 - equal[:, token]).clamp(min=1e-9))
        heads = float((torch.cat(excess) >= threshold[token]).double().mean())
        if heads > 0.5:
            results.append(Sink(token, tokens[token].text, float(torch.cat(shares).mean()), heads))
    return results


def equal_shares(weights: AttentionMap, itself: bool) -> tuple[Float[Tensor, "h S"], Float[Tensor, "h S"]]:
    """Count the queries that see each key, and sum the weights that the key would receive if they attended evenly.

    h is 1 if all heads see the same keys. itself: leave out a query's weight on its own token.
    """
    heads, length, size = weights.shape
    own_weights = weights.given  # keys without any weight aren't seen
    bias, mask = (weights.rule.bias, weights.rule.mask) if own_weights is None else (own_weights.log(), None)
    if bias is None and (mask is None or mask.only_band):
        low, high = (None, None) if mask is None else (mask.low, mask.high)
        seen, equal = _band_shares(low, high, length, size, itself)
        return seen[None], equal[None]
    by_head = (bias is not None and bias.shape[1] > 1) or (mask is not None and mask.by_head)
    rows = heads if by_head else 1
    seen, equal = torch.zeros(rows, size, dtype=torch.float64), torch.zeros(rows, size, dtype=torch.float64)
    one, columns, step = slice(0, 1), slice(0, size), max(1, BAND // size)
    for head in range(rows):
        for start in range(0, length, step):
            band = slice(start, min(start + step, length))
            allowed = torch.ones(band.stop - start, size, dtype=torch.bool)
            if mask is not None:
                tile = mask.tile(one, slice(head, head + 1), band, columns, weights.device)
                allowed = allowed if tile is None else allowed & tile[0, 0].cpu()
            if bias is not None:
                part = bias[:1, head : head + 1] if bias.shape[1] > 1 else bias[:1]
                part = part[:, :, band] if part.shape[2] > 1 else part
                allowed = allowed & (part[0, 0] > HIDDEN).cpu()
            even = allowed / allowed.sum(1, keepdim=True).clamp(min=1).double()
            if itself:
                diagonal = torch.arange(start, band.stop)
                allowed[diagonal - start, diagonal] = False
                even[diagonal - start, diagonal] = 0
            seen[head] += allowed.sum(0)
            equal[head] += even.sum(0)
    return seen, equal


@lru_cache(maxsize=4)  # the same in all layers of a text
def _band_shares(low: int | None, high: int | None, length: int, size: int, itself: bool) -> tuple[Tensor, Tensor]:
    """Compute `equal_shares`, each (S,), if query i sees keys i + low to i + high, from running sums.

    The results are cached, so don't write to them.
    """
    query = torch.arange(length)
    first = torch.zeros(length, dtype=torch.long) if low is None else (query + low).clamp(0, size)
    last = torch.full((length,), size) if high is None else (query + high + 1).clamp(0, size)
    last = torch.maximum(first, last)
    shares = []
    for part in (torch.ones(length, dtype=torch.float64), 1 / (last - first).clamp(min=1).double()):
        change = torch.zeros(size + 1, dtype=torch.float64)
        change.index_add_(0, first, part).index_add_(0, last, -part)
        total = change.cumsum(0)[:size]
        if itself:
            total = total - torch.where((first <= query) & (query < last), part, 0.0)
        shares.append(total)
    return shares[0].round(), shares[1].clamp(min=0)
