"""By what runs are judged: refused without a model, and the numbers of the library's own outcomes."""

from typing import Any

import pytest

from regard.errors import RegardError
from regard.explain.causes.outcomes import Outcome, cosine, logit, logit_difference, probability
from regard.questions.outcome import OutcomeQuery
from tests.support.own_models import TEXTS, opened


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({}, "^--to is needed, a next token, or --word: the outcome to measure$"),
        ({"to": "a", "word": "b"}, "^--to and --word: given both, an outcome needs one of them$"),
        ({"word": "b", "against": "a"}, "^--against needs --to: a token's logit is meant$"),
    ],
)
def test_what_is_refused(asked: dict[str, Any], says: str) -> None:
    with pytest.raises(RegardError, match=says):
        OutcomeQuery(**asked).check_outcome(lambda field: f"--{field}")


@pytest.mark.parametrize(
    ("asked", "more", "expected"),
    [
        ({"to": "bank"}, {}, lambda model, trace: probability(model, "bank")),
        ({"to": "bank"}, {"alone": logit, "at": 3}, lambda model, trace: logit(model, "bank", at=3)),
        ({"to": "bank", "against": "man"}, {}, lambda model, trace: logit_difference(model, "bank", "man")),
        ({"word": "river"}, {}, lambda model, trace: cosine("river", trace["river"], "its vector in the clean text")),
        ({"word": "river"}, {"like": "fishing"}, lambda model, trace: cosine("river", trace["fishing"], "“fishing”")),
    ],
)
def test_it_is_the_librarys_outcome(asked: dict[str, Any], more: dict[str, Any], expected: Any) -> None:
    model = opened("gpt")
    trace, other = model.trace(TEXTS[0]), model.trace(TEXTS[1])
    options: dict[str, Any] = {"alone": probability} | more
    made: Outcome = OutcomeQuery(**asked).outcome(model, trace, **options)
    own: Outcome = expected(model, trace)
    assert (made.name, made.logits) == (own.name, own.logits)
    for each in (trace, other) if "word" not in asked else (trace,):
        assert made.of(each) == own.of(each)
