"""What the questions refuse before a model is loaded, what they ask, and the outcomes that they choose."""

from typing import Any

import numpy as np
import pytest

from regard.display.query import option_name
from regard.errors import RegardError
from regard.explain.causes.outcomes import Outcome, chosen_outcome, cosine, logit, logit_difference, probability
from regard.explain.weights.head_means import mean_scores
from regard.explain.weights.head_scores import head_scores
from regard.questions.queries import AttributionQuery, HeadsQuery, OutcomeQuery, PatchQuery
from tests.support.own_models import TEXTS, opened, pair

SENTENCES = ["The old man walked slowly along the river bank.", "The cat saw the cat and the dog saw the dog."]


def test_texts_are_averaged_and_tests_stand_beside(minilm: Any) -> None:
    traces = minilm.trace(SENTENCES)
    found = HeadsQuery(tests=True, seed=3).answer(minilm, traces)
    assert list(found.tables) == ["texts", "random tokens, repeated", "tokens exchanged"]
    expected = mean_scores([head_scores(trace) for trace in traces])
    for name, table in expected.scores.items():
        np.testing.assert_array_equal(found.tables["texts"].scores[name], table)
    assert [text for text, _ in found.about.texts] == SENTENCES


def test_of_an_encoder_decoder_there_are_three_tables_and_no_tests() -> None:
    model = pair()
    trace = model.trace("the man on the river bank", target="sur la rive")
    assert list(HeadsQuery().answer(model, [trace]).tables) == ["encoder", "decoder", "cross-attention"]
    with pytest.raises(RegardError, match="--tests: .* is an encoder-decoder"):
        HeadsQuery(tests=True).answer(model, [trace])


def test_a_seed_out_of_range(minilm: Any, bank: Any) -> None:
    with pytest.raises(RegardError, match="seed: got -1, expected a whole number"):
        HeadsQuery(tests=True, seed=-1).answer(minilm, bank)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({}, r"^--to is needed: pass --to \(a next token\) or --word$"),
        ({"to": "a", "word": "b"}, "^--to and --word: pass only one of them$"),
        ({"word": "b", "against": "a"}, "^--against needs --to: a token's logit is meant$"),
    ],
)
def test_which_outcomes_are_refused(asked: dict[str, Any], says: str) -> None:
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
    options: dict[str, Any] = {"alone": probability, "to": None, "against": None, "word": None} | asked | more
    made = chosen_outcome(model, trace, **options)
    own: Outcome = expected(model, trace)
    assert (made.name, made.logits) == (own.name, own.logits)
    for each in (trace, other) if "word" not in asked else (trace,):
        assert made.of(each) == own.of(each)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({}, "--to (a next token) or --word"),
        ({"to": "a", "word": "b"}, "--to and --word: pass only one of them"),
        ({"word": "b", "against": "a", "like": "c"}, "--against needs --to"),
        ({"word": "b", "at": "a", "like": "c"}, "--at needs --to"),
        ({"to": "a", "like": "c"}, "--like needs --word"),
        ({"word": "b"}, "--word needs --like"),
        ({"to": " "}, "--to is empty: pass a token"),
        ({"to": "a", "at": ""}, "--at is empty: pass a word"),
        ({"to": "a", "method": "saliency"}, "--method: got 'saliency', expected one of direct, gradient-x-input"),
        ({"to": "a", "by": "layer"}, "--by: got 'layer', expected one of token, word"),
        ({"to": "a", "steps": 4}, "--steps goes with --method integrated-gradients"),
        ({"to": "a", "method": "attribution-patching"}, "got 1 texts, expected two, a clean and a corrupted one"),
        (
            {"to": "a", "method": "attribution-patching", "by": "word"},
            "--by: attribution patching gives each layer and token",
        ),
    ],
)
def test_what_attribute_refuses(asked: dict[str, Any], says: str) -> None:
    with pytest.raises(RegardError) as refused:
        AttributionQuery(**asked).check(1, called=option_name)
    assert says in str(refused.value)


def test_what_attribute_and_patch_refuse_by_their_texts() -> None:
    with pytest.raises(RegardError, match="got 1 texts, expected two"):
        PatchQuery(word="a").check(1)
    with pytest.raises(RegardError, match="got 2 texts, expected one: --method attribution-patching compares two"):
        AttributionQuery(to="a").check(2, called=option_name)
    patching = AttributionQuery(word="a", method="attribution-patching")
    patching.check(2, called=option_name)  # the word is compared with its vector in the clean text
    with pytest.raises(RegardError, match="--target-text: attribution patching is for models with a single stack"):
        patching.check(2, 1, called=option_name)


BOTH = "We sat on the quiet river bank.", "We sat on the quiet money bank."


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({}, "--to (a next token) or --word"),
        ({"word": "a", "to": "b"}, "--to and --word: pass only one of them"),
        ({"word": "a", "against": "b"}, "--against needs --to"),
        ({"word": "a", "what": "states"}, "--what: got 'states', expected one of hidden_states, head_outputs"),
        ({"word": "a", "by": "rows"}, "--by: got 'rows', expected one of positions, heads"),
        ({"word": "a", "part": "both"}, "--part: got 'both', expected one of encoder, decoder, cross"),
        ({"word": " "}, "--word is empty: pass a word"),
    ],
)
def test_what_patch_refuses(asked: dict[str, Any], says: str) -> None:
    with pytest.raises(RegardError) as refused:
        PatchQuery(**asked).check(2, called=option_name)
    assert says in str(refused.value)


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
