"""Test whether a sense has another share of one group's occurrences than of the other's, by permutations.

Of each sense the statistic is the difference of its two shares, over the standard deviation that it would have where
the groups had one share and each occurrence were drawn by itself:

    z = |c / n - d / m| / sqrt(s (1 - s) (1 / n + 1 / m)),    c of n and d of m occurrences, s = (c + d) / (n + m)

What is permuted are whole documents, or occurrences, as `change` beside it does; so z has whatever distribution the
documents give it. As several senses are asked about at once, each is compared with the largest z that any of them
reaches in a permutation (Westfall and Young 1993): where nothing differs, the chance that any sense has p ≤ α is at
most α, however many there are. Senses are clusters of both groups together, found without the groups' names.
"""

import numpy as np
from jaxtyping import Bool, Float, Int

ABSENT, PRESENT = 0.02, 0.10  # shares of a group's occurrences
ALARM = 0.05  # p from which on down a difference is more than chance
LEAST = 5  # occurrences of a sense in both groups together, from which on it is tested
NUMBERS = 1 << 22  # of a block of permutations
ROUNDING = 1e-9


def sense_share_test(
    labels: Int[np.ndarray, " R"],
    first: Bool[np.ndarray, " R"],
    units: Int[np.ndarray, " R"],
    senses: int,
    *,
    rounds: int,
    seed: int = 0,
) -> list[float | None]:
    """Compute each sense's p, corrected for their number; None of one that is not tested.

    labels: each occurrence's sense, 0 to senses - 1. first: whether it is in the first group. units: the number of what
    it changes groups with, its document's or its own; all occurrences of a unit are in one group. rounds: how many
    permutations are drawn, by seed. A sense of fewer than 5 occurrences, and one that all occurrences have, is not
    tested, nor is any where a group is empty.
    """
    _, which = np.unique(units, return_inverse=True)
    counts = np.zeros((int(which.max(initial=-1)) + 1, senses))
    np.add.at(counts, (which, labels), 1)
    totals = counts.sum(0)
    tested = np.flatnonzero((totals >= LEAST) & (totals < len(labels)))
    found: list[float | None] = [None] * senses
    if not len(tested) or first.all() or not first.any():
        return found
    in_first = np.zeros(len(counts), dtype=bool)
    in_first[which[first]] = True
    sizes, counts = counts.sum(1), counts[:, tested]
    observed = _sense_share_deviations(in_first[None], sizes, counts)[0]
    random, block, larger = np.random.default_rng(seed), max(1, NUMBERS // len(in_first)), np.zeros(len(tested))
    for begin in range(0, rounds, block):
        dealt = random.permuted(np.tile(in_first, (min(block, rounds - begin), 1)), axis=1)
        most = _sense_share_deviations(dealt, sizes, counts).max(1)
        larger += (most[:, None] >= observed - ROUNDING).sum(0)
    for place, sense in enumerate(tested.tolist()):
        found[sense] = float((1 + larger[place]) / (1 + rounds))
    return found


def _sense_share_deviations(
    first: Bool[np.ndarray, "labellings units"],
    sizes: Float[np.ndarray, " units"],
    counts: Float[np.ndarray, "units k"],
) -> Float[np.ndarray, "labellings k"]:
    """Compute z of every sense for each way to put the units into two groups, neither of them empty."""
    inside = first.astype(np.float64)
    n, own = (inside @ sizes)[:, None], inside @ counts
    total, every = sizes.sum(), counts.sum(0)
    share, m = every / total, total - n
    spread = np.sqrt(share * (1 - share) * (1 / n + 1 / m))
    apart: Float[np.ndarray, "labellings k"] = np.abs(own / n - (every - own) / m) / spread
    return apart
