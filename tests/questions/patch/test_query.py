"""What `regard patch` refuses before a model is loaded, and what it asks."""

from typing import Any

import pytest

from regard.display.query import option_name
from regard.errors import RegardError
from regard.questions.patch.query import PatchQuery

BOTH = "We sat on the quiet river bank.", "We sat on the quiet money bank."


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({}, "--to is needed, a next token, or --word: the outcome to measure"),
        ({"word": "a", "to": "b"}, "--to and --word: given both, an outcome needs one of them"),
        ({"word": "a", "against": "b"}, "--against needs --to"),
        ({"word": "a", "what": "states"}, "--what: given 'states', needs one of hidden_states, head_outputs"),
        ({"word": "a", "by": "rows"}, "--by: given 'rows', needs one of positions, heads"),
        ({"word": "a", "part": "both"}, "--part: given 'both', needs one of encoder, decoder, cross"),
        ({"word": " "}, "--word is empty: give a word"),
    ],
)
def test_what_is_refused(asked: dict[str, Any], says: str) -> None:
    with pytest.raises(RegardError) as refused:
        PatchQuery(**asked).check(2, called=option_name)
    assert says in str(refused.value)


def test_it_needs_two_texts() -> None:
    with pytest.raises(RegardError, match="given 1 texts, needs two"):
        PatchQuery(word="a").check(1)


def test_what_is_asked_is_swept(minilm: Any) -> None:
    traces = minilm.trace(list(BOTH))
    counted: list[tuple[int, int]] = []
    asked = PatchQuery(word="bank", what="head_outputs", layers=(3,), at=("bank",), noising=True)
    found = asked.answer(minilm, traces, lambda *each: counted.append(each))
    assert (found.direction, found.by, found.layers, found.at) == ("noising", "heads", (3,), "“bank”")
    assert (found.clean, found.corrupted) == BOTH
    numbered = PatchQuery(word="bank", what="head_outputs", layers=(3,), at=("7",), noising=True)
    assert numbered.answer(minilm, traces).outcomes == found.outcomes
    assert counted == [(n, 12) for n in range(1, 13)]
