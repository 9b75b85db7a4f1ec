"""Weights of transformers' models in our own transformer, to compare what both compute."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from regard.nn.bert import ACTIVATIONS, bert_config, bert_names
from regard.nn.config import TransformerConfig
from regard.nn.folder import fill_module_weights
from regard.nn.transformer import Transformer

Weights = dict[str, Tensor]


def with_weights_of(model: Any) -> Transformer:
    """A transformer with copies of a BERT's, GPT-2's or Llama's weights."""
    head = model.get_output_embeddings()
    tied = head is not None and head.weight is model.get_input_embeddings().weight
    kinds = {"bert": _bert, "gpt2": _gpt2, "llama": _llama}
    output = "none" if head is None else "tied" if tied else "free"
    config, weights = kinds[model.config.model_type](model, output)
    weights |= {} if head is None else named("head", head)
    if output == "tied":
        del weights["head.weight"]
    with torch.random.fork_rng(devices=[]):
        transformer = Transformer(config)
    fill_module_weights(transformer, {name: tensor.detach() for name, tensor in weights.items()}, "weights")
    return transformer.eval()


def named(name: str, module: nn.Module, *, turned: bool = False) -> Weights:
    """turned: the module is a Conv1D, whose weight is (in, out)."""
    weights = dict(module.named_parameters())
    if turned:
        weights["weight"] = weights["weight"].T
    return {f"{name}.{key}": tensor for key, tensor in weights.items()}


def _bert(model: Any, output: Any) -> tuple[TransformerConfig, Weights]:
    head = getattr(getattr(model, "cls", None), "predictions", None)
    has_head = head is not None
    config = replace(bert_config(model.config), output=output, output_bias=has_head, output_transform=has_head)
    tensors = dict(model.base_model.named_parameters())
    weights = {name: tensors[original] for name, original in bert_names(config.layers).items()}
    if head is not None:
        weights |= named("transform.linear", head.transform.dense) | named("transform.norm", head.transform.LayerNorm)
    return config, weights


def _gpt2(model: Any, output: Any) -> tuple[TransformerConfig, Weights]:
    given, base = model.config, model.base_model
    config = TransformerConfig.gpt2(
        given.vocab_size, length=given.n_positions, layers=given.n_layer, d_model=given.n_embd, heads=given.n_head,
        output=output, d_hidden=given.n_inner, activation=ACTIVATIONS[given.activation_function],
        norm_eps=given.layer_norm_epsilon,
    )  # fmt: skip
    weights = {"embedding.weight": base.wte.weight, "positions.weight": base.wpe.weight}
    weights |= named("decoder_norm", base.ln_f)
    for n, layer in enumerate(base.h):
        for key, joined in named("", layer.attn.c_attn, turned=True).items():
            for part, tensor in zip(("query", "key", "value"), joined.chunk(3), strict=True):
                weights[f"decoder.{n}.attention.{part}{key}"] = tensor
        for name, module in (("attention.output", layer.attn.c_proj), ("feedforward.up", layer.mlp.c_fc),
                             ("feedforward.output", layer.mlp.c_proj)):  # fmt: skip
            weights |= named(f"decoder.{n}.{name}", module, turned=True)
        weights |= named(f"decoder.{n}.attention_norm", layer.ln_1)
        weights |= named(f"decoder.{n}.feedforward_norm", layer.ln_2)
    return config, weights


def _llama(model: Any, output: Any) -> tuple[TransformerConfig, Weights]:
    given, base = model.config, model.base_model
    config = TransformerConfig.llama(
        given.vocab_size, length=given.max_position_embeddings, layers=given.num_hidden_layers,
        d_model=given.hidden_size, heads=given.num_attention_heads, output=output,
        key_heads=given.num_key_value_heads, d_k=given.head_dim, d_hidden=given.intermediate_size,
        activation=ACTIVATIONS[given.hidden_act], norm_eps=given.rms_norm_eps,
        rotary_base=float(given.rope_parameters["rope_theta"]), bias=bool(given.attention_bias),
    )  # fmt: skip
    weights = {"embedding.weight": base.embed_tokens.weight, **named("decoder_norm", base.norm)}
    for n, layer in enumerate(base.layers):
        attention, feedforward = layer.self_attn, layer.mlp
        modules = {
            "attention.query": attention.q_proj, "attention.key": attention.k_proj, "attention.value": attention.v_proj,
            "attention.output": attention.o_proj, "attention_norm": layer.input_layernorm,
            "feedforward.gate": feedforward.gate_proj, "feedforward.up": feedforward.up_proj,
            "feedforward.output": feedforward.down_proj, "feedforward_norm": layer.post_attention_layernorm,
        }  # fmt: skip
        for name, module in modules.items():
            weights |= named(f"decoder.{n}.{name}", module)
    return config, weights
