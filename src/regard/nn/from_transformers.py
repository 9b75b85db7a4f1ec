"""Convert BERT, GPT-2 and Llama models of transformers to an equivalent `regard.Transformer`.

Unsupported features raise an error that names them. A pooler, or a head that isn't one of the language heads below,
doesn't affect the states and is left out.

The folder of a BERT without a head is read without importing transformers, which takes seconds. For folders with other
config entries or incomplete files, transformers is used: it knows all variants, and its messages name the fault.
"""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import RegardError
from regard.files import read_json
from regard.model_files.limits import read_sizes
from regard.model_files.size_limit import Budget
from regard.nn.config import TransformerConfig
from regard.nn.folder import CONFIG, WEIGHTS, fill_module_weights, read_tensors
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
        settings = bert_config(SimpleNamespace(**config), output="none")
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
        d_hidden=config.intermediate_size, activation=activation_of_transformers(config.hidden_act),
        norm_eps=config.layer_norm_eps, dropout=config.hidden_dropout_prob,
        attention_dropout=config.attention_probs_dropout_prob, **options,
    )  # fmt: skip


def activation_of_transformers(name: str) -> str:
    """Return regard's name for an activation of transformers."""
    if name not in ACTIVATIONS:
        raise no_counterpart("its activation", name)
    return ACTIVATIONS[name]


def no_counterpart(name: str, value: Any) -> RegardError:
    """Return the error for a feature of a transformers model that regard's Transformer doesn't have."""
    return RegardError(f"from_transformers: the model has {name}={value!r}, which has no counterpart in a Transformer")


def bert_names(layers: int) -> dict[str, str]:
    """Return the tensor names of a Transformer mapped to those of a BertModel."""
    modules = TABLES | {"embedding_norm": "embeddings.LayerNorm"}
    for n in range(layers):
        modules |= {f"encoder.{n}.{name}": f"encoder.layer.{n}.{original}" for name, original in LAYER.items()}
    parts = [(name, original, part) for name, original in modules.items() for part in ("weight", "bias")]
    return {f"{a}.{part}": f"{b}.{part}" for a, b, part in parts if part == "weight" or a not in TABLES}


Weights = dict[str, Tensor]


def from_transformers(model: Any) -> Transformer:
    """Convert a transformers model to a `Transformer` with copies of its weights, on the CPU, in the model's dtype.

    Supports BertModel, BertForMaskedLM, GPT2Model, GPT2LMHeadModel, LlamaModel and LlamaForCausalLM objects.
    """
    kind = type(model).__name__
    if kind not in _READERS:
        raise RegardError(f"from_transformers: got a {kind}, expected one of {', '.join(_READERS)}")
    config, weights = _READERS[kind](model)
    with torch.random.fork_rng(devices=[]):
        transformer = Transformer(config)
    transformer = transformer.to(model.dtype)
    fill_module_weights(transformer, {name: tensor.detach().cpu() for name, tensor in weights.items()}, kind)
    return transformer.eval()


def _bert(model: Any) -> tuple[TransformerConfig, Weights]:
    config, base = model.config, model.base_model
    if getattr(config, "position_embedding_type", "absolute") not in (None, "absolute"):
        raise no_counterpart("position_embedding_type", config.position_embedding_type)
    if config.is_decoder or config.add_cross_attention:
        raise no_counterpart("is_decoder or add_cross_attention", True)
    head = getattr(getattr(model, "cls", None), "predictions", None)
    config = bert_config(
        config, output=_sizes(model, head)["output"], output_bias=head is not None, output_transform=head is not None
    )
    tensors = dict(base.named_parameters())
    weights = {name: tensors[original] for name, original in bert_names(config.layers).items()}
    if head is not None:
        weights |= _module_weights_by_name("transform.linear", head.transform.dense)
        weights |= _module_weights_by_name("transform.norm", head.transform.LayerNorm)
        weights |= _language_head_weights(head.decoder, config)
    return config, weights


