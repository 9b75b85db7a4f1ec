"""Measure and test the change of a word's embeddings between two groups of its occurrences.

Average pairwise distance (APD; Periti and Tahmasebi 2024, "A Systematic Comparison of Contextualized Word Embeddings
for Lexical Semantic Change") is the mean of 1 - cosine over all pairs of occurrences from different groups. It grows
with the spread within the groups, even if the meaning doesn't change. The test uses the energy distance instead:

    T = 2 APD - (mean of 1 - cosine within the first group) - (mean of 1 - cosine within the second group)

The means within a group leave out pairs of an occurrence with itself. The expected value of T is 0 if both groups are
drawn from the same population. Mean cosines of unit vectors follow from vector sums, so no R × R matrix is needed.

The test permutes the group labels of occurrences, or of whole documents. With p = (1 + #{T* ≥ T}) / (1 + rounds),
P(p ≤ α) ≤ α holds exactly if the labels are exchangeable (Phipson and Smyth 2010).
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from regard.corpus.asking.vectors import unit
from regard.errors import RegardError

ABSENT, PRESENT = 0.02, 0.10  # fractions of a group's occurrences
ALARM = 0.05  # largest p of a significant difference
LEAST = 5  # minimum number of occurrences of a tested sense, in both groups together
SENSE_NUMBERS = 1 << 22  # maximum number of array elements in a block of permutations
ROUNDING = 1e-9
ROUNDS = 999
NUMBERS = 1 << 22  # maximum number of array elements in a block of permutations


def sense_share_test(
    labels: Int[np.ndarray, " R"],
    first: Bool[np.ndarray, " R"],
    units: Int[np.ndarray, " R"],
    senses: int,
    *,
    rounds: int,
    seed: int = 0,
) -> list[float | None]:
    """Return a p-value for each sense's difference in fractions between two groups, corrected for multiple tests.

        z = |c / n - d / m| / sqrt(s (1 - s) (1 / n + 1 / m)),    s = (c + d) / (n + m)

    The sense has c of the first group's n occurrences and d of the second group's m. Documents or occurrences are
    permuted as in `permutation_test`. Each z is compared with the largest z over all senses in each permutation
    (Westfall and Young 1993). If the groups don't differ, the probability that any sense has p ≤ α is at most α.

    labels: each occurrence's sense, 0 to senses - 1. first: whether it is in the first group. units: a number for each
    occurrence. Occurrences with the same number (a document's) are permuted together. rounds: number of permutations.
    p is None for a sense with fewer than 5 or with all occurrences, and for all senses if a group is empty.
    """
    _, unit_numbers = np.unique(units, return_inverse=True)
    counts = np.zeros((int(unit_numbers.max(initial=-1)) + 1, senses))
    np.add.at(counts, (unit_numbers, labels), 1)
    totals = counts.sum(0)
    tested = np.flatnonzero((totals >= LEAST) & (totals < len(labels)))
    p_values: list[float | None] = [None] * senses
    if not len(tested) or first.all() or not first.any():
        return p_values
    in_first = np.zeros(len(counts), dtype=bool)
    in_first[unit_numbers[first]] = True
    sizes, counts = counts.sum(1), counts[:, tested]
    observed = _sense_share_deviations(in_first[None], sizes, counts)[0]
    random, block, larger = np.random.default_rng(seed), max(1, SENSE_NUMBERS // len(in_first)), np.zeros(len(tested))
    for begin in range(0, rounds, block):
        permuted = random.permuted(np.tile(in_first, (min(block, rounds - begin), 1)), axis=1)
        largest = _sense_share_deviations(permuted, sizes, counts).max(1)
        larger += (largest[:, None] >= observed - ROUNDING).sum(0)
    for column, sense in enumerate(tested.tolist()):
        p_values[sense] = float((1 + larger[column]) / (1 + rounds))
    return p_values


def _sense_share_deviations(
    first: Bool[np.ndarray, "labellings units"],
    sizes: Float[np.ndarray, " units"],
    counts: Float[np.ndarray, "units k"],
) -> Float[np.ndarray, "labellings k"]:
    """Compute every sense's z for each labelling, a division of the units into two non-empty groups."""
    inside = first.astype(np.float64)
    n, inside_counts = (inside @ sizes)[:, None], inside @ counts
    total, sense_totals = sizes.sum(), counts.sum(0)
    share, m = sense_totals / total, total - n
    spread = np.sqrt(share * (1 - share) * (1 / n + 1 / m))
    z: Float[np.ndarray, "labellings k"] = np.abs(inside_counts / n - (sense_totals - inside_counts) / m) / spread
    return z


@dataclass(frozen=True)
class Change:
    """The difference of a word's embeddings between two groups, with a permutation test.

    apd: average pairwise distance. within: the mean of 1 - cosine within each group. statistic: the test statistic T.
    p: the permutation test's p-value. units: number of permuted occurrences or documents in each group.
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
    """Return the mean of 1 - cosine over all pairs of vectors from different groups."""
    if not len(one) or not len(other):
        raise RegardError(f"change: got groups of {len(one)} and {len(other)} occurrences, expected at least one each")
    return float(1 - unit(one).mean(0, dtype=np.float64) @ unit(other).mean(0, dtype=np.float64))


def within_distance(vectors: Float[np.ndarray, "n M"]) -> float:
    """Return the mean of 1 - cosine over all pairs of two different vectors."""
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
    """Measure the change between two groups of vectors, and test it by permuting vectors or documents."""
    if rounds < 1:
        raise RegardError(f"rounds: got {rounds}, expected 1 or more")
    apd, within = average_pairwise_distance(one, other), (within_distance(one), within_distance(other))
    points = np.concatenate([unit(one), unit(other)])
    points = points - points.mean(0, dtype=np.float64).astype(np.float32)  # keeps distances, makes sums more exact
    first = np.arange(len(points)) < len(one)
    unit_numbers = np.arange(len(points))
    if documents is not None:
        if np.intersect1d(*documents).size:
            raise RegardError("change: a document is in both groups, so documents can't be exchanged between groups")
        _, unit_numbers = np.unique(np.concatenate(documents), return_inverse=True)
    units = _PermutedUnits.from_points(points, unit_numbers)
    in_first = np.zeros(len(units.counts), dtype=bool)
    in_first[unit_numbers[first]] = True
    observed = float(units.statistics(in_first[None])[0])
    random, larger, block = np.random.default_rng(seed), 0, max(1, NUMBERS // len(in_first))
    for begin in range(0, rounds, block):
        labels = random.permuted(np.tile(in_first, (min(block, rounds - begin), 1)), axis=1)
        larger += int((units.statistics(labels) >= observed - units.rounding(in_first)).sum())
    sizes = int(in_first.sum()), int((~in_first).sum())
    p = (1 + larger) / (1 + rounds)
    return Change(apd, within, 2 * apd - sum(within), p, rounds, seed, (len(one), len(other)), sizes)


@dataclass(frozen=True, eq=False)
class _PermutedUnits:
    """The permuted units: each unit's sum of centred vectors, sum of squared lengths, and number of vectors."""

    sums: Float[np.ndarray, "units M"]
    squares: Float[np.ndarray, " units"]
    counts: Float[np.ndarray, " units"]

    @staticmethod
    def from_points(points: Float[np.ndarray, "R M"], unit_numbers: Int[np.ndarray, " R"]) -> "_PermutedUnits":
        """Sum points by unit. unit_numbers: the unit of each point."""
        squares = np.einsum("rm,rm->r", points, points, dtype=np.float64)
        counts = np.bincount(unit_numbers)
        sums = points
        if len(counts) < len(points):
            order = np.argsort(unit_numbers, kind="stable")
            sums = np.add.reduceat(points[order], np.concatenate([[0], counts.cumsum()[:-1]]), axis=0)
        return _PermutedUnits(sums, np.bincount(unit_numbers, weights=squares), counts.astype(np.float64))

    def statistics(self, first: Bool[np.ndarray, "labellings units"]) -> Float[np.ndarray, " labellings"]:
        """Compute T for each labelling, a division of the units into two groups.

        T = |mean - other mean|² - variance / n - other variance / m, with unbiased variances. For unit vectors, this
        equals T as defined at the top of this module.
        """
        sums = (first.astype(np.float32) @ self.sums).astype(np.float64)
        inside = first.astype(np.float64)
        n, squares = inside @ self.counts, inside @ self.squares
        m = self.counts.sum() - n
        others = self.sums.sum(0, dtype=np.float64) - sums
        difference = sums / n[:, None] - others / m[:, None]
        variance = (squares - (sums**2).sum(1) / n) / np.maximum(n - 1, 1)
        other_variance = (self.squares.sum() - squares - (others**2).sum(1) / m) / np.maximum(m - 1, 1)
        return (difference**2).sum(1) - variance / n - other_variance / m

    def rounding(self, first: Bool[np.ndarray, " units"]) -> float:
        """Return a tolerance for statistics that differ only in the order of summation."""
        n, m = self.counts[first].sum(), self.counts[~first].sum()
        return float(1e-5 * self.squares.sum() / (n + m) * (1 / n + 1 / m))
