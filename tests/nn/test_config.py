"""What a transformer is made of: refused where it cannot be, and the same after a round through JSON."""

import json
from typing import Any

import pytest
import torch

import regard
from regard.nn.config import TransformerConfig
from regard.nn.transformer import Transformer

pytestmark = pytest.mark.usefixtures("no_checks_of_annotations")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"kind": "both"}, "kind: given 'both', needs to be 'encoder' or 'decoder' or 'encoder-decoder'"),
        ({"vocabulary": 0}, "vocabulary: given 0, needs to be 1 or more"),
        ({"layers": 2.0}, "layers: given 2.0, needs to be a whole number"),
        ({"layers": True}, "layers: given True, needs to be a whole number"),
        ({"num_layers": 3}, "TransformerConfig: unknown argument 'num_layers', did you mean 'layers'"),
        ({"d_model": 10}, "d_model: given 10, needs to be a multiple of the 4 heads, or a d_k beside it"),
        ({"key_heads": 3}, "key_heads: given 3, needs to be a number that divides the 4 heads"),
        ({"positions": "rotary", "d_k": 3}, "d_k: given 3, needs to be an even width"),
        ({"length": None}, "length: given None, needs to be a number of tokens"),
        ({"dropout": 1.0}, "dropout: given 1.0, needs to be a probability from 0 to below 1"),
        ({"norm_eps": float("nan")}, "norm_eps: given nan, needs to be a number above 0"),
        ({"bias": 1}, "bias: given 1, needs to be true or false"),
        ({"output": "none", "output_bias": True}, "output: given 'none', needs to be tied or free"),
        ({"start": 3}, "start: given 3, needs to be None for a model of kind 'decoder'"),
        ({"kind": "encoder-decoder"}, "start: given None, needs to be an id that its decoder begins with"),
        ({"kind": "encoder-decoder", "start": 11}, "start: given 11, needs to be an id of the vocabulary, 0 to 10"),
        ({"segments": -1}, "segments: given -1, needs to be 0 or more"),
        ({"kind": "encoder-decoder", "start": 1, "segments": 2}, "segments: given 2, needs to be 0"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused_by_name(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(regard.RegardError, match=says.replace("(", r"\(")):
        TransformerConfig(**({"vocabulary": 11, "length": 7, "d_model": 8} | changes))


PRESETS = {
    "nanogpt": (TransformerConfig.nanogpt(65), 804_096),
    "gpt2": (TransformerConfig.gpt2(), 124_439_808),
    "bert": (TransformerConfig.bert(), 108_891_648),
    "llama": (TransformerConfig.llama(), 58_073_600),
    "translator": (TransformerConfig.translator(8000, 1), 6_002_688),
}


@pytest.mark.parametrize("name", PRESETS)
def test_presets_have_the_sizes_that_are_known(name: str) -> None:
    """GPT-2: 124.4 million; BERT-base without its pooler: 109.5 less 0.6; nanoGPT's CPU model: 0.80."""
    config, count = PRESETS[name]
    with torch.device("meta"):
        model = Transformer(config)
    assert sum(p.numel() for p in model.parameters()) == count
    assert TransformerConfig.from_json(json.loads(json.dumps(config.as_json()))) == config


def test_presets_can_be_changed() -> None:
    config = TransformerConfig.nanogpt(65, length=256, dropout=0.2)
    assert (config.length, config.dropout, config.layers) == (256, 0.2, 4)
    with pytest.raises(regard.RegardError, match="'depth'. It takes vocabulary=, kind=, "):
        TransformerConfig.nanogpt(65, depth=3)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"regard": "trace"}, "regard is 'trace', needs 'transformer'"),
        ({"version": 2}, "format version 2, this regard reads 1: update it"),
        ({"depth": 2}, "'depth' is no entry of a transformer's config"),
        ({"layers": 0}, "config.json: layers: given 0, needs to be 1 or more"),
        ({"vocabulary": None}, "config.json: vocabulary: given None, needs to be a whole number"),
    ],
    ids=str,
)
def test_a_broken_config_is_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(regard.RegardError, match=says):
        TransformerConfig.from_json(TransformerConfig.nanogpt(65).as_json() | changes)
    without = {key: value for key, value in TransformerConfig.nanogpt(65).as_json().items() if key != "vocabulary"}
    with pytest.raises(regard.RegardError, match="'vocabulary' is missing"):
        TransformerConfig.from_json(without)
