"""Score a ranking of sources against what their removal did: rank correlation, and areas under curves.

    rank correlation    Spearman's, of a method's numbers and the measured effects, in one text
    deletion            the sources are removed one after another, the largest number first; the area between the whole
                        outcome and the curve: larger where what matters goes first (Samek et al. 2017)
    insertion           all are removed and come back, the largest number first; the area between the curve and the
                        outcome with all removed

Areas are means over the part of the sources that is removed or back, so they are in the unit of the outcome.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from regard.explain.causes.ablation_effect import spearman

PARTS = (0.1, 0.25, 0.5)  # of the sources: where curves are measured, beside 0 and 1
DRAWS = 10_000  # of the bootstrap
SEED = 0


def steps(count: int) -> list[int]:
    """How many of so many sources are removed (or back) at each point of a curve."""
    return sorted({0, *(math.ceil(part * count) for part in PARTS), count})


def order(numbers: Sequence[float]) -> list[int]:
    """Which source comes first, second, …: the largest number first, of equal ones the earlier source."""
    return sorted(range(len(numbers)), key=lambda n: -numbers[n])


def deletions(numbers: Sequence[float]) -> list[frozenset[int]]:
    """What is removed at each point of the deletion curve."""
    ranked = order(numbers)
    return [frozenset(ranked[:count]) for count in steps(len(ranked))]


def insertions(numbers: Sequence[float]) -> list[frozenset[int]]:
    """What is still removed at each point of the insertion curve."""
    ranked = order(numbers)
    return [frozenset(ranked[count:]) for count in steps(len(ranked))]


def area(places: Sequence[int], heights: Sequence[float]) -> float:
    """The mean height of a curve by trapezoids, its places taken as parts of the last one."""
    return float(np.trapezoid(heights, np.asarray(places) / places[-1]))


def deletion(numbers: Sequence[float], outcome: Callable[[frozenset[int]], float]) -> float:
    """The area between the whole outcome and the deletion curve."""
    whole = outcome(frozenset())
    return area(steps(len(numbers)), [whole - outcome(each) for each in deletions(numbers)])


def insertion(numbers: Sequence[float], outcome: Callable[[frozenset[int]], float]) -> float:
    """The area between the insertion curve and the outcome with all sources removed."""
    nothing = outcome(frozenset(range(len(numbers))))
    return area(steps(len(numbers)), [outcome(each) - nothing for each in insertions(numbers)])


def agreement(numbers: Sequence[float], effects: Sequence[float], *, signed: bool) -> float:
    """The rank correlation of numbers and effects, or of their absolute values."""
    if signed:
        return spearman(numbers, effects)
    return spearman([abs(each) for each in numbers], [abs(each) for each in effects])


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The mean over texts, and the 95 % interval of the bootstrap by text (Efron 1979). NaN are left out."""
    known = np.asarray([each for each in values if not math.isnan(each)])
    if not len(known):
        return math.nan, math.nan, math.nan
    drawn = np.random.default_rng(SEED).integers(len(known), size=(DRAWS, len(known)))
    low, high = np.quantile(known[drawn].mean(1), (0.025, 0.975))
    return float(known.mean()), float(low), float(high)


def ahead(one: Sequence[float], other: Sequence[float]) -> tuple[float, float, float]:
    """By how much one method is ahead of another in the same texts, with its interval: whether the gap is no chance."""
    return interval([a - b for a, b in zip(one, other, strict=True)])
