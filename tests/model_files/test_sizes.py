"""Layers and heads from a model's files: the loaded model's, or None."""

import json
import os
from pathlib import Path

import pytest

from regard.errors import RegardError
from regard.model_files.sizes import ModelSizes, config_layers_and_heads, is_encoder_decoder, read_sizes


@pytest.mark.parametrize(
    ("config", "layers", "heads"),
    [
        ({"n_layer": 12, "n_head": 8}, 12, 8),
        ({"n_layers": 6, "n_heads": 4}, 6, 4),
        ({"num_layers": 6, "num_decoder_layers": 6, "num_heads": 4}, 6, 4),
        ({"num_layers": 6, "num_decoder_layers": 3, "num_heads": 4}, None, 4),  # which side is meant is told later
        ({"encoder_layers": 6, "num_hidden_layers": 6, "decoder_layers": 6, "encoder_attention_heads": 8,
          "decoder_attention_heads": 4}, 6, None),
        ({"num_hidden_layers": 4, "layer_types": ["full_attention", "linear_attention"] * 2}, None, None),
        ({"num_hidden_layers": 2, "layer_types": ["full_attention", "sliding_attention"]}, 2, None),
        ({"num_hidden_layers": 2, "text_config": {"num_hidden_layers": 4}}, None, None),
        ({"num_hidden_layers": "two", "num_attention_heads": -3}, None, None),
        ({"num_hidden_layers": [2], "num_attention_heads": True}, None, None),
        ({}, None, None),
    ],
)  # fmt: skip
def test_layers_and_heads_where_they_are_beyond_doubt(config: dict, layers: int | None, heads: int | None) -> None:
    assert config_layers_and_heads(config) == (layers, heads)


def test_encoder_decoders_where_they_are_beyond_doubt() -> None:
    assert is_encoder_decoder({"is_encoder_decoder": True, "architectures": ["T5ForConditionalGeneration"]}) is True
    assert is_encoder_decoder({"is_encoder_decoder": True, "architectures": ["T5EncoderModel"]}) is None
    assert is_encoder_decoder({"d_kv": 8}) is None
    assert is_encoder_decoder({"is_encoder_decoder": False, "decoder_layers": 2}) is False
    assert is_encoder_decoder({"num_hidden_layers": 2}) is False


def test_a_pipe_does_not_block(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    os.mkfifo(tmp_path / "model" / "config.json")
    os.mkfifo(tmp_path / "a.gguf")
    with pytest.raises(RegardError, match="config.json"):
        read_sizes(tmp_path / "model")
    assert read_sizes(tmp_path / "a.gguf").pairs is None


def test_a_gguf_file_tells_its_architecture(tmp_path: Path) -> None:
    key = b"general.architecture"
    for name, pairs in ((b"llama", False), (b"t5", True), (b"t5encoder", False)):
        counts = (0).to_bytes(8, "little") + (1).to_bytes(8, "little")  # no tensor, one entry
        start = b"GGUF" + (3).to_bytes(4, "little") + counts + len(key).to_bytes(8, "little") + key
        file = tmp_path / "a.gguf"
        file.write_bytes(start + (8).to_bytes(4, "little") + len(name).to_bytes(8, "little") + name)
        assert read_sizes(file).pairs is pairs
    file.write_bytes(b"GGUF" + (3).to_bytes(4, "little") + bytes(16))
    assert read_sizes(file).pairs is None
    file.write_bytes(b"GGUF")
    with pytest.raises(
        RegardError, match=r"a\.gguf' is truncated or no GGUF file \(at byte 4 it needs 4 more, it has 0"
    ):
        read_sizes(file)


OURS = {"regard": "transformer", "version": 1, "vocabulary": 9, "layers": 3, "heads": 4}


@pytest.mark.parametrize("kind", ["decoder", "encoder", "encoder-decoder"])
def test_a_transformer_of_ours_and_a_training_run(tmp_path: Path, kind: str) -> None:
    inside = tmp_path / "checkpoints" / "step-000007"
    inside.mkdir(parents=True)
    (inside / "config.json").write_text(json.dumps(OURS | {"kind": kind}))
    pairs = kind == "encoder-decoder"
    assert read_sizes(inside) == ModelSizes(str(inside), 3, 4, pairs)
    (tmp_path / "latest.json").write_text('{"checkpoint": "step-000007"}')
    assert read_sizes(tmp_path) == ModelSizes(str(tmp_path), 3, 4, pairs)


@pytest.mark.parametrize("value", [0, -3, True, "3", 3.0, None, [3]])
def test_a_count_that_is_none_is_not_known(tmp_path: Path, value: object) -> None:
    (tmp_path / "config.json").write_text(json.dumps(OURS | {"layers": value}))
    assert read_sizes(tmp_path) == ModelSizes(str(tmp_path), None, 4, False)


def test_a_config_that_cannot_be_read_is_left_to_loading(tmp_path: Path) -> None:
    (tmp_path / "latest.json").write_text("{ broken")
    assert read_sizes(tmp_path).layers is None
