"""Attention layers with one head, as in textbooks: projections of the input, then `attend`.

    context = attend(x @ W_query, x @ W_key, x @ W_value)

`MultiHeadAttention` is in multihead.py. Shapes: B batch, L queries, S keys, d_k query and key width, d_v value
width. Source: Vaswani et al. 2017, "Attention Is All You Need".
"""

from typing import Any, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.attend import attend
from regard.attention.attention_map import AttentionMap
from regard.checks import arguments_named, check_integer

CONVENTIONS = ("x @ W", "W @ x")
TRY_OTHER = "if your matrices are (out, in), the convention is 'W @ x'"
Layer = TypeVar("Layer", bound="_OneHead")


class _OneHead(nn.Module):
    """Base class of self- and cross-attention with one head: query, key and value projections."""

    def __init__(self, d_query: int, d_context: int, d_k: int, d_v: int, bias: bool) -> None:
        super().__init__()
        for name, width in (("d_k", d_k), ("d_v", d_v)):
            check_integer(name, width)
        self.query = nn.Linear(d_query, d_k, bias)
        self.key = nn.Linear(d_context, d_k, bias)
        self.value = nn.Linear(d_context, d_v, bias)

    def _attention(self, x: Tensor, context: Tensor, return_attention: bool, rule: dict[str, Any]) -> Any:
        query, key, value = self.query(x), self.key(context), self.value(context)
        if x.ndim == 3:  # a batch with one head; attend would read three axes as heads
            query, key, value = query[:, None], key[:, None], value[:, None]
        result = attend(query, key, value, **rule)
        output = result.output[:, 0] if x.ndim == 3 else result.output
        return (output, result.weights) if return_attention else output

    @classmethod
    def _of_weights(cls: type[Layer], widths: Any, query: Tensor, key: Tensor, value: Tensor) -> Layer:
        """Build a layer with these widths from copies of three (out, in) matrices."""
        with torch.device("meta"):  # draws no random numbers, so torch's state doesn't change
            module = cls(*widths)
        for layer, weight in ((module.query, query), (module.key, key), (module.value, value)):
            layer.weight = nn.Parameter(weight.detach().clone())
        return module


class SelfAttention(_OneHead):
    """Self-attention with one head, d_in → d_v. `layer(x)` returns the context vectors, (B, L, d_v) or (L, d_v).

    A new layer initializes its matrices like nn.Linear. To set them, use `from_weights`.

    `layer(x, return_attention=True)` returns (context, AttentionMap). You can also use `regard.record()`.
    The map's shape is (B, 1, L, L), or (L, L) for an input without a batch axis.
    """

    @arguments_named
    def __init__(self, d_in: int, d_k: int, d_v: int | None = None, *, bias: bool = False) -> None:
        """Build the three projections. d_v: the width of the values. Default: d_k."""
        check_integer("d_in", d_in)
        super().__init__(d_in, d_in, d_k, d_k if d_v is None else d_v, bias)

    @classmethod
    def from_weights(
        cls, query: Float[Tensor, "_ _"], key: Float[Tensor, "_ _"], value: Float[Tensor, "_ _"], *, convention: str
    ) -> "SelfAttention":
        """Make a layer with copies of these projections.

        Args:
            query, key, value: W_Q, W_K and W_V.
            convention: "x @ W" if a matrix is (d_in, d_k), "W @ x" if it is (d_k, d_in), as in nn.Linear.

        Raises:
            ValueError: the convention is unknown, or the shapes of the matrices don't match.
        """
        query, key, value = as_linear_weights(convention, query=query, key=key, value=value)
        check_input_width("key", key, query)
        check_input_width("value", value, query)
        return cls._of_weights((query.shape[1], query.shape[0], value.shape[0]), query, key, value)

    def forward(
        self, x: Float[Tensor, "*B L d_in"], *, return_attention: bool = False, **rule: Any
    ) -> Float[Tensor, "*B L d_v"] | tuple[Float[Tensor, "*B L d_v"], AttentionMap]:
        """Compute context vectors. rule: keyword arguments of `regard.attend`: mask, bias, causal, window, scale, …"""
        check_layer_input("x", x, self.query.in_features)
        return self._attention(x, x, return_attention, rule)


