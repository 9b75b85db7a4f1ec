"""Read the folder of a BERT without a head as a `Transformer`, without importing transformers, which takes seconds.

A folder that says anything else, or whose files aren't whole, is left to transformers: it knows every variant, and its
messages say what is wrong.
"""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from regard.errors import RegardError
from regard.files import read_json
from regard.model_files.limits import held
from regard.model_files.size_limit import Budget
from regard.nn.config import TransformerConfig
from regard.nn.folder import CONFIG, WEIGHTS, read_tensors, weights_of
from regard.nn.transformer import Transformer

ACTIVATIONS = {
    "relu": "relu", "gelu": "gelu", "gelu_new": "gelu-tanh", "gelu_pytorch_tanh": "gelu-tanh", "silu": "silu",
    "swish": "silu",
}  # fmt: skip
TABLES = {  # our names of modules, and those of BertModel
    "embedding": "embeddings.word_embeddings", "positions": "embeddings.position_embeddings",
    "segments": "embeddings.token_type_embeddings",
}  # fmt: skip
LAYER = {
    "attention.query": "attention.self.query", "attention.key": "attention.self.key",
    "attention.value": "attention.self.value", "attention.output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm", "feedforward.up": "intermediate.dense",
    "feedforward.output": "output.dense", "feedforward_norm": "output.LayerNorm",
}  # fmt: skip
SIZES = """
    vocab_size hidden_size num_hidden_layers num_attention_heads intermediate_size hidden_act hidden_dropout_prob
    attention_probs_dropout_prob max_position_embeddings type_vocab_size layer_norm_eps
"""
PLAIN = {  # the values that entries have, if they are there
    "model_type": "bert", "architectures": ["BertModel"], "position_embedding_type": "absolute", "is_decoder": False,
    "add_cross_attention": False,
}  # fmt: skip
# Entries that say nothing of a bare model's states.
UNUSED = """
    _name_or_path attn_implementation bos_token_id chunk_size_feed_forward classifier_dropout dtype eos_token_id
    gradient_checkpointing initializer_range pad_token_id tie_word_embeddings torch_dtype transformers_version use_cache
"""
POSITION_IDS = "embeddings.position_ids"  # that older folders keep: 0, 1, 2, …


def read_bert(folder: Path) -> Transformer | None:
    """Read the model of a folder, on the CPU and ready to be used; None for one that transformers has to read."""
    try:
        config = read_json(folder / CONFIG)
        if config.keys() - UNUSED.split() - PLAIN.keys() != set(SIZES.split()) or config.get("model_type") != "bert":
            return None
        plain = all(config.get(name, value) == value for name, value in PLAIN.items())
        if not plain or not 0 <= (config.get("pad_token_id") or 0) < config["vocab_size"]:
            return None
        tensors = read_tensors(folder / WEIGHTS)
        numbers = [tensor for name, tensor in tensors.items() if name != POSITION_IDS]
        if not all(tensor.dtype == torch.float32 and bool(tensor.sum().isfinite()) for tensor in numbers):
            return None
        made = bert_config(SimpleNamespace(**config), output="none")
        names = bert_names(min(made.layers, len(tensors)))
        pooler = {"pooler.dense.weight": (made.d_model, made.d_model), "pooler.dense.bias": (made.d_model,)}
        unused = {name for name, tensor in tensors.items() if name == POSITION_IDS or pooler.get(name) == tensor.shape}
        if {*names.values()} != tensors.keys() - unused:
            return None
        with Budget(held([folder / WEIGHTS]), str(folder)), torch.device("meta"):
            model = Transformer(made)
    except Exception:  # a config may hold anything: transformers meets the same, and reports it
        return None
    weights = {name: tensors[theirs] for name, theirs in names.items()}
    if {name: x.shape for name, x in weights_of(model).items()} != {name: x.shape for name, x in weights.items()}:
        return None
    model.load_state_dict(weights, assign=True)
    return model.eval()


def bert_config(config: Any, **more: Any) -> TransformerConfig:
    """Say what a BERT is made of, by the config that transformers has of it. more: of its head."""
    return TransformerConfig.bert(
        vocabulary=config.vocab_size, length=config.max_position_embeddings, segments=config.type_vocab_size,
        layers=config.num_hidden_layers, heads=config.num_attention_heads, d_model=config.hidden_size,
        d_hidden=config.intermediate_size, activation=activation_of_transformers(config.hidden_act),
        norm_eps=config.layer_norm_eps, dropout=config.hidden_dropout_prob,
        attention_dropout=config.attention_probs_dropout_prob, **more,
    )  # fmt: skip


def activation_of_transformers(name: str) -> str:
    """Translate the name of an activation."""
    if name not in ACTIVATIONS:
        raise no_counterpart("its activation", name)
    return ACTIVATIONS[name]


def no_counterpart(name: str, value: Any) -> RegardError:
    """Say what of a model of transformers ours has no counterpart for."""
    return RegardError(f"from_transformers: the model has {name}={value!r}, which has no counterpart in a Transformer")


def bert_names(layers: int) -> dict[str, str]:
    """Name the tensors of a Transformer, and those of a BertModel that they are."""
    modules = TABLES | {"embedding_norm": "embeddings.LayerNorm"}
    for n in range(layers):
        modules |= {f"encoder.{n}.{name}": f"encoder.layer.{n}.{theirs}" for name, theirs in LAYER.items()}
    parts = [(name, theirs, part) for name, theirs in modules.items() for part in ("weight", "bias")]
    return {f"{a}.{part}": f"{b}.{part}" for a, b, part in parts if part == "weight" or a not in TABLES}
