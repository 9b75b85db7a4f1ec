"""Measure and test whether a word's embeddings differ between two groups of its occurrences.

Average pairwise distance (APD; Periti and Tahmasebi 2024, "A Systematic Comparison of Contextualized Word Embeddings
for Lexical Semantic Change") is the mean of 1 - cosine over all pairs of an occurrence of one group and one of the
other. It grows with the spread within the groups, changed or not, so what is tested is the energy distance

    T = 2 APD - (mean of 1 - cosine within the first group) - (within the second)

pairs of an occurrence with itself left out: its mean is 0 if both groups are drawn from one population. Means of
cosines of unit vectors follow from sums, so nothing of size R × R is made, and no occurrence is left out.

The test permutes which occurrences (or whole documents) belong to which group: with p = (1 + #{T* ≥ T}) / (1 + rounds)
P(p ≤ α) ≤ α holds exactly where the labels could be exchanged (Phipson and Smyth 2010).
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from regard.corpus.asking.vectors import unit
from regard.errors import RegardError

ABSENT, PRESENT = 0.02, 0.10  # shares of a group's occurrences
ALARM = 0.05  # p from which on down a difference is more than chance
LEAST = 5  # occurrences of a sense in both groups together, from which on it is tested
SENSE_NUMBERS = 1 << 22  # of a block of permutations
ROUNDING = 1e-9
ROUNDS = 999
NUMBERS = 1 << 22  # of a block of permutations


def sense_share_test(
    labels: Int[np.ndarray, " R"],
    first: Bool[np.ndarray, " R"],
    units: Int[np.ndarray, " R"],
    senses: int,
    *,
    rounds: int,
    seed: int = 0,
) -> list[float | None]:
    """Compute each sense's p, corrected for their number; None of one that isn't tested.

        z = |c / n - d / m| / sqrt(s (1 - s) (1 / n + 1 / m)),    c of n and d of m occurrences, s = (c + d) / (n + m)

    Whole documents, or occurrences, are permuted as in `permutation_test`. Each z is compared with the largest z of any
    sense in a permutation (Westfall and Young 1993): without a difference, some sense has p ≤ α with probability ≤ α.

    labels: each occurrence's sense, 0 to senses - 1. first: whether it is in the first group. units: the number of what
    it changes groups with, its document's or its own; all occurrences of a unit are in one group. rounds: how many
    permutations are drawn, by seed. A sense of fewer than 5 occurrences, and one that all occurrences have, isn't
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
    random, block, larger = np.random.default_rng(seed), max(1, SENSE_NUMBERS // len(in_first)), np.zeros(len(tested))
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


@dataclass(frozen=True)
class Change:
    """The difference of a word's embeddings between two groups.

    apd: average pairwise distance. within: the mean of 1 - cosine within each group. statistic: T, what is tested.
    p: of the permutation test. units: how many of what was permuted each group has: occurrences, or documents.
    """

    apd: float
    within: tuple[float, float]
    statistic: float
    p: float
    rounds: int
    seed: int
    occurrences: tuple[int, int]
    units: tuple[int, int]


def average_pairwise_distance(one: Float[np.ndarray, "n M"], other: Float[np.ndarray, "m M"]) -> float:
    """Compute the mean of 1 - cosine over all pairs of one vector of each group."""
    if not len(one) or not len(other):
        raise RegardError(f"change: got groups of {len(one)} and {len(other)} occurrences, expected at least one each")
    return float(1 - unit(one).mean(0, dtype=np.float64) @ unit(other).mean(0, dtype=np.float64))


def within_distance(vectors: Float[np.ndarray, "n M"]) -> float:
    """Compute the mean of 1 - cosine over all pairs of two different vectors."""
    count = len(vectors)
    if count < 2:
        raise RegardError(f"change: got a group of {count} occurrence(s), expected at least two in each")
    total = unit(vectors).sum(0, dtype=np.float64)
    return float(1 - (total @ total - count) / (count * (count - 1)))


def permutation_test(
    one: Float[np.ndarray, "n M"],
    other: Float[np.ndarray, "m M"],
    documents: tuple[Int[np.ndarray, " n"], Int[np.ndarray, " m"]] | None = None,
    *,
    rounds: int = ROUNDS,
    seed: int = 0,
) -> Change:
    """Measure the change between two groups of occurrences, and test it by permutations."""
    if rounds < 1:
        raise RegardError(f"rounds: got {rounds}, expected 1 or more")
    apd, within = average_pairwise_distance(one, other), (within_distance(one), within_distance(other))
    points = np.concatenate([unit(one), unit(other)])
    points = points - points.mean(0, dtype=np.float64).astype(np.float32)  # distances stay, and sums keep their digits
    first = np.arange(len(points)) < len(one)
    which = np.arange(len(points))
    if documents is not None:
        if np.intersect1d(*documents).size:
            raise RegardError("change: a document is in both groups, so documents can't be exchanged between groups")
        _, which = np.unique(np.concatenate(documents), return_inverse=True)
    units = _Units.of(points, which)
    in_first = np.zeros(len(units.counts), dtype=bool)
    in_first[which[first]] = True
    observed = float(units.statistics(in_first[None])[0])
    random, larger, block = np.random.default_rng(seed), 0, max(1, NUMBERS // len(in_first))
    for begin in range(0, rounds, block):
        labels = random.permuted(np.tile(in_first, (min(block, rounds - begin), 1)), axis=1)
        larger += int((units.statistics(labels) >= observed - units.rounding(in_first)).sum())
    sizes = int(in_first.sum()), int((~in_first).sum())
    p = (1 + larger) / (1 + rounds)
    return Change(apd, within, 2 * apd - sum(within), p, rounds, seed, (len(one), len(other)), sizes)


@dataclass(frozen=True, eq=False)
class _Units:
    """What changes groups as a whole: sums of its vectors, which are centred, of their squared lengths, and counts."""

    sums: Float[np.ndarray, "units M"]
    squares: Float[np.ndarray, " units"]
    counts: Float[np.ndarray, " units"]

    @staticmethod
    def of(points: Float[np.ndarray, "R M"], which: Int[np.ndarray, " R"]) -> "_Units":
        """Sum points by the unit that each is of."""
        squares = np.einsum("rm,rm->r", points, points, dtype=np.float64)
        counts = np.bincount(which)
        sums = points
        if len(counts) < len(points):
            order = np.argsort(which, kind="stable")
            sums = np.add.reduceat(points[order], np.concatenate([[0], counts.cumsum()[:-1]]), axis=0)
        return _Units(sums, np.bincount(which, weights=squares), counts.astype(np.float64))

    def statistics(self, first: Bool[np.ndarray, "labellings units"]) -> Float[np.ndarray, " labellings"]:
        """Compute T for each way to put the units into two groups.

        T = |mean - other mean|² - variance / n - other variance / m, with unbiased variances; for vectors of length 1
        it is the difference of the mean distances.
        """
        sums = (first.astype(np.float32) @ self.sums).astype(np.float64)
        inside = first.astype(np.float64)
        n, squares = inside @ self.counts, inside @ self.squares
        m = self.counts.sum() - n
        others = self.sums.sum(0, dtype=np.float64) - sums
        apart = sums / n[:, None] - others / m[:, None]
        variance = (squares - (sums**2).sum(1) / n) / np.maximum(n - 1, 1)
        other_variance = (self.squares.sum() - squares - (others**2).sum(1) / m) / np.maximum(m - 1, 1)
        return (apart**2).sum(1) - variance / n - other_variance / m

    def rounding(self, first: Bool[np.ndarray, " units"]) -> float:
        """The rounding error between two statistics that are the same sums in a different order."""
        n, m = self.counts[first].sum(), self.counts[~first].sum()
        return float(1e-5 * self.squares.sum() / (n + m) * (1 / n + 1 / m))
