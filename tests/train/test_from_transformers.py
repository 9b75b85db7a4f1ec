"""Weights of pretrained families in our own transformer: what comes out is what their own code gives, within 1e-4."""

from typing import Any

import pytest
import torch
import transformers

import regard
from regard.model_files.folder import default_folder
from regard.train.from_transformers import from_transformers
from tests.support import RIVER

SIZES: dict[str, Any] = {
    "Bert": {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 37},
    "GPT2": {"n_embd": 24, "n_layer": 2, "n_head": 3, "n_inner": 37, "bos_token_id": 1, "eos_token_id": 2},
    "Llama": {
        "hidden_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "intermediate_size": 37,
        "rope_parameters": {"rope_type": "default", "rope_theta": 500.0},
    },
}
FAMILIES = ["BertModel", "BertForMaskedLM", "GPT2Model", "GPT2LMHeadModel", "LlamaModel", "LlamaForCausalLM"]


def tiny(name: str, **changes: Any) -> Any:
    """A random model whose norms and biases are not what they begin as."""
    torch.manual_seed(0)
    family = next(family for family in SIZES if name.startswith(family))
    config = getattr(transformers, f"{family}Config")(vocab_size=101, **(SIZES[family] | changes))
    model = getattr(transformers, name)(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def compare(model: Any, **inputs: torch.Tensor) -> Any:
    """Both models on the same ids; padding tokens are not compared."""
    ours = from_transformers(model)
    with torch.no_grad():
        theirs, got = model(**inputs, output_hidden_states=True), ours(**inputs)
    last = theirs.last_hidden_state if hasattr(theirs, "last_hidden_state") else theirs.hidden_states[-1]
    real = inputs.get("attention_mask", torch.ones_like(inputs["input_ids"])).bool()
    torch.testing.assert_close(got.last_hidden_state[real], last[real], rtol=0, atol=1e-4)
    if hasattr(theirs, "logits"):
        torch.testing.assert_close(got.logits[real], theirs.logits[real], rtol=0, atol=1e-4)
    else:
        assert got.logits is None
    return ours


@pytest.mark.parametrize("name", FAMILIES)
def test_the_same_states_and_logits(name: str) -> None:
    ids = torch.randint(101, (2, 13), generator=torch.Generator().manual_seed(3))
    mask = torch.tensor([[1] * 13, [1] * 9 + [0] * 4])
    model = tiny(name)
    compare(model, input_ids=ids)
    compare(model, input_ids=ids, attention_mask=mask)
    if name.startswith("Bert"):
        compare(model, input_ids=ids, token_type_ids=(torch.arange(13) > 5).long().expand(2, -1))


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("BertForMaskedLM", {"tie_word_embeddings": False, "hidden_act": "gelu_new"}),
        ("GPT2LMHeadModel", {"activation_function": "relu", "n_inner": None}),
        ("LlamaForCausalLM", {"tie_word_embeddings": True, "head_dim": 10}),
        ("LlamaForCausalLM", {"attention_bias": True, "mlp_bias": True}),
    ],
    ids=str,
)
def test_their_options(name: str, changes: dict[str, Any]) -> None:
    ours = compare(tiny(name, **changes), input_ids=torch.arange(1, 12)[None])
    tied = changes.get("tie_word_embeddings", name == "GPT2LMHeadModel")
    assert (ours.head.weight is ours.embedding.weight) == tied


def test_the_copy_is_ones_own() -> None:
    model, ids = tiny("GPT2LMHeadModel"), torch.arange(1, 12)[None]
    before = from_transformers(model)(ids).logits
    ours = from_transformers(model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        assert torch.equal(ours(ids).logits, before)


def test_minilm_with_our_parts(minilm: Any) -> None:
    """The real thing: the default model's trace, once by its own code and once by ours."""
    model = transformers.AutoModel.from_pretrained(default_folder(), dtype=torch.float32).eval()
    compare(model, **minilm.tokenizer([RIVER, "bank"], return_tensors="pt", padding=True))
    theirs, ours = minilm.trace(RIVER), regard.load(from_transformers(model), tokenizer=minilm.tokenizer).trace(RIVER)
    assert ours.tokens == theirs.tokens
    for name in ("token_embeddings", "position_embeddings", "segment", "input", "last_hidden_state"):
        torch.testing.assert_close(getattr(ours, name), getattr(theirs, name), rtol=0, atol=1e-4)
    for a, b in zip(ours.hidden_states, theirs.hidden_states, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-4)
    for a, b in zip(ours.attention, theirs.attention, strict=True):
        torch.testing.assert_close(a.dense(), b.dense(), rtol=0, atol=1e-5)
    assert [block.kind for block in ours.attention_outputs] == ["post-norm"] * 6


def test_stories_with_our_parts(stories) -> None:
    model, tokenizer = stories.model, stories.tokenizer
    text = "Once upon a time, there was a little"
    ours = compare(model, **tokenizer(text, return_tensors="pt", return_token_type_ids=False))
    told = regard.load(ours, tokenizer=tokenizer).generate(text, max_new_tokens=30)
    assert told.text == stories.generate(text, max_new_tokens=30).text
    assert told.trace.status.difference < 5e-6


@pytest.mark.parametrize(
    ("name", "changes", "says"),
    [
        ("BertForSequenceClassification", {}, "got a BertForSequenceClassification, expected one of BertModel"),
        ("BertModel", {"is_decoder": True}, "is_decoder or add_cross_attention=True"),
        ("BertModel", {"hidden_act": "mish"}, "activation='mish'"),
        ("GPT2Model", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx=True"),
        ("GPT2Model", {"embd_pdrop": 0.3}, "embd_pdrop='0.3 beside resid_pdrop=0.1'"),
        ("LlamaModel", {"attention_bias": True}, "attention_bias='True beside mlp_bias=False'"),
        (
            "LlamaModel",
            {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 500.0}},
            "rope_parameters={'",
        ),
    ],
    ids=str,
)
def test_what_has_no_counterpart_is_refused(name: str, changes: dict[str, Any], says: str) -> None:
    with pytest.raises(regard.RegardError, match=says):
        from_transformers(tiny(name, **changes))
