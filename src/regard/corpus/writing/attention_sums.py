"""Sum up what attention did in a batch of windows: for every token over the heads, for every head over the tokens.

One layer's weights (B, H, L, L) exist at a time. Definitions are those of `AttentionMap` and of
`regard.explain.weights.head_scores`; what a head's scores are sums over are the queries that are counted: tokens that
are not special, not the first of their window, and that no other window has further from its edges.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

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
    """Sum up one layer's attention."""
    # numba is loaded, and the passes compiled, when they are first needed
    from regard.corpus.writing import attention_passes

    own = weights.scores[...].float().cpu().numpy()  # (B, H, L, L): scores, and weights from the pass on
    batch, heads, length, _ = own.shape
    sinks = np.full(heads, -np.inf, np.float32)
    if weights.rule.sinks is not None:
        sinks = weights.rule.sinks.float().cpu().numpy()
    entropies, received = np.empty((batch, heads, length), np.float32), np.zeros((batch, length))
    away, marked = np.zeros((batch, length), np.float32), np.zeros((batch, length), np.float32)
    sums = np.zeros((heads, len(SUMS)))
    attention_passes.add_layer_store_sums(
        own, sinks, special.astype(np.float32), counted, entropies, received, away, marked, sums
    )
    attention_passes.add_repeats_store_sums(own, ids, counted, sums)
    sums[:, _AT["entropy"]] = (entropies * counted[:, None]).sum((0, 2), dtype=np.float64)
    sums[:, _AT["queries"]] = counted.sum()
    sums[:, _AT["nexts"]] = counted[:, :-1].sum()
    sums[:, [_AT["duplicates"], _AT["inductions"]]] = attention_passes.count_repeats_for_store(ids, counted)
    gets = (received / heads).astype(np.float32)
    return LayerSums(entropies.mean(1), gets, away / heads, marked / heads, sums, own.mean(1) if mean else None)


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