def _gpt2(model: Any) -> tuple[TransformerConfig, Weights]:
    config, base = model.config, model.base_model
    for name, plain in (("scale_attn_weights", True), ("scale_attn_by_inverse_layer_idx", False)):
        if getattr(config, name) is not plain:
            raise no_counterpart(name, getattr(config, name))
    if config.add_cross_attention:
        raise no_counterpart("add_cross_attention", True)
    if not config.resid_pdrop == config.embd_pdrop:
        raise no_counterpart("embd_pdrop", f"{config.embd_pdrop} beside resid_pdrop={config.resid_pdrop}")
    head = getattr(model, "lm_head", None)
    config = TransformerConfig.gpt2(
        **_sizes(model, head),
        d_hidden=config.n_inner,
        activation=activation_of_transformers(config.activation_function),
        norm_eps=config.layer_norm_epsilon,
        dropout=config.resid_pdrop,
        attention_dropout=config.attn_pdrop,
    )
    weights = {"embedding.weight": base.wte.weight, "positions.weight": base.wpe.weight}
    weights |= _module_weights_by_name("decoder_norm", base.ln_f)
    for n, layer in enumerate(base.h):
        prefix = f"decoder.{n}"
        joined = _module_weights_by_name("", layer.attn.c_attn, turned=True)  # query, key and value
        for part, weight, bias in zip(
            ("query", "key", "value"), joined[".weight"].chunk(3), joined[".bias"].chunk(3), strict=True
        ):
            weights |= {f"{prefix}.attention.{part}.weight": weight, f"{prefix}.attention.{part}.bias": bias}
        weights |= _module_weights_by_name(f"{prefix}.attention.output", layer.attn.c_proj, turned=True)
        weights |= _module_weights_by_name(f"{prefix}.attention_norm", layer.ln_1)
        weights |= _module_weights_by_name(f"{prefix}.feedforward.up", layer.mlp.c_fc, turned=True)
        weights |= _module_weights_by_name(f"{prefix}.feedforward.output", layer.mlp.c_proj, turned=True)
        weights |= _module_weights_by_name(f"{prefix}.feedforward_norm", layer.ln_2)
    return config, weights | _language_head_weights(head, config)


def _llama(model: Any) -> tuple[TransformerConfig, Weights]:
    config, base = model.config, model.base_model
    rope = config.rope_parameters
    if rope.get("rope_type", "default") != "default" or rope.get("partial_rotary_factor", 1.0) != 1.0:
        raise no_counterpart("rope_parameters", rope)
    if bool(config.attention_bias) != bool(config.mlp_bias):
        raise no_counterpart("attention_bias", f"{config.attention_bias} beside mlp_bias={config.mlp_bias}")
    head = getattr(model, "lm_head", None)
    config = TransformerConfig.llama(
        **_sizes(model, head),
        key_heads=config.num_key_value_heads,
        d_k=config.head_dim,
        d_hidden=config.intermediate_size,
        activation=activation_of_transformers(config.hidden_act),
        norm_eps=config.rms_norm_eps,
        rotary_base=float(rope.get("rope_theta", 10000.0)),
        attention_dropout=config.attention_dropout,
        bias=bool(config.attention_bias),
    )
    weights = {"embedding.weight": base.embed_tokens.weight, **_module_weights_by_name("decoder_norm", base.norm)}
    for n, layer in enumerate(base.layers):
        attention, feedforward = layer.self_attn, layer.mlp
        modules = {
            "attention.query": attention.q_proj, "attention.key": attention.k_proj, "attention.value": attention.v_proj,
            "attention.output": attention.o_proj, "attention_norm": layer.input_layernorm,
            "feedforward.gate": feedforward.gate_proj, "feedforward.up": feedforward.up_proj,
            "feedforward.output": feedforward.down_proj, "feedforward_norm": layer.post_attention_layernorm,
        }  # fmt: skip
        for name, module in modules.items():
            weights |= _module_weights_by_name(f"decoder.{n}.{name}", module)
    return config, weights | _language_head_weights(head, config)


_READERS: dict[str, Any] = {
    "BertModel": _bert,
    "BertForMaskedLM": _bert,
    "GPT2Model": _gpt2,
    "GPT2LMHeadModel": _gpt2,
    "LlamaModel": _llama,
    "LlamaForCausalLM": _llama,
}


def _sizes(model: Any, head: Any) -> dict[str, Any]:
    """Return the sizes with the same names in the configs of all architectures, and the type of head."""
    config = model.config
    tied = head is not None and model.get_output_embeddings().weight is model.get_input_embeddings().weight
    return {
        "vocabulary": config.vocab_size,
        "length": config.max_position_embeddings,
        "layers": config.num_hidden_layers,
        "d_model": config.hidden_size,
        "heads": config.num_attention_heads,
        "output": "none" if head is None else "tied" if tied else "free",
    }


def _module_weights_by_name(name: str, module: nn.Module, *, turned: bool = False) -> Weights:
    """Return a linear layer's or norm's tensors by regard's names. turned: for a Conv1D, whose weight is (in, out)."""
    weights: Weights = dict(module.named_parameters())
    if turned:
        weights["weight"] = weights["weight"].T
    return {f"{name}.{key}": tensor for key, tensor in weights.items()}


def _language_head_weights(head: nn.Module | None, config: TransformerConfig) -> Weights:
    """Return a language head's separate tensors: the weight unless it is tied, and the bias if it has one."""
    weights = {} if head is None else _module_weights_by_name("head", head)
    return {name: tensor for name, tensor in weights.items() if name != "head.weight" or config.output == "free"}
