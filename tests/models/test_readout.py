"""From states to logits by the model's own way: of its last states its own logits, of others what its head makes."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from regard.errors import RegardError
from regard.models.readout import Readout, gradient_run
from tests.support import generation
from tests.support.own_models import opened, pair

TEXT = "A man is fishing on a river bank."


def test_the_last_states_give_the_traces_logits() -> None:
    model = opened("gpt")
    trace = model.trace(TEXT)
    readout = Readout(model, trace)
    assert trace.logits is not None
    torch.testing.assert_close(readout.logits, trace.logits, atol=1e-5, rtol=0)
    torch.testing.assert_close(readout(trace.hidden_states[-1]), trace.logits, atol=1e-5, rtol=0)


def test_any_states_go_through_norm_and_head() -> None:
    model = opened("llama")
    trace = model.trace(TEXT)
    states = torch.randn(5, 12, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        expected = model.model.head(model.model.decoder_norm(states))
    torch.testing.assert_close(Readout(model, trace)(states), expected, atol=1e-5, rtol=0)


def test_other_models_are_refused() -> None:
    gpt, bert, both = opened("gpt"), opened("bert"), pair()
    trace = gpt.trace(TEXT)
    with pytest.raises(RegardError, match="next: transformer is an encoder-decoder: the trace is another model's"):
        Readout(both, trace)
    with pytest.raises(RegardError, match="has no language-model head"):
        Readout(bert, bert.trace(TEXT))
    larger = opened("gpt").trace(ids=[0, 1])
    large = replace(larger, tokens=tuple(replace(token, id=10**6) for token in larger.tokens))
    with pytest.raises(RegardError, match="the trace has token ids that transformer doesn't know"):
        Readout(gpt, large)
    pairs = both.trace(TEXT, target="Une banque")
    assert pairs.decoder.logits is not None
    found = Readout(both, pairs.decoder, pairs.encoder)(pairs.decoder.hidden_states[-1])
    torch.testing.assert_close(found, pairs.decoder.logits, atol=1e-5, rtol=0)


def test_the_trace_is_left_as_it_was(minilm: Any) -> None:
    trace = minilm.trace("A text.")
    before = trace.last_hidden_state.clone()
    _, shown = gradient_run(minilm, trace, lambda _, rows: rows * 0.5)
    assert not shown.last_hidden_state.allclose(before, atol=1e-2)
    assert trace.last_hidden_state.equal(before)
    assert not trace.last_hidden_state.requires_grad
    assert shown.tokens is trace.tokens


def test_what_is_not_a_trace_of_the_model_is_refused(minilm: Any) -> None:
    with pytest.raises(RegardError, match="the trace has to be of all-MiniLM-L6-v2"):
        gradient_run(minilm, generation.opened("llama").trace(ids=generation.IDS))
