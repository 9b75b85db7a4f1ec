"""Gradients attribute an outcome to tokens."""

import sys
from typing import Any

import pytest
import torch

import regard
from regard.errors import RegardError
from regard.explain.causes.outcomes import Outcome, cosine, logit_difference, number_of
from regard.models.readout import gradient_run
from regard.questions.attribution import gradients
from tests.questions.attribution.conftest import MONEY, RIVER
from tests.support import generation
from tests.support.own_models import translator


def test_integrated_gradients_sum_to_what_the_outcome_is_above_the_baseline(
    minilm: Any, river: Any, outcome: Outcome
) -> None:
    found = regard.attribute_to_tokens(minilm, river, outcome)
    assert found.outcome == pytest.approx(outcome.of(river), abs=1e-6)
    assert found.baseline is not None
    assert float(found.scores.sum()) == pytest.approx(found.outcome - found.baseline, abs=1e-3)
    assert found.gap == pytest.approx(abs(float(found.scores.sum()) - (found.outcome - found.baseline)))
    assert max(found.words(), key=lambda each: each[1])[0] == "bank"
    rough = regard.attribute_to_tokens(minilm, river, outcome, steps=1)
    assert rough.gap is not None
    assert found.gap is not None
    assert rough.gap > 10 * found.gap
    assert [row["text"] for row in found.rows()] == [token.text for token in river.tokens]


def test_more_steps_are_taken_until_the_gap_is_small(
    minilm: Any, river: Any, outcome: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    due = regard.attribute_to_tokens(minilm, river, outcome)
    assert due.steps == gradients.STEPS[0]
    monkeypatch.setattr(gradients, "STEPS", (1, 2, 4, 8, 16))
    found = regard.attribute_to_tokens(minilm, river, outcome)
    assert found.steps in (2, 4, 8, 16)
    assert found.gap <= 0.05 * abs(found.outcome - found.baseline)
    fewer = regard.attribute_to_tokens(minilm, river, outcome, steps=found.steps // 2)
    assert fewer.gap > 0.05 * abs(found.outcome - found.baseline)
    assert "don't trust single scores" in fewer.findings()[0]


def test_gradient_times_input_is_the_slope_along_the_embedding(minilm: Any, river: Any, outcome: Outcome) -> None:
    """Making one token's token embedding a little longer moves the outcome by its score."""
    found = regard.attribute_to_tokens(minilm, river, outcome, method="gradient x input")
    assert (found.baseline, found.gap) == (None, None)
    for token in (0, 5, 6):
        ends = []
        for step in (-0.02, 0.02):
            longer = torch.ones(len(river.tokens), 1)
            longer[token] += step
            ends.append(outcome.of(gradient_run(minilm, river, lambda _, rows, by=longer: rows * by)[1]))
        assert float(found.scores[token]) == pytest.approx((ends[1] - ends[0]) / 0.04, abs=2e-4)


def test_of_a_causal_model_the_last_token_is_reached_by_all_and_others_by_those_before() -> None:
    model = generation.opened("llama")
    trace = model.trace(ids=generation.IDS)
    last = Outcome("a logit", lambda each: each.sides[-1].logits[-1, 3])
    found = regard.attribute_to_tokens(model, trace, last, steps=64)
    assert found.gap is not None
    assert found.gap < 1e-2 * abs(found.outcome - (found.baseline or 0)) + 1e-4
    assert bool((found.scores != 0).all())
    inner = Outcome("a logit", lambda each: each.sides[-1].logits[2, 3])
    early = regard.attribute_to_tokens(model, trace, inner, method="gradient x input")
    assert bool((early.scores[:3] != 0).all())
    assert not bool(early.scores[3:].any())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"steps": 0}, "steps: got 0, expected a whole number, 1 or more"),
        ({"baseline": 10**6}, "baseline: got 1000000, expected 'mean', 'zero' or one of the ids"),
    ],
)
def test_what_is_refused(minilm: Any, river: Any, outcome: Outcome, given: Any, said: str) -> None:
    with pytest.raises(RegardError, match=said):
        regard.attribute_to_tokens(minilm, river, outcome, **given)


