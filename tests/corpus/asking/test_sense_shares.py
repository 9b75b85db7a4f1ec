from itertools import combinations

import numpy as np
import pytest

from regard.corpus.asking.sense_shares import LEAST, sense_share_test


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
