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
        ({"kind": "both"}, "kind: got 'both', expected 'encoder' or 'decoder' or 'encoder-decoder'"),
        ({"vocabulary": 0}, "vocabulary: got 0, expected 1 or more"),
        ({"layers": 2.0}, "layers: got 2.0, expected a whole number"),
        ({"layers": True}, "layers: got True, expected a whole number"),
        ({"num_layers": 3}, "TransformerConfig: unknown argument 'num_layers', did you mean 'layers'"),
        ({"d_model": 10}, "d_model: got 10, expected a multiple of the 4 heads, or d_k as well"),
        ({"key_heads": 3}, "key_heads: got 3, expected a number that divides the 4 heads"),
        ({"positions": "rotary", "d_k": 3}, "d_k: got 3, expected an even width"),
        ({"length": None}, "length: got None, expected a number of tokens"),
        ({"dropout": 1.0}, "dropout: got 1.0, expected a probability from 0 to below 1"),
        ({"norm_eps": float("nan")}, "norm_eps: got nan, expected a number above 0"),
        ({"bias": 1}, "bias: got 1, expected true or false"),
        ({"output": "none", "output_bias": True}, "output: got 'none', expected 'tied' or 'free'"),
        ({"start": 3}, "start: got 3, expected None for a model of kind 'decoder'"),
        ({"kind": "encoder-decoder"}, "start: got None, expected an id that its decoder begins with"),
        ({"kind": "encoder-decoder", "start": 11}, "start: got 11, expected an id of the vocabulary, 0 to 10"),
        ({"segments": -1}, "segments: got -1, expected 0 or more"),
        ({"kind": "encoder-decoder", "start": 1, "segments": 2}, "segments: got 2, expected 0"),
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
        ({"regard": "trace"}, "regard is 'trace', expected 'transformer'"),
        ({"version": 2}, "format version 2, this regard reads 1: update regard"),
        ({"depth": 2}, "config.json: .*'depth'"),
        ({"layers": 0}, "config.json: layers: got 0, expected 1 or more"),
        ({"vocabulary": None}, "config.json: vocabulary: got None, expected a whole number"),
    ],
    ids=str,
)
def test_a_broken_config_is_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(regard.RegardError, match=says):
        TransformerConfig.from_json(TransformerConfig.nanogpt(65).as_json() | changes)
    without = {key: value for key, value in TransformerConfig.nanogpt(65).as_json().items() if key != "vocabulary"}
    with pytest.raises(regard.RegardError, match="config.json: .*'vocabulary'"):
        TransformerConfig.from_json(without)
