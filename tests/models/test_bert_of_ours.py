"""Folders of a bare BERT run on our own Transformer: to the same bits and tokens as through transformers."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.models.load import load_tokenizer
from regard.nn.transformer import Transformer
from regard.text.bert_tokenizer import BertTokenizer
from regard.text.tokens import encode_all, encode_parts
from regard.trace.status import DEFINITION
from tests.support import MONEY, RIVER, make_tiny

ODD = [
    "Zürich, ﬁne İstanbul ΑΣ",
    "e\u0301cole 銀行\t\u200b x 3.14",
    "A [MASK] b [SEP] c",
    "x" * 150,
    "🙂 👨‍👩‍👧 ☃ \ufffd",
]


def runs_on_ours(model: Any) -> bool:
    return isinstance(model._session.original, Transformer)


@pytest.fixture
def tiny(tmp_path: Path, minilm: Any) -> Path:
    make_tiny(tmp_path, minilm)
    return tmp_path


def test_traces_are_those_of_transformers_to_the_bit() -> None:
    model, texts = regard.load(device="cpu"), [RIVER, MONEY, "A man. " * 60]
    traces, vector = model.trace(texts), model.embedding(RIVER)
    assert runs_on_ours(model)
    assert {trace.status.compared_with for trace in traces} == {DEFINITION}
    assert model.model is model._session.original  # asked for: it runs from here on
    assert type(model.model).__name__ == "BertModel"
    assert callable(model.tokenizer.save_pretrained)
    for ours, theirs in zip(traces, model.trace(texts), strict=True):
        assert ours.tokens == theirs.tokens
        assert (
            ours.status.difference < 2e-7 > abs(ours.status.embedding_difference - theirs.status.embedding_difference)
        )
        assert torch.equal(ours.token_embeddings, theirs.token_embeddings)
        for one, other in zip(ours.hidden_states, theirs.hidden_states, strict=True):
            assert torch.equal(one, other)
        for one, other in zip(ours.attention, theirs.attention, strict=True):
            assert torch.equal(one.dense(), other.dense())
    assert torch.equal(vector, model.embedding(RIVER))


def test_texts_are_read_as_transformers_reads_them(minilm: Any) -> None:
    ours, theirs = load_tokenizer(), minilm.tokenizer
    assert isinstance(ours, BertTokenizer)
    assert encode_all(ours, ODD) == encode_all(theirs, ODD)
    for pair in (True, False):
        assert encode_parts(ours, ODD[:2], pair=pair) == encode_parts(theirs, ODD[:2], pair=pair)
    assert ours.num_special_tokens_to_add(pair=True) == theirs.num_special_tokens_to_add(pair=True) == 3


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
        ("tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast"}, False),
    ],
)
def test_a_folder_that_says_more_is_left_to_transformers(tiny: Path, file: str, change: Any, ours: bool) -> None:
    content = json.loads((tiny / file).read_text(encoding="utf-8"))
    (tiny / file).write_text(json.dumps(content | change), encoding="utf-8")
    assert runs_on_ours(regard.load(tiny, device="cpu")) is ours


def test_what_is_asked_of_the_model_object_is_left_to_transformers(tiny: Path) -> None:
    tokenizer = regard.load(tiny, device="cpu").tokenizer
    for options in ({"dtype": "bfloat16"}, {"tokenizer": tokenizer}):
        assert not runs_on_ours(regard.load(tiny, device="cpu", **options))
