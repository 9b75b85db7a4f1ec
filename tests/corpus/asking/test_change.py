"""None"""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.corpus.asking.change import (
    LEAST,
    average_pairwise_distance,
    permutation_test,
    sense_share_test,
    within_distance,
)
from regard.corpus.asking.vectors import unit
from regard.errors import RegardError


def cloud(random: np.random.Generator, count: int, towards: int = 0, width: int = 11) -> np.ndarray:
    return (2 * np.eye(width)[towards] + random.standard_normal((count, width))).astype(np.float32)


@given(st.integers(0, 10_000), st.integers(2, 13), st.integers(2, 7))
def test_distances_from_sums_are_those_of_all_pairs(seed: int, n: int, m: int) -> None:
    random = np.random.default_rng(seed)
    one, other = cloud(random, n), cloud(random, m, 1)
    pairs = [1 - float(a @ b) for a in unit(one) for b in unit(other)]
    assert average_pairwise_distance(one, other) == pytest.approx(np.mean(pairs), abs=1e-6)
    own = [1 - float(unit(one)[i] @ unit(one)[j]) for i in range(n) for j in range(n) if i != j]
    assert within_distance(one) == pytest.approx(np.mean(own), abs=1e-6)


def test_the_tested_statistic_is_what_the_page_says_and_small_p_is_counted() -> None:
    """Of three and three occurrences there are 20 ways; the permutation p is the share of those that reach T."""
    from itertools import combinations

    random = np.random.default_rng(0)
    one, other = cloud(random, 3), cloud(random, 3, 1)
    both = np.concatenate([one, other])

    def statistic(first: tuple[int, ...]) -> float:
        a, b = both[list(first)], both[[n for n in range(6) if n not in first]]
        return 2 * average_pairwise_distance(a, b) - within_distance(a) - within_distance(b)

    found = permutation_test(one, other, rounds=4999)
    assert found.statistic == pytest.approx(statistic((0, 1, 2)), abs=1e-6)
    assert found.apd == pytest.approx(average_pairwise_distance(one, other))
    reached = np.mean([statistic(each) >= found.statistic - 1e-6 for each in combinations(range(6), 3)])
    assert found.p == pytest.approx(reached, abs=0.02)
    assert found.units == found.occurrences == (3, 3)


def test_random_halves_raise_at_most_five_percent_false_alarms() -> None:
    """600 halves of one skewed, clustered population: 30 alarms at 5 %, 45 is three standard deviations above."""
    random = np.random.default_rng(5)
    alarms = 0
    for trial in range(600):
        points = np.concatenate([cloud(random, 37), cloud(random, 6, 3) * 2])
        order = random.permutation(43)
        alarms += permutation_test(points[order[:17]], points[order[17:]], rounds=99, seed=trial).p <= 0.05
    assert 10 <= alarms <= 45


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_an_injected_change_is_found(share: float) -> None:
    random = np.random.default_rng(7)
    moved = round(53 * share)
    before, after = cloud(random, 47), np.concatenate([cloud(random, 53 - moved), cloud(random, moved, 4)])
    found = permutation_test(before, after)
    assert found.p <= 0.01
    assert found.statistic > 0


def test_spread_alone_raises_apd_and_no_statistic() -> None:
    """APD of two halves of a wide cloud is larger than that of a narrow one that moved; T is not."""
    random = np.random.default_rng(8)
    wide = permutation_test(cloud(random, 200), cloud(random, 200))
    shift = 0.4 * np.eye(11, dtype=np.float32)[1]
    narrow = permutation_test(*(10 * np.eye(11)[0] + cloud(random, 200) + n * shift * 10 for n in range(2)))
    assert wide.apd > narrow.apd
    assert wide.statistic < narrow.statistic
    assert narrow.p < 0.01 < wide.p


