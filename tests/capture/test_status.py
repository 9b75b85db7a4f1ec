"""What a status says of each way to a trace: what was compared, how far it is, and what either side of a pair noted."""

import copy
import math
from typing import Any

import pytest
import torch

import regard
from regard.capture import eager_attention, hf_attention, regard_attention
from regard.capture.interventions.names import ablate, head
from regard.capture.state import SAME_INPUTS
from regard.models.model import Model
from tests.capture.test_eager_attention import tiny
from tests.support import RIVER

IDS = [5, 17, 3, 60, 41, 9, 2]


def half(minilm: Any, dtype: torch.dtype) -> Model:
    return Model(copy.deepcopy(minilm.model).to(dtype), minilm.tokenizer, name="half")


def test_it_names_what_the_weights_were_compared_with(bank, minilm) -> None:
    assert bank[0].status.compared_with == SAME_INPUTS
    assert minilm.trace(RIVER, window=10).status.compared_with == SAME_INPUTS
    reported = Model(tiny("mpnet"), None, name="mpnet").trace(ids=IDS).status
    assert reported.compared_with == eager_attention.REPORTED
    config = regard.TransformerConfig(vocabulary=97, d_model=24, heads=3, layers=2, length=31, kind="decoder")
    ours = regard.load(regard.Transformer(config)).trace(ids=IDS).status
    assert ours.compared_with == regard_attention.DEFINITION


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_compared_in_float32(minilm, monkeypatch, dtype: torch.dtype) -> None:
    """The family's own rounding to half precision is no error of the weights, which are computed in float32."""
    model = half(minilm, dtype)
    trace = model.trace(RIVER)
    assert trace.status.difference < 5e-6
    assert [f"computes in {trace.status.dtype}" in note for note in trace.status.notes] == [True]
    assert trace.status.compared_with == f"{SAME_INPUTS}, in float32"
    assert trace.attention[0].dtype == torch.float32

    original = hf_attention.attend

    def disturbed(query: Any, key: Any, value: Any, **rule: Any) -> Any:
        return original(query, key * 1.1, value, **rule)

    monkeypatch.setattr(hf_attention, "attend", disturbed)
    assert model.trace(RIVER).status.difference > 1e-3


@pytest.mark.parametrize("kind", ["bloom", "mpnet"])
def test_weights_that_a_family_rounds_are_noted(kind: str) -> None:
    """They are those that its output is made of, so nothing else is to be said of them."""
    model = tiny(kind).to(torch.bfloat16)
    trace = Model(model, None, name=kind).trace(ids=IDS)
    assert trace.status.notes[1:] == (eager_attention.NOTE, eager_attention.ROUNDED)
    with torch.no_grad():
        given = model(torch.tensor([IDS]), output_attentions=True).attentions[1][0].float()
    scaled = given / given.sum(-1, keepdim=True)
    torch.testing.assert_close(trace.attention[1].dense(), scaled, atol=1e-6, rtol=0)
    assert float((given - scaled).abs().max()) - 1e-6 < trace.status.difference < 2e-3


def test_what_is_no_number_is_endlessly_far(minilm, monkeypatch) -> None:
    from transformers.models.bert import modeling_bert

    right = modeling_bert.eager_attention_forward

    def broken(*given: Any, **options: Any) -> Any:
        output, weights = right(*given, **options)
        return output, weights * torch.nan

    monkeypatch.setattr(modeling_bert, "eager_attention_forward", broken)
    status = minilm.trace(RIVER).status
    assert status.difference == math.inf
    assert any("model's own" in note or "attention function" in note for note in status.notes)


def test_of_a_pair_it_says_what_either_side_has_to_say(tiny_pair) -> None:
    traced = tiny_pair.trace("the man ☃", target="sur la rive", interventions=[ablate(head(0, 1, part="encoder"))])
    source, target, both = traced.encoder.status, traced.decoder.status, traced.status
    assert source.unknown == both.unknown == ("☃",)
    assert target.unknown == ()
    assert source.seconds == target.seconds == both.seconds > 0
    assert any(note.startswith("ablated: ") for note in source.notes)
    source.notes += ("of the encoder",)
    target.notes += ("of the decoder",)
    assert traced.status.notes == (*source.notes, "of the decoder")
    assert (both.difference, both.rows_compared) == (target.difference, target.rows_compared)


def test_unknown_characters_of_a_source_are_shown(tiny_pair) -> None:
    told = " ".join(str(regard.see(tiny_pair.trace("the man ☃", target="sur la rive"))).split())
    assert "tokens of text 1 are unknown to the tokenizer of " in told
    assert ": “☃”. " in told
