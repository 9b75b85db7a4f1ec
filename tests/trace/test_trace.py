import re
from dataclasses import replace
from typing import Any

import pytest
import torch
import transformers

import regard
from regard.errors import RegardError
from regard.trace.trace import is_causal
from tests.support import RIVER, make_tiny
from tests.support.attention_outputs import make_model, traced


def test_a_trace_says_what_it_is(bank) -> None:
    assert repr(bank[0]) == f"Trace({RIVER!r}, 14 tokens, 6 layers, all-MiniLM-L6-v2)"
    assert not any(t.requires_grad for t in bank[0].hidden_states)


def test_a_layer_that_there_is_not(bank) -> None:
    trace = bank[0]
    for number in (6, 99, -7):
        named = re.escape(f"attention[{number}]: there is no such layer; there are 6 (-6 to 5)")
        with pytest.raises(IndexError, match=named) as caught:
            trace.attention[number]
        assert isinstance(caught.value, RegardError)
    assert trace.attention[-1] is trace.attention[5]
    assert list(trace.attention) == [trace.attention[n] for n in range(6)]
    assert trace.attention[1:3] == (trace.attention[1], trace.attention[2])
    assert trace.attentions is trace.attention


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_maps_may_be_a_list(bank) -> None:
    maps: Any = [*bank[0].attention]
    assert replace(bank[0], attention=maps).attention[1]["bank", "river"].shape == (12,)


@pytest.mark.parametrize("kind", ["bert", "gpt2", "llama", "opt"])
def test_what_adds_up_to_what(kind: str) -> None:
    """The formulas of the module, on every layer of random models."""
    trace = traced(make_model(kind), torch.tensor([[7, 11, 13, 17, 19]]))
    parts = [part for part in (trace.token_embeddings, trace.position_embeddings, trace.segment) if part is not None]
    torch.testing.assert_close(torch.stack(parts).sum(0), trace.input, atol=1e-5, rtol=0)
    for n, (weights, value, output) in enumerate(
        zip(trace.attention, trace.values, trace.attention_outputs, strict=True)
    ):
        heads, length, size = weights.shape
        dense = weights.dense()
        torch.testing.assert_close(dense.sum(-1), torch.ones(heads, length), atol=1e-6, rtol=0)
        per_head = value.repeat_interleave(heads // len(value), 0)  # (G, S, E) to (H, S, E)
        context = (dense @ per_head).transpose(0, 1).reshape(size, -1)
        projected = context @ output.weight.T + (0 if output.bias is None else output.bias)
        torch.testing.assert_close(output.projected, projected, atol=1e-5, rtol=0)
        torch.testing.assert_close(output.residual, trace.hidden_states[n], atol=1e-5, rtol=0)


def test_the_sides_of_a_pair(pair, trace) -> None:
    assert pair.sides == (pair.encoder, pair.decoder)
    assert trace.sides == (trace,)


def test_a_causal_model_looks_at_nothing_later(minilm, bank, tmp_path) -> None:
    model = transformers.LlamaForCausalLM(make_tiny(tmp_path, minilm, "llama").config).eval()
    assert is_causal(regard.load(model, tokenizer=minilm.tokenizer).trace("a man on a river bank"))
    assert not is_causal(bank[0])
