"""The module that gives a layer's feed-forward output, found in families of every block shape."""

import pytest
import torch

import regard
from regard.models.model import Model
from tests.support import own_models
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
CHANGES = {
    "gemma2": {"head_dim": 4, "num_key_value_heads": 3},
    "opt": {"ffn_dim": 37, "word_embed_proj_dim": 24},
}


@pytest.mark.parametrize("kind", FOUND)
def test_the_module_of_a_family(kind: str) -> None:
    model = Model(make_model(kind, **CHANGES.get(kind, {})), None, name=kind)
    plain = model.trace(ids=IDS[0])
    source = model._reader.read("text", None, IDS[:1])[1][0]
    assert set(model._session.layout.feed_forwards(source, None).values()) == {FOUND[kind]}
    own = model.trace(ids=IDS[0], interventions=[regard.patch("feed_forward", layer=1, source=plain)])
    assert torch.equal(own.contextual, plain.contextual)


def test_a_transformer_of_ours() -> None:
    model = own_models.opened("gpt")
    source = model._reader.read("text", "A man is", None)[1][0]
    assert model._session.layout.feed_forwards(source, None) == {(0, n): "feedforward.output" for n in range(2)}


def test_what_is_no_modules_output_is_refused() -> None:
    """Granite multiplies it before it is added."""
    model = Model(make_model("granite", residual_multiplier=0.5), None, name="granite")
    plain = model.trace(ids=IDS[0])
    with pytest.raises(regard.RegardError, match="feed-forward block of layer 1 of granite adds is no module's output"):
        model.trace(ids=IDS[0], interventions=[regard.patch("feed_forward", layer=1, source=plain)])


def test_zero_of_what_is_not_found_is_refused() -> None:
    model = Model(make_model("granite", residual_multiplier=0.5), None, name="granite")
    with pytest.raises(regard.RegardError, match="feed-forward block of layer 1 of granite adds is no module's output"):
        model.trace(ids=IDS[0], interventions=[regard.patch("feed_forward", layer=1, source="zero")])
