"""Tiny GGUF files of several families and kinds, written by the package gguf as llama.cpp names what is in them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

gguf: Any = pytest.importorskip("gguf", reason="the package gguf is not installed (extra gguf)")

LAYERS, WIDTH, HEADS, GROUPS, HIDDEN, PIECES = 2, 256, 8, 4, 512, 37
SIZES = {"vocab_size": PIECES, "hidden_size": WIDTH, "intermediate_size": HIDDEN, "num_hidden_layers": LAYERS,
         "num_attention_heads": HEADS, "num_key_value_heads": GROUPS, "max_position_embeddings": 53}  # fmt: skip
FAMILIES: dict[str, tuple[Any, dict[str, Any], int]] = {  # of each its config, its sizes and gguf's number of it
    "llama": (transformers.LlamaConfig, SIZES | {"tie_word_embeddings": True}, gguf.MODEL_ARCH.LLAMA),
    "gemma3": (transformers.Gemma3TextConfig, SIZES | {"head_dim": 32, "sliding_window": 5}, gguf.MODEL_ARCH.GEMMA3),
    "gpt2": (
        transformers.GPT2Config,
        {
            "vocab_size": PIECES,
            "n_embd": WIDTH,
            "n_layer": LAYERS,
            "n_head": HEADS,
            "bos_token_id": 1,
            "eos_token_id": 2,
        },
        gguf.MODEL_ARCH.GPT2,
    ),
    "qwen3moe": (
        transformers.Qwen3MoeConfig,
        SIZES | {"head_dim": 32, "num_experts": 3, "num_experts_per_tok": 2, "moe_intermediate_size": 768},
        gguf.MODEL_ARCH.QWEN3MOE,
    ),
}


def write_gguf(file: Path, family: str, kind: str, other: str | None = None) -> None:
    """Write a random model of a family. kind: of its matrices. other: of the experts' upper ones, None for the same."""
    make, sizes, number = FAMILIES[family]
    torch.manual_seed(0)
    config = make(**sizes)
    state = transformers.AutoModelForCausalLM.from_config(config).state_dict()
    names = gguf.get_tensor_name_map(number, LAYERS)
    writer = begin(file, family, LAYERS, WIDTH, HIDDEN, HEADS, PIECES)
    if family == "gpt2":
        writer.add_layer_norm_eps(1e-5)
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("default")
        writer.add_token_list([*(chr(ord("A") + n) for n in range(PIECES - 1)), "AB"])
        writer.add_token_types([1] * PIECES)
        writer.add_token_merges(["A B"])
    else:
        writer.add_head_count_kv(GROUPS)
        writer.add_key_length(32)
        writer.add_layer_norm_rms_eps(1e-5)
        writer.add_rope_freq_base(10000.0)
    if family == "gemma3":
        writer.add_sliding_window(5)
    if family == "qwen3moe":
        writer.add_expert_count(3)
        writer.add_expert_used_count(2)
    for key, tensor in state.items():
        if key == "lm_head.weight" and config.tie_word_embeddings:
            continue
        numbers = tensor.float().numpy().copy()
        if key.endswith("experts.gate_up_proj"):
            layer = key.split(".")[2]
            for part, half, each in zip(("up", "gate"), np.split(numbers, 2, 1)[::-1], (other, None), strict=True):
                add_tensor(writer, f"blk.{layer}.ffn_{part}_exps.weight", half.copy(), each or kind)
            continue
        base, _, ending = key.rpartition(".") if key.endswith((".weight", ".bias")) else (key, "", "weight")
        name = names.get_name(base)
        assert name is not None, key
        if family == "gpt2" and numbers.ndim > 1 and ".h." in key:
            numbers = numbers.T.copy()
        add_tensor(writer, f"{name}.{ending}", numbers, kind)
    finish(writer)


def begin(file: Path, family: str, layers: int, width: int, hidden: int, heads: int, pieces: int) -> Any:
    """Begin a file with the sizes of a tiny model."""
    writer = gguf.GGUFWriter(file, family)
    writer.add_name("tiny")
    writer.add_block_count(layers)
    writer.add_context_length(53)
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(hidden)
    writer.add_head_count(heads)
    writer.add_vocab_size(pieces)
    return writer


def finish(writer: Any) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_tensor(writer: Any, name: str, numbers: np.ndarray, kind: str) -> None:
    """Write a tensor: a matrix as a kind, anything else in float32."""
    if numbers.ndim < 2 or kind == "F32":
        writer.add_tensor(name, numbers)
        return
    wanted = gguf.GGMLQuantizationType[kind]
    writer.add_tensor(name, quantised(numbers, kind), raw_dtype=wanted)


def quantised(numbers: np.ndarray, kind: str) -> np.ndarray:
    """Quantise rows; where the package can only read a kind, make up blocks of it with scales that numbers may have."""
    wanted = gguf.GGMLQuantizationType[kind]
    try:
        return gguf.quants.quantize(numbers, wanted)
    except NotImplementedError:
        size, count = gguf.GGML_QUANT_SIZES[wanted]
        drawn = np.random.default_rng(numbers.size)
        blocks = drawn.integers(0, 256, (*numbers.shape[:-1], numbers.shape[-1] // size, count), dtype=np.uint8)
        first, last = SCALES[kind]
        scales = drawn.uniform(1e-4, 1e-3, (*blocks.shape[:-1], (last - first) // 2)).astype(np.float16)
        blocks[..., first:last] = scales.view(np.uint8)
        return blocks.reshape(*numbers.shape[:-1], -1)


SCALES = {"Q3_K": (108, 110), "Q4_K": (0, 4), "Q5_K": (0, 4), "Q6_K": (208, 210), "IQ4_NL": (0, 2)}
