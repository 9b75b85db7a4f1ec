"""Walk over the weights of a batch once: the passes that Numba compiles for `regard.corpus.writing.attention_sums`."""

import numpy as np

from regard.attention.kernels.cpu.vector import LOG2_E, compiled, exp2, larger

# Columns of a head's sums: the places of these names in `attention_sums.SUMS`.
_DISTANCE, _PREVIOUS, _NEXT, _SAME, _SPECIAL, _FIRST, _DUPLICATE, _INDUCTION = 2, 3, 4, 6, 7, 8, 9, 11

LEAST = np.float32(-200.0)  # of a score below its row's highest: the weight of anything lower is 0 in float32


@compiled()
def add_layer_store_sums(scores, sinks, special, counted, entropy, received, away, marked, sums):
    """Turn scores into weights in place, and write and add up what they are read for.

    The entropy is log(sum of exponentials) plus the mean of what each score is below the highest: both of one sign.
    """
    batch, heads, length, _ = scores.shape
    for b in range(batch):
        marks, got = special[b], received[b]
        for h in range(heads):
            for i in range(length):
                row, most = scores[b, h, i], sinks[h]
                for j in range(length):
                    most = larger(most, row[j])
                distance, share, spread = np.float32(0.0), np.float32(0.0), np.float32(0.0)
                whole, total = np.float32(0.0), np.float32(0.0)
                if most == -np.inf:  # it may look at nothing
                    for j in range(length):
                        row[j] = np.float32(0.0)
                    entropy[b, h, i] = np.float32(0.0)
                else:
                    for j in range(length):
                        below = row[j] - most
                        below = below if below > LEAST else LEAST
                        exponential = exp2(below * LOG2_E)
                        spread += exponential * below
                        total += exponential
                        row[j] = exponential
                    below = sinks[h] - most
                    below = below if below > LEAST else LEAST
                    exponential = exp2(below * LOG2_E)
                    spread += exponential * below
                    whole = total + exponential
                    entropy[b, h, i] = np.log(whole) - spread / whole
                    part = np.float32(1.0) / whole
                    for j in range(length):
                        weight = row[j] * part
                        row[j] = weight
                        share += weight * marks[j]
                        distance += weight * np.float32(abs(i - j))
                        got[j] += weight
                    if total > 0:  # what a sink takes has no position
                        distance *= whole / total
                away[b, i] += distance
                marked[b, i] += share
                if counted[b, i]:
                    own = sums[h]
                    own[_DISTANCE] += distance
                    own[_SPECIAL] += share
                    own[_SAME] += row[i]
                    own[_FIRST] += row[0]
                    if i > 0:
                        own[_PREVIOUS] += row[i - 1]
                    if i + 1 < length:
                        own[_NEXT] += row[i + 1]


@compiled()
def add_repeats_store_sums(weights, ids, counted, sums):
    """Add what queries give to earlier tokens of their own id, and to those behind such a token."""
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
    """Count the counted queries that have an earlier token of their id, and one that has a token between."""
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
