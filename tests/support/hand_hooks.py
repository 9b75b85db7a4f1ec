"""Patches written by hand, which regard is held against: forward hooks on a model that attends eagerly."""

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Hands:
    """Where one layer of a family has what is patched. cross: whether its attention takes keys from another text."""

    model: nn.Module
    layer: str
    value: str
    output: str
    feed_forward: str
    heads: int
    key_heads: int
    weights: str = "attentions"

    def module(self, below: str = "") -> nn.Module:
        return self.model.get_submodule(f"{self.layer}.{below}" if below else self.layer)

    def seen(self, **inputs: Tensor) -> dict[str, Tensor]:
        """What the layer has of one text: (L, ·), weights (H, L, S)."""
        found: dict[str, Tensor] = {}
        with ExitStack() as hooks, torch.no_grad():
            add = hooks.enter_context
            add(self.module().register_forward_hook(lambda _m, _a, out: found.__setitem__("hidden_states", first(out))))
            add(self.module(self.value).register_forward_hook(lambda _m, _a, out: found.__setitem__("values", out)))
            add(
                self.module(self.output).register_forward_pre_hook(
                    lambda _m, args: found.__setitem__("head_outputs", args[0])
                )
            )
            add(
                self.module(self.feed_forward).register_forward_hook(
                    lambda _m, _a, out: found.__setitem__("feed_forward", out)
                )
            )
            output = self.model(**inputs, output_attentions=True)
        number = int(self.layer.rpartition(".")[2])
        return {name: each[0] for name, each in found.items()} | {"weights": getattr(output, self.weights)[number][0]}

    def patched(
        self, what: str, at: list[int], rows: Tensor, head: int | None = None, *, adds: bool = False, **inputs: Tensor
    ) -> Any:
        """What the model returns of one text where rows, as `seen` gives them, stand at some positions."""
        values: list[Tensor] = []

        def put(tensor: Tensor, heads: int) -> Tensor:
            tensor = tensor.clone()
            width = tensor.shape[-1] // heads
            own = slice(None) if head is None else slice(head * width, (head + 1) * width)
            tensor[0, at, own] = tensor[0, at, own] + rows[:, own] if adds else rows[:, own]
            return tensor

        def weighted(_module: nn.Module, args: Any) -> Any:
            context, width = args[0].clone(), args[0].shape[-1] // self.heads
            for own in range(self.heads) if head is None else [head]:
                group = own * self.key_heads // self.heads
                value = values[0][0][:, group * width : (group + 1) * width]
                context[0, at, own * width : (own + 1) * width] = rows[own] @ value
            return (context, *args[1:])

        with ExitStack() as hooks, torch.no_grad():
            add = hooks.enter_context
            if what == "hidden_states":
                add(self.module().register_forward_hook(lambda _m, _a, out: replaced(out, put(first(out), 1))))
            elif what == "feed_forward":
                add(self.module(self.feed_forward).register_forward_hook(lambda _m, _a, out: put(out, 1)))
            elif what == "values":
                add(self.module(self.value).register_forward_hook(lambda _m, _a, out: put(out, self.key_heads)))
            elif what == "head_outputs":
                add(
                    self.module(self.output).register_forward_pre_hook(
                        lambda _m, args: (put(args[0], self.heads), *args[1:])
                    )
                )
            else:
                add(self.module(self.value).register_forward_hook(lambda _m, _a, out: values.append(out)))
                add(self.module(self.output).register_forward_pre_hook(weighted))
            return self.model(**inputs)


def first(output: Any) -> Tensor:
    return output[0] if isinstance(output, tuple) else output


def replaced(output: Any, states: Tensor) -> Any:
    return (states, *output[1:]) if isinstance(output, tuple) else states


def bert(model: nn.Module, number: int) -> Hands:
    config = model.config
    parts = "attention.self.value", "attention.output.dense", "output.dense"
    heads = config.num_attention_heads
    return Hands(model, f"encoder.layer.{number}", *parts, heads, heads)


def llama(model: nn.Module, number: int) -> Hands:
    config = model.config
    parts = "self_attn.v_proj", "self_attn.o_proj", "mlp"
    path = "model.layers" if hasattr(model, "model") else "layers"
    return Hands(model, f"{path}.{number}", *parts, config.num_attention_heads, config.num_key_value_heads)


def marian(model: nn.Module, number: int, part: str) -> Hands:
    config = model.config
    attention = "encoder_attn" if part == "cross" else "self_attn"
    parts = f"{attention}.v_proj", f"{attention}.out_proj", "fc2"
    stack = "encoder" if part == "encoder" else "decoder"
    path = f"model.{stack}" if hasattr(model, "model") else stack
    heads = config.encoder_attention_heads
    kind = {"encoder": "encoder_attentions", "decoder": "decoder_attentions", "cross": "cross_attentions"}[part]
    return Hands(model, f"{path}.layers.{number}", *parts, heads, heads, kind)
