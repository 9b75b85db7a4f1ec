"""Convert BERT, GPT-2 and Llama models of transformers to an equivalent `regard.Transformer`, such as to train it.

Unsupported features raise an error that names them. A pooler, or a head that isn't one of the language heads below,
doesn't affect the states and is left out.
"""

from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import RegardError
from regard.nn.bert import ACTIVATIONS, bert_config, bert_names
from regard.nn.config import TransformerConfig
from regard.nn.folder import fill_module_weights
from regard.nn.transformer import Transformer

Weights = dict[str, Tensor]


def activation_of_transformers(name: str) -> str:
    """Return regard's name for an activation of transformers."""
    if name not in ACTIVATIONS:
        raise no_counterpart("its activation", name)
    return ACTIVATIONS[name]


def no_counterpart(name: str, value: Any) -> RegardError:
    """Return the error for a feature of a transformers model that regard's Transformer doesn't have."""
    return RegardError(f"from_transformers: the model has {name}={value!r}, which has no counterpart in a Transformer")


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
    activation_of_transformers(config.hidden_act)
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
