"""A BERT's folder is run by our own transformer, with the numbers of transformers; other folders by transformers."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import regard
from regard.errors import RegardError
from regard.nn.transformer import Transformer
from regard.trace.status import DEFINITION
from tests.support import MONEY, RIVER, make_tiny


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
