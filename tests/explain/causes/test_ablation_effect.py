"""What an ablation changed, against the formulas written out."""

from dataclasses import replace

import pytest
import torch

import regard
from regard.explain.causes.ablation_effect import divergence, effect, effects
from tests.support.own_models import opened

TEXT = "A man is fishing on a river bank."


def test_divergence_is_the_formula_of_kullback_and_leibler() -> None:
    kept, changed = (torch.randn(17, generator=torch.Generator().manual_seed(n)) for n in (3, 5))
    p, q = kept.double().softmax(0), changed.double().softmax(0)
    assert divergence(kept, changed) == pytest.approx(float((p * (p / q).log()).sum()), abs=1e-12)
    assert divergence(kept, changed) != pytest.approx(divergence(changed, kept), abs=1e-3)
    assert 0 <= divergence(kept, kept + 7) < 1e-6  # a constant says nothing, and rounding gives nothing negative
    ruled_out = torch.tensor([0.5, -torch.inf, 1.0])
    assert divergence(ruled_out, torch.tensor([0.5, 3.0, 1.0])) > 0  # what was impossible adds nothing itself


def test_nothing_ablated_is_no_effect_and_a_head_is_one() -> None:
    model = opened("gpt")
    trace = model.trace(TEXT)
    none = effect(trace, model.trace(TEXT), "bank")
    assert (none.moved, none.next_token, none.after_place) == (0, 0, 0)
    ablated = model.trace(TEXT, interventions=[regard.ablate(regard.head(1, 2))])
    found, compare = effect(trace, ablated, "bank"), effects(trace, "bank")
    assert found == compare(ablated)  # what is computed once for all is the same
    (token,) = trace.word("bank")[0].tokens
    before, after = trace.last_hidden_state[token].double(), ablated.last_hidden_state[token].double()
    assert found.moved == pytest.approx(1 - float(torch.cosine_similarity(before, after, dim=0)), abs=1e-12)
    assert trace.logits is not None
    assert ablated.logits is not None
    assert found.after_place == divergence(trace.logits[token], ablated.logits[token])
    assert found.next_token == divergence(trace.logits[-1], ablated.logits[-1])
    assert found.moved > 0
    assert found.after_place != found.next_token


def test_a_model_that_fills_gaps_says_nothing_of_what_comes_next() -> None:
    model = opened("bert")
    trace = model.trace(TEXT)
    ablated = model.trace(TEXT, interventions=[regard.ablate(regard.head(0, 1))])
    assert effect(trace, ablated, "bank").next_token is None
    gpt = opened("gpt")
    whole = gpt.trace(TEXT)
    assert effect(whole, replace(whole, logits=None), "bank").after_place is None
