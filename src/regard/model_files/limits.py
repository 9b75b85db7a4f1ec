"""Check the numbers in a model's config before anything is built from them.

A config may come from anybody: a count of ten million layers takes eight letters. Sizes have to be whole numbers above
zero, and counts are checked against the number of tensors in the checkpoint.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from regard.errors import RegardError
from regard.model_files.weight_headers import CheckpointSizes

# What sizes and counts of heads are called, family by family; each is one number, or one for each layer, or null.
NAMES = """
    hidden_size intermediate_size embedding_size vocab_size max_position_embeddings num_attention_heads
    num_key_value_heads num_heads num_kv_heads n_heads n_head n_embd n_positions n_ctx d_model d_kv d_ff d_embed d_head
    d_inner dim hidden_dim ffn_dim encoder_ffn_dim decoder_ffn_dim encoder_attention_heads decoder_attention_heads
    num_encoder_attention_heads num_decoder_attention_heads max_source_positions max_target_positions num_mel_bins
    image_size patch_size num_channels num_hidden_layers n_layers n_layer num_layers
"""
SIZES = frozenset(NAMES.split())
MAY_BE_ZERO = ("encoder_layers", "decoder_layers", "num_encoder_layers", "num_decoder_layers", "head_dim")
LAYERS = re.compile(r"(^|_)(layers?|blocks?|depth)$")
FEW = 200  # layers that nobody asks about: some families share one layer's tensors among many
COUNTS = re.compile(r"^(n|num)_(?!.*(position|ctx|param|token|step|sample))")  # of what a model is made of
MAX_COUNT = 1 << 16  # heads, experts, labels
ITEMS = 1 << 16  # of a list: one for each layer, or token that is left out
POSITIONS = re.compile(r"^(max_.*positions?(_embeddings)?|n_positions|n_ctx)$")
LONGEST = 1 << 24  # the most positions that are published are 10 million


def check_sizes_in_config(config: Mapping[str, Any], sizes: CheckpointSizes | None, where: str) -> None:
    """Check sizes, and counts against the checkpoint's number of tensors, in a config and its nested parts.

    held: what the checkpoint holds, None where that is not known. where: the config's name, for the message.
    """
    for name, value in _values_of_model_config(config, where):
        key = name.rsplit(".", 1)[-1]
        least = 1 if key in SIZES else 0
        whole = isinstance(value, int) and not isinstance(value, bool) and value >= least
        if not whole and (key in SIZES or key in MAY_BE_ZERO):
            raise RegardError(f"{where}: {name} is {value!r}, needs a whole number of {least} or more")
        if not isinstance(value, int):
            continue
        if sizes is not None and LAYERS.search(key) and value > max(sizes.tensors, FEW):
            raise RegardError(
                f"{where}: {name} is {value:,}, its checkpoint holds {sizes.tensors:,} tensors, less than one for each"
            )
        if (COUNTS.match(key) and value > MAX_COUNT) or (POSITIONS.match(key) and value > LONGEST):
            raise RegardError(f"{where}: {name} is {value:,}, no model has so many")


def check_quantisation(config: Mapping[str, Any], sizes: CheckpointSizes, where: str) -> None:
    """Check that a config's quantisation is of a known method, and that the checkpoint is quantised."""
    parts = [config, *(part for part in config.values() if isinstance(part, dict))]
    for quantisation in (part["quantization_config"] for part in parts if part.get("quantization_config") is not None):
        if not isinstance(quantisation, dict):
            raise RegardError(f"{where}: quantization_config is {quantisation!r}, needs an object")
        from transformers.quantizers.auto import AUTO_QUANTIZATION_CONFIG_MAPPING as KNOWN  # takes a second

        kind = quantisation.get("quant_method")
        if kind is None and any(quantisation.get(f"load_in_{bits}bit") for bits in (4, 8)):
            kind = "bitsandbytes"
        if kind not in ("bitsandbytes", *KNOWN):
            raise RegardError(
                f"{where}: quantization_config names the method {kind!r}, which the installed transformers does not "
                "know: its weights cannot be read"
            )
        if sizes.plain and quantisation.get("quantization_mode") != "online":
            raise RegardError(
                f"{where}: quantization_config names the method {kind!r}, but no tensor of its checkpoint is "
                "quantised: one of the two is of another model"
            )


def _values_of_model_config(config: Mapping[Any, Any], where: str, within: str = "") -> Iterator[tuple[str, Any]]:
    """(name, value) of every entry that is one value, of the parts of a config too; lists item by item."""
    for key, value in config.items():
        if value is None or key == "quantization_config":
            continue
        name = f"{within}{key}"
        if isinstance(value, Mapping):
            yield from _values_of_model_config(value, where, f"{name}.")
        elif isinstance(value, list):
            if len(value) > ITEMS:
                raise RegardError(f"{where}: {name} has {len(value):,} items, {ITEMS:,} are the most")
            yield from ((name, item) for item in value if isinstance(item, (int, float, str)))
        else:
            yield name, value
