"""Walk over the weights of a batch once: the passes that Numba compiles for `regard.corpus.attention_sums`."""

import numpy as np

from regard.attention.kernels.cpu.vector import compiled

# Columns of a head's sums: the places of these names in `attention_sums.SUMS`.
_DISTANCE, _PREVIOUS, _NEXT, _SAME, _SPECIAL, _FIRST, _DUPLICATE, _INDUCTION = 2, 3, 4, 6, 7, 8, 9, 11


@compiled()
def add_layer(weights, special, counted, away, marked, sums):
    """Add distances and special shares of every query to away and marked (B, L), and the heads' sums."""
    batch, heads, length, _ = weights.shape
    for b in range(batch):
        for h in range(heads):
            for i in range(length):
                row, marks = weights[b, h, i], special[b]
                distance, share, total = np.float32(0.0), np.float32(0.0), np.float32(0.0)
                for j in range(i):
                    distance += row[j] * np.float32(i - j)
                for j in range(i + 1, length):
                    distance += row[j] * np.float32(j - i)
                for j in range(length):
                    share += row[j] * marks[j]
                    total += row[j]
                if total > 0:  # what a sink takes has no position
                    distance /= total
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
def add_repeats(weights, ids, counted, sums):
    """Add what counted queries give to earlier tokens of their own id, and to those behind such a token."""
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
def count_repeats(ids, counted):
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
