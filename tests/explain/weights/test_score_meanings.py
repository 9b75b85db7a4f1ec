"""Every score of a head that there is has one meaning, which terminal, page and picture show."""

from regard.corpus.store import SCORES
from regard.display.terminal_tables import TEXT
from regard.explain.weights import content_or_position, cross_head_scores, head_means, head_scores, repeated_tokens
from regard.explain.weights.score_meanings import MEANINGS, is_share


def test_every_score_that_there_is_has_a_meaning() -> None:
    tests = (head_scores.NAMES, cross_head_scores.NAMES, content_or_position.NAMES, repeated_tokens.NAMES)
    assert {*SCORES, *(name for names in tests for name in names)} == set(MEANINGS)
    assert all(each.says.startswith("How ") and each.says.endswith(".") for each in MEANINGS.values())
    assert {name for name, each in MEANINGS.items() if not each.looks_at} == {"looked"}


def test_what_a_head_looks_at_has_room_in_a_terminal() -> None:
    """A column of text has 24 cells on a narrow one: the words were cut to "the same earlier", "behind the same"."""
    assert all(len(each.looks_at) <= TEXT for each in MEANINGS.values())
    assert MEANINGS["duplicate"].looks_at == "the same token, earlier"
    assert MEANINGS["induction"].looks_at == "what followed it earlier"


def test_what_has_no_mean_over_all_tokens_says_of_which() -> None:
    assert {name for name, each in MEANINGS.items() if each.mean_of} == set(head_means.OVER)


def test_all_but_two_are_shares() -> None:
    assert {name: each.unit for name, each in MEANINGS.items() if not is_share(name)} == {
        "entropy": "nats", "distance": "tokens"
    }  # fmt: skip
