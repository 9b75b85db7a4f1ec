"""The module that gives a layer's feed-forward output, found in families of every block shape."""

from typing import Any

import pytest
import torch

import regard
from benchmarks.tiny import make
from regard.models.model import Model
from tests.support.attention_outputs import make_model

IDS = torch.randint(1, 101, (2, 11), generator=torch.Generator().manual_seed(5))
FOUND = {
    "bert": "output.dense",
    "gpt2": "mlp.c_proj",
    "llama": "mlp.down_proj",
    "distilbert": "ffn.lin2",
    "phi": "mlp.fc2",
    "gpt_neox": "mlp.dense_4h_to_h",
    "gemma2": "post_feedforward_layernorm",
    "opt": "fc2",
}
CHANGES = {"gemma2": {"head_dim": 4, "num_key_value_heads": 3}, "opt": {"ffn_dim": 37, "word_embed_proj_dim": 24}}


@pytest.mark.parametrize("kind", FOUND)
def test_the_module_of_a_family(kind: str) -> None:
    model = Model(make_model(kind, **CHANGES.get(kind, {})), None, name=kind)
    plain = model.trace(ids=IDS[0])
    source = model._reader.read("text", None, IDS[:1])[1][0]
    assert set(model._session.structure.feed_forwards(source, None).values()) == {FOUND[kind]}
    own = model.trace(ids=IDS[0], interventions=[regard.patch("feed_forward", layer=1, source=plain)])
    assert torch.equal(own.last_hidden_state, plain.last_hidden_state)


def test_what_is_written_into_after_a_module_gave_it_is_the_output_of_one_further_out() -> None:
    raw, _ = make("llama4_text")  # adds its routed experts to the output of the shared one, in place
    model = Model(raw, None, name="llama4")
    plain, other = model.trace(ids=IDS[0] % 97), model.trace(ids=IDS[1] % 97)
    source = model._reader.read("text", None, IDS[:1] % 97)[1][0]
    assert set(model._session.structure.feed_forwards(source, None).values()) == {"feed_forward"}
    patched = model.trace(ids=IDS[0] % 97, interventions=[regard.patch("feed_forward", layer=3, source=other)])
    given = other.hidden_states[4] - raw_residual(raw, other)
    expected = raw_residual(raw, plain) + given
    torch.testing.assert_close(patched.hidden_states[4], expected, atol=1e-5, rtol=0)


def raw_residual(raw: Any, trace: Any) -> torch.Tensor:
    """What the last layer's feed-forward output is added to."""
    return trace.hidden_states[3] + trace.attention_outputs[3].added


def test_a_module_that_runs_twice_in_a_layer_is_not_taken() -> None:
    raw, _ = make("xmod")  # its adapters go through the dropout of the feed-forward block
    model = Model(raw, None, name="xmod")
    plain = model.trace(ids=IDS[0] % 97)
    with pytest.raises(regard.RegardError, match="is no module's output"):
        model.trace(ids=IDS[0] % 97, interventions=[regard.patch("feed_forward", layer=1, source=plain)])


def granite() -> Any:
    """Granite multiplies what the block gives before it is added: here by a vector, so that a number cannot stand."""
    model = make_model("granite", residual_multiplier=0.5)
    for layer in model.base_model.layers:
        layer.residual_multiplier = torch.full((model.config.hidden_size,), 0.5)
    return Model(model, None, name="granite")


def test_an_output_times_a_number_is_patched_as_the_module_gave_it() -> None:
    model = Model(make_model("granite", residual_multiplier=0.5), None, name="granite")
    plain, other = model.trace(ids=IDS[0]), model.trace(ids=IDS[1])
    own = model.trace(ids=IDS[0], interventions=[regard.patch("feed_forward", layer=1, source=plain)])
    assert torch.equal(own.last_hidden_state, plain.last_hidden_state)
    patched = model.trace(ids=IDS[0], interventions=[regard.patch("feed_forward", layer=0, source=other)])
    with torch.no_grad():  # by the family's own modules
        layer = model.model.base_model.layers[0]
        middle = [trace.hidden_states[1] for trace in (plain, other)]
        zero = model.trace(ids=IDS[0], interventions=[regard.patch("feed_forward", layer=0, source="zero")])
        between = model.trace(ids=IDS[1], interventions=[regard.patch("feed_forward", layer=0, source="zero")])
        added = [0.5 * layer.mlp(layer.post_attention_layernorm(each.hidden_states[1])) for each in (zero, between)]
    torch.testing.assert_close(zero.hidden_states[1] + added[0], middle[0], atol=1e-6, rtol=0)
    torch.testing.assert_close(patched.hidden_states[1], zero.hidden_states[1] + added[1], atol=1e-6, rtol=0)


def test_what_is_no_modules_output_is_refused() -> None:
    model = granite()
    plain = model.trace(ids=IDS[0])
    with pytest.raises(regard.RegardError, match="feed-forward block of layer 1 of granite adds is no module's output"):
        model.trace(ids=IDS[0], interventions=[regard.patch("feed_forward", layer=1, source=plain)])
