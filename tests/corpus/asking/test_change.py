import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.corpus.asking.change import average_pairwise_distance, permutation_test, within_distance
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
    with pytest.raises(RegardError, match=r"given a group of 1 occurrence\(s\), each needs two at least"):
        permutation_test(one, other[:1])
    with pytest.raises(RegardError, match="groups of 0 and 3"):
        permutation_test(one[:0], other)
    with pytest.raises(RegardError, match="a document is in both groups"):
        permutation_test(one, other, (np.arange(5), np.arange(3)))
    with pytest.raises(RegardError, match="rounds: given 0"):
        permutation_test(one, other, rounds=0)
