"""What `regard attribute` refuses before a model is loaded."""

from typing import Any

import pytest

from regard.display.query import option_name
from regard.errors import RegardError
from regard.questions.attribution.query import AttributionQuery


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({}, "--to is needed, a next token, or --word: the outcome to measure"),
        ({"to": "a", "word": "b"}, "--to and --word: given both, an outcome needs one"),
        ({"word": "b", "against": "a", "like": "c"}, "--against needs --to"),
        ({"word": "b", "at": "a", "like": "c"}, "--at needs --to"),
        ({"to": "a", "like": "c"}, "--like needs --word"),
        ({"word": "b"}, "--word needs --like"),
        ({"to": " "}, "--to is empty: give a token"),
        ({"to": "a", "at": ""}, "--at is empty: give a word"),
        ({"to": "a", "method": "saliency"}, "--method: given 'saliency', needs one of direct, gradient-x-input"),
        ({"to": "a", "by": "layer"}, "--by: given 'layer', needs one of token, word, head"),
        ({"to": "a", "steps": 4}, "--steps goes with --method integrated-gradients"),
        ({"to": "a", "by": "head"}, "--by head goes with --method gradient-x-input"),
        ({"to": "a", "method": "attribution-patching"}, "given 1 texts, needs two, a clean and a corrupted one"),
        (
            {"to": "a", "method": "attribution-patching", "by": "word"},
            "--by: attribution patching gives each layer and token",
        ),
    ],
)
def test_what_is_refused(asked: dict[str, Any], says: str) -> None:
    with pytest.raises(RegardError) as refused:
        AttributionQuery(**asked).check(1, called=option_name)
    assert says in str(refused.value)


def test_what_depends_on_the_texts() -> None:
    with pytest.raises(RegardError, match="given 2 texts, needs one: --method attribution-patching compares two"):
        AttributionQuery(to="a").check(2, called=option_name)
    patching = AttributionQuery(word="a", method="attribution-patching")
    patching.check(2, called=option_name)  # the word is compared with its vector in the clean text
    with pytest.raises(RegardError, match="--target-text: attribution patching is for models with a single stack"):
        patching.check(2, 1, called=option_name)
