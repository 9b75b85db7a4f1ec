"""Sum up what attention did in a batch of windows: for every token over the heads, for every head over the tokens.

One layer's weights (B, H, L, L) exist at a time. Definitions are those of `AttentionMap` and of
`regard.explain.weights.head_scores`; what a head's scores are sums over are the queries that are counted: tokens that
are not special, not the first of their window, and that no other window has further from its edges.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.corpus.schema import SUMS

_AT = {name: number for number, name in enumerate(SUMS)}


@dataclass(frozen=True, eq=False)
class LayerSums:
    """What one layer did. Of each token, means over the heads: entropy, received, distance, special (B, L).

    heads: (H, len(SUMS)) in float64. mean: the mean of the heads' weights (B, L, L), None where it is not wanted.
    """

    entropy: Float[np.ndarray, "B L"]
    received: Float[np.ndarray, "B L"]
    distance: Float[np.ndarray, "B L"]
    special: Float[np.ndarray, "B L"]
    heads: Float[np.ndarray, "H sums"]
    mean: Float[np.ndarray, "B L L"] | None


def sum_layer(
    weights: AttentionMap,
    ids: Int[np.ndarray, "B L"],
    special: Bool[np.ndarray, "B L"],
    counted: Bool[np.ndarray, "B L"],
    *,
    mean: bool = False,
) -> LayerSums:
    """Sum up one layer's attention.

    Args:
        weights: of all windows of the batch.
        ids: of their tokens.
        special: which of them are special.
        counted: the queries that the heads' sums are over.
        mean: whether the mean of the heads' weights is wanted, too.
    """
    # numba is loaded, and the passes compiled, when they are first needed
    from regard.corpus.writing import attention_passes

    scores = weights.scores[...].float()  # (B, H, L, L)
    dense = _weights_of_layer_scores(scores, weights)
    own, highest = dense.cpu().numpy(), scores.amax(-1).cpu().numpy()
    entropies = np.empty_like(highest)
    batch, heads, length = entropies.shape
    received = own.sum(2).mean(1)
    away, marked = np.zeros((batch, length), np.float32), np.zeros((batch, length), np.float32)
    sums = np.zeros((heads, len(SUMS)))
    attention_passes.add_layer_store_sums(
        scores.cpu().numpy(), own, highest, special.astype(np.float32), counted, entropies, away, marked, sums
    )
    if weights.rule.sinks is not None:  # what a sink takes is one more outcome
        entropies += torch.special.entr(weights.sink_share.float()).cpu().numpy()
    attention_passes.add_repeats_store_sums(own, ids, counted, sums)
    sums[:, _AT["entropy"]] = (entropies * counted[:, None]).sum((0, 2), dtype=np.float64)
    sums[:, _AT["queries"]] = counted.sum()
    sums[:, _AT["nexts"]] = counted[:, :-1].sum()
    sums[:, [_AT["duplicates"], _AT["inductions"]]] = attention_passes.count_repeats_for_store(ids, counted)
    return LayerSums(entropies.mean(1), received, away / heads, marked / heads, sums, own.mean(1) if mean else None)


def _weights_of_layer_scores(scores: Float[Tensor, "B H L S"], weights: AttentionMap) -> Float[Tensor, "B H L S"]:
    """The weights of scores: each row by its own largest score, a head's sink in the denominator alone."""
    if weights.rule.sinks is not None:
        return weights.dense().float()
    found = scores.softmax(-1)
    if weights.rule.mask is not None:  # a query that may look at nothing has no weights
        found.masked_fill_((scores == -torch.inf).all(-1, keepdim=True), 0.0)
    return found


def largest_weights_to_store(
    mean: Float[np.ndarray, "k L"], top: int
) -> tuple[Int[np.ndarray, "k T"], Float[np.ndarray, "k T"]]:
    """Return the keys and the weights that are largest in some rows, the smaller key first of two alike.

    Where there are fewer keys than top the rest is -1 and 0.
    """
    keys = np.argsort(-mean, axis=1, kind="stable")[:, :top]
    weights = np.take_along_axis(mean, keys, 1)
    short = ((0, 0), (0, top - keys.shape[1]))
    return np.pad(keys, short, constant_values=-1), np.pad(weights, short)
