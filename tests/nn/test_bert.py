"""Weights of pretrained families in our own transformer: what comes out is what their own code gives, within 1e-4."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

import regard
from regard.errors import RegardError
from regard.model_files.folder import default_folder
from regard.nn.transformer import Transformer
from regard.trace.status import DEFINITION
from tests.support import MONEY, RIVER, make_tiny
from tests.support.transformers_weights import with_weights_of


def runs_on_ours(model: Any) -> bool:
    return isinstance(model._session.original, Transformer)


def test_traces_are_those_of_transformers_to_the_bit() -> None:
    model, texts = regard.load(device="cpu"), [RIVER, MONEY, "A man. " * 60]
    traces = model.trace(texts)
    assert runs_on_ours(model)
    assert {trace.status.compared_with for trace in traces} == {DEFINITION}
    assert max(trace.status.difference for trace in traces) < 2e-7
    assert callable(model.tokenizer.save_pretrained)  # asked for: transformers' run from here on
    assert type(model.model).__name__ == "BertModel"
    assert model.model is model._session.original
    for ours, theirs in zip(traces, model.trace(texts), strict=True):
        assert ours.tokens == theirs.tokens
        assert torch.equal(ours.token_embeddings, theirs.token_embeddings)
        for one, other in zip(ours.hidden_states, theirs.hidden_states, strict=True):
            assert torch.equal(one, other)
        for one, other in zip(ours.attention, theirs.attention, strict=True):
            assert torch.equal(one.dense(), other.dense())


@pytest.mark.parametrize(
    ("file", "change", "ours"),
    [
        ("config.json", {}, True),
        ("config.json", {"architectures": ["BertForMaskedLM"]}, False),
        ("config.json", {"hidden_act": "quick_gelu"}, False),
        ("config.json", {"an_entry": "of another version"}, False),
        ("tokenizer_config.json", {"model_max_length": 7}, True),
        ("tokenizer_config.json", {"do_lower_case": False}, False),
        ("tokenizer_config.json", {"split_special_tokens": True}, False),
    ],
)
def test_what_a_folder_says_more_is_left_to_transformers(
    tmp_path: Path, minilm: Any, file: str, change: Any, ours: bool
) -> None:
    make_tiny(tmp_path, minilm)
    content = json.loads((tmp_path / file).read_text(encoding="utf-8"))
    (tmp_path / file).write_text(json.dumps(content | change), encoding="utf-8")
    model = regard.load(tmp_path, device="cpu")
    assert runs_on_ours(model) is ours
    assert not runs_on_ours(regard.load(tmp_path, device="cpu", dtype="bfloat16"))


def test_what_stands_for_it_is_opened_once_and_only_if_its_files_are_the_same(tmp_path: Path, minilm: Any) -> None:
    make_tiny(tmp_path, minilm)
    model, other = regard.load(tmp_path, device="cpu"), regard.load(tmp_path, device="cpu")
    assert not model.writes
    assert runs_on_ours(model)  # asking that opens nothing
    with ThreadPoolExecutor() as pool:
        assert len(set(pool.map(lambda _: id(model.model), range(4)))) == 1
    weights = {name: tensor + 1 for name, tensor in load_file(tmp_path / "model.safetensors").items()}
    save_file(weights, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(RegardError, match="its files changed since it was loaded"):
        _ = other.tokenizer
    assert runs_on_ours(other)


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
    ours = with_weights_of(model)
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


def test_minilm_with_our_parts(minilm: Any) -> None:
    """The real thing: the default model's trace, once by its own code and once by ours."""
    model = transformers.AutoModel.from_pretrained(default_folder(), dtype=torch.float32).eval()
    compare(model, **minilm.tokenizer([RIVER, "bank"], return_tensors="pt", padding=True))
    theirs, ours = minilm.trace(RIVER), regard.load(with_weights_of(model), tokenizer=minilm.tokenizer).trace(RIVER)
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