def documents_of(random: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Occurrences of documents, each with a topic of its own: 9 of a document around its own centre."""
    centres = cloud(random, count)
    return np.repeat(centres, 9, 0) + 0.1 * cloud(random, 9 * count), np.repeat(np.arange(count), 9)


def test_alike_occurrences_of_documents_raise_false_alarms_unless_documents_are_permuted() -> None:
    random = np.random.default_rng(9)
    alone = whole = 0
    for trial in range(200):
        (one, first), (other, second) = documents_of(random, 7), documents_of(random, 8)
        alone += permutation_test(one, other, rounds=99, seed=trial).p <= 0.05
        found = permutation_test(one, other, (first, second + 7), rounds=99, seed=trial)
        whole += found.p <= 0.05
        assert found.units == (7, 8)
        assert found.statistic == pytest.approx(permutation_test(one, other, rounds=1).statistic)
    assert alone > 100
    assert whole <= 20  # 10 expected, three standard deviations above


def test_many_occurrences_take_no_matrix_of_their_pairs() -> None:
    """50,000 by 50,000 numbers would be 10 GB."""
    random = np.random.default_rng(10)
    one, other = (random.standard_normal((50_000, 384), dtype=np.float32) + 0.5 for _ in range(2))
    found = permutation_test(one, other, rounds=19)
    assert 0.05 <= found.p <= 1
    assert abs(found.statistic) < 1e-4


def test_what_is_refused() -> None:
    random = np.random.default_rng(0)
    one, other = cloud(random, 5), cloud(random, 3)
    with pytest.raises(RegardError, match=r"got a group of 1 occurrence\(s\), expected at least two in each"):
        permutation_test(one, other[:1])
    with pytest.raises(RegardError, match="groups of 0 and 3"):
        permutation_test(one[:0], other)
    with pytest.raises(RegardError, match="a document is in both groups"):
        permutation_test(one, other, (np.arange(5), np.arange(3)))
    with pytest.raises(RegardError, match="rounds: got 0"):
        permutation_test(one, other, rounds=0)


def z_of(labels: np.ndarray, first: np.ndarray, sense: int) -> float:
    one, other, both = (np.mean(part == sense) for part in (labels[first], labels[~first], labels))
    n, m = first.sum(), (~first).sum()
    return float(abs(one - other) / np.sqrt(both * (1 - both) * (1 / n + 1 / m)))


def test_p_is_the_share_of_all_ways_to_deal_in_which_any_sense_is_as_far_apart() -> None:
    """Of 11 occurrences 462 ways to choose 5 of them are counted out."""
    labels = np.array([0, 0, 1, 0, 2, 1, 1, 2, 2, 2, 2])
    first = np.arange(11) < 5
    exact = {0: 0.0, 1: 0.0, 2: 0.0}
    for chosen in combinations(range(11), 5):
        dealt = np.isin(np.arange(11), chosen)
        most = z_of(labels, dealt, 2)  # the other two have fewer than 5 occurrences
        for sense in exact:
            exact[sense] += most >= z_of(labels, first, sense) - 1e-9
    found = sense_share_test(labels, first, np.arange(11), 3, rounds=4999)
    assert found[:2] == [None, None]
    assert found[2] == pytest.approx(exact[2] / 462, abs=0.02)


def test_more_senses_are_corrected_for() -> None:
    random = np.random.default_rng(0)
    first = np.arange(80) < 40
    two = np.where(random.random(80) < np.where(first, 0.15, 0.4), 1, 0)
    many = np.where(two == 1, 7, random.integers(0, 7, 80))
    alone, among = sense_share_test(two, first, np.arange(80), 2, rounds=1999), sense_share_test(
        many, first, np.arange(80), 8, rounds=1999
    )  # fmt: skip
    assert alone[0] == alone[1]  # two shares that add up to 1 are one question
    assert among[7] is not None
    assert alone[1] is not None
    assert 2 * alone[1] < among[7] <= 7.5 * alone[1] + 0.01


def test_what_is_not_tested() -> None:
    first = np.arange(12) < 6
    assert sense_share_test(np.zeros(12, int), first, np.arange(12), 1, rounds=9) == [None]
    few = np.where(np.arange(12) < LEAST - 1, 1, 0)
    assert [each is None for each in sense_share_test(few, first, np.arange(12), 2, rounds=9)] == [False, True]
    assert sense_share_test(few, np.ones(12, bool), np.arange(12), 2, rounds=9) == [None, None]


def test_random_halves_of_documents_raise_at_most_five_percent_false_alarms() -> None:
    """150 halves of documents that each keep to one sense: 7.5 alarms at 5 %, 15 is three standard deviations above."""
    random = np.random.default_rng(1)
    whole = alone = 0
    for trial in range(150):
        senses = random.choice(4, 24, p=[0.5, 0.3, 0.1, 0.1])
        sizes = random.integers(1, 9, 24)
        labels, units = np.repeat(senses, sizes), np.repeat(np.arange(24), sizes)
        first = np.isin(units, random.permutation(24)[:11])
        for by_document in (True, False):
            which = units if by_document else np.arange(len(units))
            p = sense_share_test(labels, first, which, 4, rounds=99, seed=trial)
            alarm = min(each for each in p if each is not None) <= 0.05
            whole, alone = whole + (by_document and alarm), alone + (not by_document and alarm)
    assert 1 <= whole <= 15
    assert alone > 30  # what permuting the occurrences of documents would do


def test_a_sense_that_one_group_lacks_is_found() -> None:
    labels, first = np.repeat([0, 1], [40, 10]), np.arange(50) < 30
    found = sense_share_test(labels, first, np.arange(50), 2, rounds=999)
    assert found == [1 / 1000, 1 / 1000]