class CrossAttention(_OneHead):
    """Cross-attention with one head. Queries come from one sequence, keys and values from another of any width.

    `layer(x, context)` returns (B, L, d_v) or (L, d_v). With `return_attention=True` it also returns the map.
    """

    @arguments_named
    def __init__(self, d_query: int, d_context: int, d_k: int, d_v: int | None = None, *, bias: bool = False) -> None:
        """Build the three projections. d_v: the width of the values. Default: d_k."""
        check_integer("d_query", d_query)
        check_integer("d_context", d_context)
        super().__init__(d_query, d_context, d_k, d_k if d_v is None else d_v, bias)

    @classmethod
    def from_weights(
        cls, query: Float[Tensor, "_ _"], key: Float[Tensor, "_ _"], value: Float[Tensor, "_ _"], *, convention: str
    ) -> "CrossAttention":
        """Make a layer with copies of these projections.

        Args:
            query, key, value, convention: as in `SelfAttention.from_weights`, with the same errors.
        """
        query, key, value = as_linear_weights(convention, query=query, key=key, value=value)
        check_input_width("value", value, key)
        return cls._of_weights((query.shape[1], key.shape[1], query.shape[0], value.shape[0]), query, key, value)

    def forward(
        self,
        x: Float[Tensor, "*B L d_query"],
        context: Float[Tensor, "*B S d_context"],
        *,
        return_attention: bool = False,
        **rule: Any,
    ) -> Float[Tensor, "*B L d_v"] | tuple[Float[Tensor, "*B L d_v"], AttentionMap]:
        """Compute context vectors for x's positions. rule: keyword arguments of `regard.attend`."""
        check_layer_input("x", x, self.query.in_features)
        check_layer_input("context", context, self.key.in_features, x)
        return self._attention(x, context, return_attention, rule)


def as_linear_weights(convention: str, **weights: Tensor) -> list[Tensor]:
    """Return query, key and value matrices as (out, in), the layout of nn.Linear.

    Raises:
        ValueError: the convention is unknown, the matrices differ in dtype, or query and key differ in width.
    """
    if convention not in CONVENTIONS:
        raise ValueError(f"convention: got {convention!r}, expected {' or '.join(map(repr, CONVENTIONS))}")
    dtype = weights["query"].dtype
    for name, weight in weights.items():
        if weight.ndim != 2 or weight.dtype != dtype:
            raise ValueError(
                f"{name}: got {weight.dtype} of shape {tuple(weight.shape)}, expected a matrix of {dtype}; "
                "stacked heads go side by side: weight.flatten(0, 1)"
            )
        if not weight.is_floating_point():
            raise ValueError(f"{name}: got {weight.dtype}, expected floating-point weights")
    matrices = [weight.mT if convention == "x @ W" else weight for weight in weights.values()]
    if matrices[1].shape[0] != matrices[0].shape[0]:
        raise ValueError(f"key: got weights for width {matrices[1].shape[0]}, expected {matrices[0].shape[0]}")
    return matrices


def check_input_width(name: str, weight: Tensor, like: Tensor) -> None:
    """Raise ValueError unless two (out, in) matrices are for inputs of the same width."""
    if weight.shape[1] != like.shape[1]:
        raise ValueError(
            f"{name}: got weights for inputs of width {weight.shape[1]}, expected {like.shape[1]}; {TRY_OTHER}"
        )


def check_layer_input(name: str, x: Any, width: int, like: Tensor | None = None) -> None:
    """Raise TypeError or ValueError unless x is (B, L, width) or (L, width), with the batch of `like`.

    Args:
        name: the argument's name for error messages.
        x: the argument's value.
        width: the expected size of the last axis.
        like: a tensor with the required batch size, or None.
    """
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: got {type(x).__name__}, expected a torch tensor")
    if x.ndim not in (2, 3) or x.shape[-1] != width:
        raise ValueError(
            f"{name}: got shape {tuple(x.shape)}, expected (batch, positions, {width}) or (positions, {width})"
        )
    if like is not None and x.shape[:-2] != like.shape[:-2]:
        raise ValueError(f"{name}: got shape {tuple(x.shape)}, expected the same batch as x, {tuple(like.shape)}")
