"""What a trace gives in the place of transformers' output is what the model itself returns."""

from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.models.model import Model
from regard.trace import transformers_output
from tests.support import RIVER
from tests.support.attention_outputs import make_model

IDS = [7, 11, 13, 17, 19, 23, 29]
DISTINCT = ("bert", "gpt2", "llama", "opt", "gemma2", "modernbert", "t5", "bart")  # final norms of every kind, or none


def own_output(model: Any, **inputs: Any) -> Any:
    """What the model itself returns, by its own eager attention."""
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        with torch.no_grad():
            return model(**inputs, output_hidden_states=True, output_attentions=True)
    finally:
        model.set_attn_implementation(before)


def compare(found: Any, expected: Any, tolerance: float = 1e-5) -> None:
    """Every field that the model's own output has, but for caches, what it pools of its states, and empty ones."""
    empty = {name for name in expected if isinstance(expected[name], tuple) and not expected[name]}
    aside = {"past_key_values", "pooler_output"} | empty
    fields = [name for name in expected if name not in aside]
    assert {"hidden_states", "decoder_hidden_states"} & set(fields)
    for name in fields:
        many = isinstance(expected[name], tuple)
        pairs = (found[name], expected[name]) if many else ([found[name]], [expected[name]])
        for a, b in zip(*pairs, strict=True):
            torch.testing.assert_close(a, b, atol=tolerance, rtol=0, msg=lambda said, name=name: f"{name}: {said}")


@pytest.mark.parametrize("kind", DISTINCT)
def test_families(kind: str) -> None:
    sizes = {"head_dim": 4, "num_key_value_heads": 2} if kind == "gemma2" else {}
    own = make_model(kind, **sizes)
    model, ids = Model(own, None, name=kind), torch.tensor([IDS])
    if model.pairs:
        trace, inputs = model.trace(ids=IDS, target_ids=IDS[:5]), {"decoder_input_ids": ids[:, :5]}
    else:
        trace, inputs = model.trace(ids=IDS), {}
    expected = own_output(own, input_ids=ids, **inputs)
    found = trace.as_transformers()
    largest = max(float(state.abs().max()) for state in expected[[*expected][-2]])
    compare(found, expected, 1e-5 * max(1.0, largest))
    assert found[0] is found.last_hidden_state
    assert found.logits is None
    assert "logits" not in found


def test_layers_without_attention_have_none() -> None:
    types = ["conv", "full_attention", "conv", "full_attention"]
    own = make_model("lfm2", num_hidden_layers=4, layer_types=types, num_key_value_heads=2)
    found = Model(own, None, name="lfm2").trace(ids=IDS).as_transformers()
    assert (len(found.hidden_states), len(found.attentions)) == (5, 2)
    compare(found, own_output(own, input_ids=torch.tensor([IDS])))


def test_minilm(minilm: Any) -> None:
    trace = minilm.trace(RIVER)
    compare(trace.as_transformers(), own_output(minilm.model, **minilm.tokenizer(RIVER, return_tensors="pt")))


def test_a_model_that_writes(stories: Any) -> None:
    text = "Once upon a time there was a dog."
    found = stories.trace(text).as_transformers()
    expected = own_output(stories.model, **stories.tokenizer(text, return_tensors="pt"))
    compare(found, expected, 1e-6 * float(expected.logits.abs().max()))  # logits of 20: 1e-5 is three of their bits
    assert found.logits.shape[::2] == (1, 512)
    torch.testing.assert_close(found.hidden_states[-1], found.last_hidden_state)


def test_a_translator(opus_mt: Any) -> None:
    pair = opus_mt.trace("A man on a river bank.", target="Un homme sur la rive.")
    ids = {
        name: torch.tensor([[token.id for token in side.tokens]])
        for name, side in (("input_ids", pair.encoder), ("decoder_input_ids", pair.decoder))
    }
    expected = own_output(opus_mt.model, **ids)
    assert {"logits", "cross_attentions", "encoder_attentions", "encoder_last_hidden_state"} <= set(expected)
    compare(pair.as_transformers(), expected)


def test_dense_weights_are_refused_where_they_are_large(minilm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = minilm.trace("a river bank")
    size = 6 * 12 * 5 * 5 * 4
    monkeypatch.setattr(transformers_output, "LARGEST", size - 1)
    says = "dense attentions of all-MiniLM-L6-v2 for this text are 7.0 KiB, above the limit of 7.0 KiB: attentions=True"
    with pytest.raises(regard.RegardError, match=says):
        trace.as_transformers()
    assert trace.as_transformers(attentions=True).attentions[5].shape == (1, 12, 5, 5)
    bare = trace.as_transformers(attentions=False)
    assert bare.attentions is None
    assert len(bare.hidden_states) == 7
    monkeypatch.setattr(transformers_output, "LARGEST", size)
    assert len(trace.as_transformers().attentions) == 6
    monkeypatch.setattr("regard.memory.SMALL", 0)
    monkeypatch.setattr("regard.memory.available", lambda device: 5)
    with pytest.raises(regard.RegardError, match=r"dense attentions needs 7.0 KiB of memory, only 5 bytes are free"):
        trace.as_transformers()


def test_layers_that_are_not_held(minilm: Any, tmp_path: Path) -> None:
    trace = minilm.trace("a river bank", layers=[2])
    with pytest.raises(regard.RegardError, match="holds attention of 2 only, expected all: trace without layers="):
        trace.as_transformers()
    with pytest.raises(regard.RegardError, match="holds hidden_states of 2, 3 only"):
        trace.as_transformers(attentions=False)
    whole = minilm.trace("a river bank")
    whole.save(tmp_path / "some.safetensors", layers=[0, 5])
    opened = regard.open(tmp_path / "some.safetensors")
    with pytest.raises(regard.RegardError, match="holds attention of 0, 5 only, .* save without layers="):
        opened.as_transformers()
    assert len(opened.as_transformers(attentions=False).hidden_states) == 7
    whole.save(tmp_path / "all.safetensors")
    compare(regard.open(tmp_path / "all.safetensors").as_transformers(), whole.as_transformers(), 0)
