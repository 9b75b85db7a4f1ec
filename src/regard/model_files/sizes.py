"""Read how many layers and heads a model has from its files, and whether it is an encoder-decoder, without torch.

So a wrong --layer is refused before seconds of imports. What the files do not say beyond doubt stays None, for the
exact check that comes with loading; nothing is refused here that loading would accept.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.json_files import read_json
from regard.model_files import gguf, hub
from regard.model_files.folder import DEFAULT_NAME, check_model_folder, names_default_model, place_of_default_model
from regard.model_files.locate import locate_model_files, model_under_adapter

# How the families of transformers spell the same thing in config.json.
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers",
          "num_encoder_layers", "num_decoder_layers")  # fmt: skip
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads", "decoder_attention_heads")
ATTENTION = {"full_attention", "sliding_attention", "chunked_attention"}  # kinds of layers that have weights to show
# Where one of these stands, not every layer has one attention, or the sizes stand further inside.
OTHERWISE = ("layers_block_type", "layer_type_list", "block_sizes", "block_types", "attn_layers", "attn_type_list",
             "hybrid_override_pattern", "full_attn_idxs", "text_config", "encoder", "decoder",
             "num_kv_shared_layers")  # fmt: skip
TWICE = ("longcat_flash",)  # families with two attentions a layer
SEQUENCES = ("ForConditionalGeneration", "MTModel", "ForSeq2SeqLM")  # classes that read a text and write another
FAMILY = "general.architecture"  # of a GGUF file


@dataclass(frozen=True)
class ModelSizes:
    """name: as messages have it. layers, heads: how many, None where the files do not say so beyond doubt. pairs:
    whether it is an encoder-decoder, None likewise."""

    name: str
    layers: int | None = None
    heads: int | None = None
    pairs: bool | None = None


def read_sizes(source: str | os.PathLike[str] | None) -> ModelSizes:
    """Read a model's sizes from its files; source as `regard.load` takes it.

    Raises:
        RegardError: there is no such model, or its folder holds none, with the message of `regard.load`.
    """
    if source is None or names_default_model(source):
        return _sizes_of_config(DEFAULT_NAME, _json_object_if_readable(place_of_default_model() / "config.json"))
    if (base := model_under_adapter(source)) is not None:
        return read_sizes(base)
    name, place = os.fspath(source), locate_model_files(source)
    if isinstance(place, str):
        cached = hub.cached_hub_file(name, "config.json")
        return ModelSizes(name) if cached is None else _sizes_of_config(name, _json_object_if_readable(cached))
    return _of_folder(place, name) if place.is_dir() else _of_gguf(place, name)


def config_layers_and_heads(config: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Read (layers, heads) from a config.json of transformers, None for what it does not say beyond doubt."""
    if config.get("model_type") in TWICE or config.get("per_layer_config") is not None:
        return None, None
    layers, heads = _agreed_number_of_config(config, LAYERS), _agreed_number_of_config(config, HEADS)
    kinds = config.get("layer_types")
    plain = kinds is None or (isinstance(kinds, list) and all(kind in ATTENTION for kind in kinds))
    if not plain or any(config.get(key) is not None for key in OTHERWISE):
        layers = None
    return layers, heads


def is_encoder_decoder(config: Mapping[str, Any]) -> bool | None:
    """Tell whether a config.json of transformers is of an encoder-decoder, None where it does not say."""
    flag, names = config.get("is_encoder_decoder"), config.get("architectures")
    names = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    if flag is True:  # an encoder that was taken out of a pair has it too
        return True if any(name.endswith(SEQUENCES) for name in names) else None
    doubtful = any(key.startswith(("encoder", "decoder", "num_decoder")) or key == "d_kv" for key in config)
    return None if doubtful and flag is None else False


def _of_folder(path: Path, name: str) -> ModelSizes:
    """A folder of transformers, of a `regard.Transformer`, or of a training run."""
    pointer = path / "latest.json"
    if pointer.is_file():  # a training run: its newest checkpoint
        checkpoint = _json_object_if_readable(pointer).get("checkpoint")
        inside = path / "checkpoints" / checkpoint if isinstance(checkpoint, str) else path
        return _sizes_of_own_config(name, _json_object_if_readable(inside / "config.json"))
    config = _json_object_if_readable(path / "config.json")
    if "regard" in config:
        return _sizes_of_own_config(name, config)
    check_model_folder(path, known=False)
    return _sizes_of_config(name, config)


def _sizes_of_config(name: str, config: Mapping[str, Any]) -> ModelSizes:
    return ModelSizes(name, *config_layers_and_heads(config), is_encoder_decoder(config))


def _sizes_of_own_config(name: str, config: Mapping[str, Any]) -> ModelSizes:
    """A `regard.Transformer`: both stacks of an encoder-decoder are alike."""
    kind = config.get("kind", "decoder")
    return ModelSizes(
        name,
        _positive_number_of_config(config.get("layers")),
        _positive_number_of_config(config.get("heads")),
        kind == "encoder-decoder",
    )


def _of_gguf(path: Path, name: str) -> ModelSizes:
    """A GGUF file's header names its architecture, of which T5's alone reads pairs."""
    if not path.is_file():  # a pipe, say: loading names it
        return ModelSizes(name)
    family = gguf.checked_gguf_header(path).values.get(FAMILY)
    return ModelSizes(name, pairs=family == "t5" if isinstance(family, str) else None)


def _json_object_if_readable(path: Path) -> dict[str, Any]:
    """Read a JSON object; an empty one where it cannot be read: loading says why."""
    try:
        return read_json(path)
    except RegardError:
        return {}


def _agreed_number_of_config(config: Mapping[str, Any], spellings: tuple[str, ...]) -> int | None:
    """The number that all spellings that are there agree on."""
    values = {config[key] for key in spellings if isinstance(config.get(key), (int, str, float, bool))}
    return _positive_number_of_config(values.pop()) if len(values) == 1 else None


def _positive_number_of_config(given: Any) -> int | None:
    return given if isinstance(given, int) and not isinstance(given, bool) and given > 0 else None
