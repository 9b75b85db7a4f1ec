"""Folders of a bare BERT run on our own Transformer: to the same bits as through transformers."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.nn.transformer import Transformer
from regard.trace.status import DEFINITION
from tests.support import MONEY, RIVER, make_tiny


def runs_on_ours(model: Any) -> bool:
    return isinstance(model._session.original, Transformer)


def test_traces_are_those_of_transformers_to_the_bit() -> None:
    model, texts = regard.load(device="cpu"), [RIVER, MONEY, "A man. " * 60]
    traces, vector = model.trace(texts), model.embedding(RIVER)
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
    assert torch.equal(vector, model.embedding(RIVER))


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
