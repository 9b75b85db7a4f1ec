import math

import pytest

from regard.corpus.asking.context_words import (
    excerpt_around_occurrence,
    log_odds_z,
    marker_words,
    near,
    words_around_occurrence,
)
from regard.corpus.asking.occurrences import Part
from regard.corpus.asking.places import Place

CONTEXTS = [{"the", "river"}, {"the", "river", "mud"}, {"the", "money"}, {"the", "money"}, {"the", "loan", "money"}]
LABELS = [0, 0, 1, 1, 1]


def test_excerpts_end_where_words_end() -> None:
    part = Part(100, "one two three bank four five six", "a", None, {})
    assert excerpt_around_occurrence(part, 114, 118, 7) == Place("three bank four", 6, 10)
    assert excerpt_around_occurrence(part, 114, 118, 99) == Place(part.text, 14, 18)
    assert excerpt_around_occurrence(Part(0, "aaaabankbbbb", "a", None, {}), 4, 8, 2) == Place("aabankbb", 2, 6)


def test_the_word_itself_is_no_context() -> None:
    assert near(Place("A Bank; a bank of Clay.", 2, 6)) == {"a", "of", "clay"}


def test_parts_of_a_compound_are_words_of_their_own() -> None:
    """Else cutting "fast-fish" would cut "fast" from itself."""
    assert words_around_occurrence(Place("A fast-fish is a Fish", 2, 6)) == {
        "a": [(0, 1), (15, 16)], "fish": [(7, 11), (17, 21)], "is": [(12, 14)]
    }  # fmt: skip


def test_z_of_the_log_odds_ratio_by_hand() -> None:
    """7 of 10 compared with 0 of 10: half a count more in each cell."""
    z = math.log((7.5 * 10.5) / (3.5 * 0.5)) / math.sqrt(1 / 7.5 + 1 / 3.5 + 1 / 0.5 + 1 / 10.5)
    assert log_odds_z(7, 10, 0, 10) == pytest.approx(z) == pytest.approx(2.401, abs=1e-3)
    assert log_odds_z(0, 10, 7, 10) == pytest.approx(-z)
    assert log_odds_z(4, 9, 4, 9) == 0
    assert log_odds_z(10, 10, 10, 10) == 0


def test_marker_words_are_near_one_sense_more_often_by_two_standard_errors() -> None:
    contexts = [{"the", "river", "mud"}] * 5 + [{"the", "river"}] * 2 + [{"the"}] * 3 + [{"the", "money"}] * 10
    contexts[0] = contexts[0] | {"rare"}
    labels = [0] * 10 + [1] * 10
    assert marker_words(contexts, labels, 0, 9) == [("river", log_odds_z(7, 10, 0, 10))]  # mud: z = 1.93
    assert marker_words(contexts, labels, 1, 9) == [("money", log_odds_z(10, 10, 0, 10))]
    assert marker_words(contexts, labels, 1, 0) == []
    assert marker_words(contexts, [0] * 20, 0, 9) == []
    assert log_odds_z(1, 1, 0, 1000) > 2
    assert marker_words([{"rare"}, *[set()] * 1000], [0] + [1] * 1000, 0, 9) == []  # near a single occurrence


def test_words_without_a_difference_mark_no_sense() -> None:
    assert marker_words([{"a", "b"}, {"a"}] * 20, [0, 0, 1, 1] * 10, 0, 9) == []
