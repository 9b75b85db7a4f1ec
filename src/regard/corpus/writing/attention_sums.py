"""Sum attention statistics over a batch of windows: per token over the heads, and per head over the tokens.

Only a single layer's weights (B, H, L, L) are in memory at a time. Definitions are those of `AttentionMap` and
`regard.explain.weights.head_scores`. A head's scores are sums over the included queries: all non-special tokens except
the first of a window. A token in several windows is included where it is furthest from the window's edges.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from regard.attention.attention_map import AttentionMap
from regard.attention.kernels.cpu.vector import LOG2_E, compiled, exp2, larger
from regard.corpus.schema import SUMS

# Columns of a head's sums, as indices into `SUMS`.
_DISTANCE, _PREVIOUS, _NEXT, _SAME, _SPECIAL, _FIRST, _DUPLICATE, _INDUCTION = 2, 3, 4, 6, 7, 8, 9, 11

LEAST = np.float32(-200.0)  # score minus its row's maximum; below this, a weight is 0 in float32
_AT = {name: number for number, name in enumerate(SUMS)}


@compiled()
def add_layer_store_sums(scores, sinks, special, counted, entropy, received, away, marked, sums):
    """Replace a layer's scores by weights in place, and add up entropies, distances and other statistics.

    The entropy is log(sum of exponentials) plus the mean of (maximum - score). Neither term is negative.
    """
    batch, heads, length, _ = scores.shape
    for b in range(batch):
        marks, incoming = special[b], received[b]
        for h in range(heads):
            for i in range(length):
                row, largest = scores[b, h, i], sinks[h]
                for j in range(length):
                    largest = larger(largest, row[j])
                distance, share, spread = np.float32(0.0), np.float32(0.0), np.float32(0.0)
                denominator, total = np.float32(0.0), np.float32(0.0)
                if largest == -np.inf:  # every key is masked
                    for j in range(length):
                        row[j] = np.float32(0.0)
                    entropy[b, h, i] = np.float32(0.0)
                else:
                    for j in range(length):
                        shifted = row[j] - largest
                        shifted = shifted if shifted > LEAST else LEAST
                        exponential = exp2(shifted * LOG2_E)
                        spread += exponential * shifted
                        total += exponential
                        row[j] = exponential
                    shifted = sinks[h] - largest
                    shifted = shifted if shifted > LEAST else LEAST
                    exponential = exp2(shifted * LOG2_E)
                    spread += exponential * shifted
                    denominator = total + exponential
                    entropy[b, h, i] = np.log(denominator) - spread / denominator
                    part = np.float32(1.0) / denominator
                    for j in range(length):
                        weight = row[j] * part
                        row[j] = weight
                        share += weight * marks[j]
                        distance += weight * np.float32(abs(i - j))
                        incoming[j] += weight
                    if total > 0:  # a sink has no position
                        distance *= denominator / total
                away[b, i] += distance
                marked[b, i] += share
                if counted[b, i]:
                    head_sums = sums[h]
                    head_sums[_DISTANCE] += distance
                    head_sums[_SPECIAL] += share
                    head_sums[_SAME] += row[i]
                    head_sums[_FIRST] += row[0]
                    if i > 0:
                        head_sums[_PREVIOUS] += row[i - 1]
                    if i + 1 < length:
                        head_sums[_NEXT] += row[i + 1]


@compiled()
def add_repeats_store_sums(weights, ids, counted, sums):
    """Add up attention to earlier tokens with the query's id (duplicate), and to the tokens after these (induction)."""
    batch, heads, length, _ = weights.shape
    for b in range(batch):
        for i in range(length):
            if not counted[b, i]:
                continue
            for j in range(i):
                if ids[b, j] == ids[b, i]:
                    for h in range(heads):
                        sums[h, _DUPLICATE] += weights[b, h, i, j]
                        if j + 1 < i:
                            sums[h, _INDUCTION] += weights[b, h, i, j + 1]


@compiled()
def count_repeats_for_store(ids, counted):
    """Count included queries whose id occurred earlier, and those of them with a token in between."""
    batch, length = ids.shape
    duplicates, inductions = 0, 0
    for b in range(batch):
        for i in range(length):
            if counted[b, i]:
                for j in range(i):
                    if ids[b, j] == ids[b, i]:
                        duplicates += 1
                        inductions += j + 1 < i
                        break
    return duplicates, inductions


@dataclass(frozen=True, eq=False)
class LayerSums:
    """The attention statistics of a layer. entropy, received, distance, special (B, L): means over the heads.

    heads: each head's sums (H, len(SUMS)) in float64. mean: weights averaged over the heads (B, L, L), if requested.
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
    """Return a layer's attention statistics for a batch of windows, per token and per head."""
    scores = weights.scores[...].float().cpu().numpy()  # (B, H, L, L), replaced by weights below
    batch, heads, length, _ = scores.shape
    sinks = np.full(heads, -np.inf, np.float32)
    if weights.rule.sinks is not None:
        sinks = weights.rule.sinks.float().cpu().numpy()
    entropies, received = np.empty((batch, heads, length), np.float32), np.zeros((batch, length))
    away, marked = np.zeros((batch, length), np.float32), np.zeros((batch, length), np.float32)
    sums = np.zeros((heads, len(SUMS)))
    add_layer_store_sums(scores, sinks, special.astype(np.float32), counted, entropies, received, away, marked, sums)
    add_repeats_store_sums(scores, ids, counted, sums)
    sums[:, _AT["entropy"]] = (entropies * counted[:, None]).sum((0, 2), dtype=np.float64)
    sums[:, _AT["queries"]] = counted.sum()
    sums[:, _AT["nexts"]] = counted[:, :-1].sum()
    sums[:, [_AT["duplicates"], _AT["inductions"]]] = count_repeats_for_store(ids, counted)
    incoming = (received / heads).astype(np.float32)
    return LayerSums(entropies.mean(1), incoming, away / heads, marked / heads, sums, scores.mean(1) if mean else None)


def largest_weights_to_store(
    mean: Float[np.ndarray, "k L"], top: int
) -> tuple[Int[np.ndarray, "k T"], Float[np.ndarray, "k T"]]:
    """Return each row's `top` largest weights and their keys. Among equal weights, the smaller key comes first.

    If there are fewer keys than `top`, the missing keys are -1 and their weights 0.
    """
    keys = np.argsort(-mean, axis=1, kind="stable")[:, :top]
    weights = np.take_along_axis(mean, keys, 1)
    padding = ((0, 0), (0, top - keys.shape[1]))
    return np.pad(keys, padding, constant_values=-1), np.pad(weights, padding)
