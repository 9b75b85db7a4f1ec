"""Walk over the weights of a batch once: the passes that Numba compiles for `regard.corpus.writing.attention_sums`."""

import numpy as np

from regard.attention.kernels.cpu.vector import compiled

# Columns of a head's sums: the places of these names in `attention_sums.SUMS`.
_DISTANCE, _PREVIOUS, _NEXT, _SAME, _SPECIAL, _FIRST, _DUPLICATE, _INDUCTION = 2, 3, 4, 6, 7, 8, 9, 11

LEAST = np.float32(-200.0)  # of a score below its row's highest: the weight of anything lower is 0 in float32


@compiled()
def add_layer_store_sums(scores, weights, highest, special, counted, entropy, away, marked, sums):
    """Write the entropy of every row; add to the sums of tokens and of heads.

    log w = (score - highest) + log(largest weight): no logarithm but one a row, and all terms of one sign.

    Args:
        scores, weights: of a layer, (B, H, L, L).
        highest: the largest score of each row, (B, H, L).
        special: 1 at special tokens, else 0, (B, L).
        counted: whether a query counts in the sums of heads, (B, L).
        entropy: written, (B, H, L).
        away, marked: added to, (B, L): distances and special shares, summed over the heads.
        sums: added to, (H, sums).
    """
    batch, heads, length, _ = weights.shape
    for b in range(batch):
        marks = special[b]
        for h in range(heads):
            for i in range(length):
                row, score, most = weights[b, h, i], scores[b, h, i], highest[b, h, i]
                distance, share, total = np.float32(0.0), np.float32(0.0), np.float32(0.0)
                spread, nearest = np.float32(0.0), np.float32(0.0)
                for j in range(length):
                    below = score[j] - most
                    below = below if below > LEAST else LEAST
                    spread += row[j] * below
                    nearest += row[j] if score[j] == most else np.float32(0.0)
                    share += row[j] * marks[j]
                    total += row[j]
                    distance += row[j] * np.float32(abs(i - j))
                ties = 0
                for j in range(length):
                    ties += score[j] == most
                largest = nearest / np.float32(max(ties, 1))
                entropy[b, h, i] = -np.log(largest) * total - spread if largest > 0 else np.float32(0.0)
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
def add_repeats_store_sums(weights, ids, counted, sums):
    """Add what queries give to earlier tokens of their own id, and to those behind such a token.

    Args:
        weights: of a layer, (B, H, L, L).
        ids: of the tokens, (B, L).
        counted: whether a query counts, (B, L).
        sums: added to, (H, sums).
    """
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
