"""Forward passes written out in float64 from a model's weights alone, with the residual stream kept in its parts.

Two shapes of model: BERT's (norms behind each sum) and Llama's (RMS norms before each part, rotary positions). Nothing
of regard is used: this is what its splits are held against.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Parts = dict[str, Tensor]  # (L, M) each, by the names that regard gives to writers


def bert(model: Any, ids: list[int], layer: int, head: int) -> tuple[Parts, Parts]:
    """The parts, (L, D) each, of queries and keys of one head of a BERT."""
    weights = {name: tensor.double() for name, tensor in model.state_dict().items()}
    config = model.config
    width = config.hidden_size // config.num_attention_heads

    def norm(parts: Parts, name: str, bias: str) -> Parts:
        whole = sum(parts.values())
        deviation = (whole.var(-1, correction=0, keepdim=True) + config.layer_norm_eps).sqrt()
        gain = weights[f"{name}.weight"]
        made = {n: (x - x.mean(-1, keepdim=True)) / deviation * gain for n, x in parts.items()}
        made[bias] = made.get(bias, 0) + weights[f"{name}.bias"].expand_as(whole)
        return made

    def linear(x: Tensor, name: str) -> Tensor:
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    table = "embeddings."
    parts = {
        "token embedding": weights[f"{table}word_embeddings.weight"][ids],
        "segment embedding": weights[f"{table}token_type_embeddings.weight"][[0] * len(ids)],
        "position embedding": weights[f"{table}position_embeddings.weight"][: len(ids)],
    }
    parts = norm(parts, "embeddings.LayerNorm", "biases before layer 0")
    for n in range(layer):
        at, own = f"encoder.layer.{n}.", f"layer {n}, biases"
        x = sum(parts.values())
        q, k, v = (linear(x, f"{at}attention.self.{each}") for each in ("query", "key", "value"))
        out, b = weights[f"{at}attention.output.dense.weight"], weights[f"{at}attention.output.dense.bias"]
        for h in range(config.num_attention_heads):
            run = slice(h * width, (h + 1) * width)
            attended = (q[:, run] @ k[:, run].T / math.sqrt(width)).softmax(-1) @ v[:, run]
            parts[f"layer {n}, head {h}"] = attended @ out[:, run].T
        parts[own] = b.expand_as(x)
        parts = norm(parts, f"{at}attention.output.LayerNorm", own)
        x = sum(parts.values())
        hidden = torch.nn.functional.gelu(linear(x, f"{at}intermediate.dense"))
        parts[f"layer {n}, feed-forward"] = linear(hidden, f"{at}output.dense")
        parts = norm(parts, f"{at}output.LayerNorm", own)
    sides = []
    for each in ("query", "key"):
        name, run = f"encoder.layer.{layer}.attention.self.{each}", slice(head * width, (head + 1) * width)
        side = {n: x @ weights[f"{name}.weight"][run].T for n, x in parts.items()}
        side[f"layer {layer}, biases"] = weights[f"{name}.bias"][run].expand(len(ids), width)
        sides.append(side)
    return sides[0], sides[1]


def llama_states(model: Any, ids: list[int]) -> Parts:
    """The parts, (L, M) each, of a Llama's last hidden states, behind its final norm."""
    return _llama(model, ids, model.config.num_hidden_layers)[1]


def llama(model: Any, ids: list[int], layer: int, head: int) -> tuple[Parts, Parts]:
    """The parts, (L, D) each, of queries and keys of one head of a Llama, turned by their positions."""
    sides = _llama(model, ids, layer)[0]
    return sides(head)


def _llama(model: Any, ids: list[int], layer: int) -> tuple[Callable[[int], tuple[Parts, Parts]], Parts]:
    """What gives a head's queries and keys of a layer, and the states that enter it, behind the final norm."""
    weights = {name.removeprefix("model."): tensor.double() for name, tensor in model.state_dict().items()}
    config = model.config
    heads, groups = config.num_attention_heads, config.num_key_value_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // heads
    theta = config.rope_parameters["rope_theta"]
    angles = torch.arange(len(ids)).double()[:, None] * theta ** (-torch.arange(0, width, 2).double() / width)
    cos, sin = angles.cos().repeat(1, 2), angles.sin().repeat(1, 2)

    def turned(x: Tensor) -> Tensor:
        return x * cos + torch.cat([-x[:, width // 2 :], x[:, : width // 2]], -1) * sin

    def normed(x: Tensor, whole: Tensor, name: str) -> Tensor:
        return x / (whole.square().mean(-1, keepdim=True) + config.rms_norm_eps).sqrt() * weights[f"{name}.weight"]

    def of_head(x: Tensor, name: str, h: int) -> Tensor:
        return x @ weights[f"{name}.weight"][h * width : (h + 1) * width].T

    parts = {"token embedding": weights["embed_tokens.weight"][ids]}
    future = torch.ones(len(ids), len(ids)).triu(1).bool()
    for n in range(layer):
        at = f"layers.{n}."
        whole = sum(parts.values())
        x = normed(whole, whole, f"{at}input_layernorm")
        for h in range(heads):
            q = turned(of_head(x, f"{at}self_attn.q_proj", h))
            k, v = (of_head(x, f"{at}self_attn.{each}_proj", h * groups // heads) for each in ("k", "v"))
            scores = (q @ turned(k).T / math.sqrt(width)).masked_fill(future, -torch.inf)
            out = weights[f"{at}self_attn.o_proj.weight"][:, h * width : (h + 1) * width]
            parts[f"layer {n}, head {h}"] = scores.softmax(-1) @ v @ out.T
        whole = sum(parts.values())
        x = normed(whole, whole, f"{at}post_attention_layernorm")
        gate, up = (x @ weights[f"{at}mlp.{each}_proj.weight"].T for each in ("gate", "up"))
        hidden = torch.nn.functional.silu(gate) * up
        parts[f"layer {n}, feed-forward"] = hidden @ weights[f"{at}mlp.down_proj.weight"].T
    whole, at = sum(parts.values()), f"layers.{layer}."

    def sides(head: int) -> tuple[Parts, Parts]:
        made = []
        for each, h in (("q", head), ("k", head * groups // heads)):
            own = {n: normed(x, whole, f"{at}input_layernorm") for n, x in parts.items()}
            made.append({n: turned(of_head(x, f"{at}self_attn.{each}_proj", h)) for n, x in own.items()})
        return made[0], made[1]

    return sides, {n: normed(x, whole, "norm") for n, x in parts.items()}
