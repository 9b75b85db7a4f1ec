import math

import pytest

from regard.corpus.asking.context_words import (
    PRIOR,
    excerpt_around_occurrence,
    log_odds,
    near,
    telling_words,
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


def test_log_odds_by_hand() -> None:
    found = log_odds(CONTEXTS, LABELS, 0)
    assert set(found) == {"the", "river", "mud"}
    prior = PRIOR * 2 / 12  # river: 2 of 12 words
    odds = math.log((2 + prior) / (5 + PRIOR - 2 - prior)) - math.log(prior / (7 + PRIOR - prior))
    assert found["river"] == pytest.approx(odds / math.sqrt(1 / (2 + prior) + 1 / prior))
    assert abs(found["the"]) < found["river"] / 4


def test_words_that_tell_come_in_order() -> None:
    assert next(iter(dict(telling_words(CONTEXTS, LABELS, 1, 9)))) == "money"
    assert "loan" not in dict(telling_words(CONTEXTS, LABELS, 1, 9))  # once only
    assert len(telling_words(CONTEXTS, LABELS, 0, 1)) == 1
    assert telling_words(CONTEXTS, [0] * 5, 0, 9) == []


def test_a_word_that_tells_stands_near_a_larger_share_of_the_occurrences_not_of_the_words() -> None:
    """ "boat" is 1 of 2 words near two of four occurrences of sense 0, and 1 of 9 near three of four of the others."""
    many = {f"w{n}" for n in range(8)}
    contexts = [{"boat", "a"}, {"boat", "a"}, {"a"}, {"a"}, *[{"boat", *many}] * 3, many]
    labels = [0] * 4 + [1] * 4
    assert log_odds(contexts, labels, 0)["boat"] > 0
    assert "boat" not in dict(telling_words(contexts, labels, 0, 9))
    assert "a" in dict(telling_words(contexts, labels, 0, 9))