def test_an_outcome_without_a_gradient_is_refused(minilm: Any, river: Any) -> None:
    with pytest.raises(RegardError, match="outcome 'length' returns a plain number: gradients need"):
        regard.attribute_to_tokens(
            minilm, river, Outcome("length", lambda trace: trace.last_hidden_state.norm().item())
        )


def test_another_models_trace_is_refused(minilm: Any, river: Any, outcome: Outcome) -> None:
    changed = minilm.trace(RIVER, interventions=[regard.ablate(regard.head(0, 2))])
    with pytest.raises(RegardError, match="the last hidden state is .* of its length from the trace's"):
        regard.attribute_to_tokens(minilm, changed, outcome)


def test_an_encoder_decoder_has_scores_of_both_texts() -> None:
    model = translator("the white table stands", "la table blanche reste")
    pair = model.trace("the white table stands", target="la table blanche reste")
    outcome = logit_difference(model, "blanche", "reste", at="table")
    found = regard.attribute_to_tokens(model, pair, outcome, steps=64)
    assert found.gap is not None
    assert found.gap < 0.02 * abs(found.outcome - (found.baseline or 0))
    assert {row["side"] for row in found.rows()} == {"source", "target"}
    after = [n for n, token in enumerate(pair.decoder.tokens) if n > list(pair.decoder.word("table")[0].tokens)[-1]]
    target = found.scores[len(pair.encoder.tokens) :]
    assert not bool(target[after].any())  # the decoder does not look ahead
    assert bool((found.scores[: len(pair.encoder.tokens)] != 0).all())


def test_norms_and_words_by_hand(minilm: Any) -> None:
    trace = minilm.trace("The riverbankers sat on a bank.")
    outcome = cosine("bank", minilm.trace(MONEY)["bank"])
    found = regard.attribute_to_tokens(minilm, trace, outcome, method="gradient x input")
    done, own = gradient_run(minilm, trace)
    (slope,) = done.gradients(outcome.number(own), done.embeddings)
    product = trace.token_embeddings.double() * slope.double()
    torch.testing.assert_close(found.scores, product.sum(1), atol=1e-7, rtol=1e-4)
    torch.testing.assert_close(found.norms, product.norm(dim=1), atol=1e-7, rtol=1e-4)
    words = dict(found.words())
    assert list(words) == ["[CLS]", "The", "riverbankers", "sat", "on", "a", "bank", ".", "[SEP]"]
    pieces = list(trace.word("riverbankers")[0].tokens)
    assert len(pieces) > 1
    assert words["riverbankers"] == pytest.approx(float(found.scores[pieces].sum()))
    assert dict(found.by("word"))[f"“riverbankers” ({pieces[0]})"] == words["riverbankers"]
    assert [abs(score) for _, score in found.by()] == sorted(map(abs, found.scores.tolist()), reverse=True)


def test_without_captum_one_line_names_the_extra(minilm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "captum.attr", None)
    with pytest.raises(RegardError, match=r'pip install "regard\[captum\]"'):
        regard.attribute_to_tokens(minilm, minilm.trace(RIVER), cosine("bank", torch.ones(384)))


def test_the_slope_by_a_value_is_weight_times_the_slope_by_the_output(
    minilm: Any, river: Any, outcome: Outcome
) -> None:
    """Written out with the trace's whole weights, of the last layer, where the slope is known by autograd alone."""
    modules, contexts = dict(minilm._session.original.named_modules()), list[torch.Tensor]()
    output = modules.get("encoder.layer.5.attention.output.dense") or modules["encoder.5.attention.output"]
    with output.register_forward_pre_hook(lambda _, args: contexts.append(args[0])):
        done, own = gradient_run(minilm, river, heads=True)
    slope, of_values = done.gradients(number_of(outcome, own), [contexts[0], done.head_values[5]])
    by_head = slope[0].unflatten(-1, (12, 32)).transpose(0, 1).double()
    expected = torch.einsum("hls,hle->hse", river.attention[5][:].double(), by_head)
    torch.testing.assert_close(of_values[0].double(), expected, atol=1e-6, rtol=1e-3)
