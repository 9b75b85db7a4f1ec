"""Every score of a head that there is has one meaning, which terminal, page and picture show."""

from regard.corpus.asking.head_means import OVER
from regard.explain.weights import content_or_position, cross_head_scores, head_means, head_scores, repeated_tokens
from regard.explain.weights.score_meanings import MEANINGS, is_share


def test_every_score_that_there_is_has_a_meaning() -> None:
    tests = (head_scores.NAMES, cross_head_scores.NAMES, content_or_position.NAMES, repeated_tokens.NAMES)
    assert {*OVER, *(name for names in tests for name in names)} == set(MEANINGS)
    assert all(each.says.startswith("How ") and each.says.endswith(".") for each in MEANINGS.values())
    assert {name for name, each in MEANINGS.items() if not each.looks_at} == {"looked"}


def test_what_has_no_mean_over_all_tokens_says_of_which() -> None:
    assert {name for name, each in MEANINGS.items() if each.mean_of} == set(head_means.OVER)


def test_all_but_two_are_shares() -> None:
    assert {name: each.unit for name, each in MEANINGS.items() if not is_share(name)} == {
        "entropy": "nats", "distance": "tokens"
    }  # fmt: skip
