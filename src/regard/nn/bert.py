"""Read a folder of a BERT as an equivalent `regard.Transformer`, without importing transformers, which takes seconds.

For folders with a head, other config entries or incomplete files, transformers is used: it knows all variants, and its
messages name the fault. A pooler doesn't affect the states and is left out.
"""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from regard.files import read_json
from regard.model_files.limits import read_sizes
from regard.model_files.size_limit import Budget
from regard.nn.config import TransformerConfig
from regard.nn.folder import CONFIG, WEIGHTS, read_tensors
from regard.nn.transformer import Transformer

ACTIVATIONS = {
    "relu": "relu", "gelu": "gelu", "gelu_new": "gelu-tanh", "gelu_pytorch_tanh": "gelu-tanh", "silu": "silu",
    "swish": "silu",
}  # fmt: skip
TABLES = {  # regard's module names -> BertModel's
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
PLAIN = {  # required values of entries if present
    "model_type": "bert", "architectures": ["BertModel"], "position_embedding_type": "absolute", "is_decoder": False,
    "add_cross_attention": False,
}  # fmt: skip
# Entries without effect on a bare model's states.
UNUSED = """
    _name_or_path attn_implementation bos_token_id chunk_size_feed_forward classifier_dropout dtype eos_token_id
    gradient_checkpointing initializer_range pad_token_id tie_word_embeddings torch_dtype transformers_version use_cache
"""
POSITION_IDS = "embeddings.position_ids"  # 0, 1, 2, …, in older folders


def read_bert(folder: Path) -> Transformer | None:
    """Read a BERT from a folder, on the CPU in evaluation mode. Returns None if transformers must read it."""
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
        settings = bert_config(SimpleNamespace(**config))
        names = bert_names(min(settings.layers, len(tensors)))
        pooler = {"pooler.dense.weight": (settings.d_model, settings.d_model), "pooler.dense.bias": (settings.d_model,)}
        unused = {name for name, tensor in tensors.items() if name == POSITION_IDS or pooler.get(name) == tensor.shape}
        if {*names.values()} != tensors.keys() - unused:
            return None
        with Budget(read_sizes([folder / WEIGHTS]), str(folder)), torch.device("meta"):
            model = Transformer(settings)
    except Exception:  # any fault: transformers finds and reports it
        return None
    weights = {name: tensors[original] for name, original in names.items()}
    if {name: x.shape for name, x in model.named_parameters()} != {name: x.shape for name, x in weights.items()}:
        return None
    model.load_state_dict(weights, assign=True)
    return model.eval()


def bert_config(config: Any, **options: Any) -> TransformerConfig:
    """Convert a BERT config of transformers. options: of its head."""
    return TransformerConfig.bert(
        vocabulary=config.vocab_size, length=config.max_position_embeddings, segments=config.type_vocab_size,
        layers=config.num_hidden_layers, heads=config.num_attention_heads, d_model=config.hidden_size,
        d_hidden=config.intermediate_size, activation=ACTIVATIONS[config.hidden_act],
        norm_eps=config.layer_norm_eps, dropout=config.hidden_dropout_prob,
        attention_dropout=config.attention_probs_dropout_prob, **options,
    )  # fmt: skip


def bert_names(layers: int) -> dict[str, str]:
    """Return the tensor names of a Transformer mapped to those of a BertModel."""
    modules = TABLES | {"embedding_norm": "embeddings.LayerNorm"}
    for n in range(layers):
        modules |= {f"encoder.{n}.{name}": f"encoder.layer.{n}.{original}" for name, original in LAYER.items()}
    parts = [(name, original, part) for name, original in modules.items() for part in ("weight", "bias")]
    return {f"{a}.{part}": f"{b}.{part}" for a, b, part in parts if part == "weight" or a not in TABLES}
