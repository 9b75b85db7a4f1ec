"""Decide whether a product is attention: does it sum vectors, by weights, over the softmax's axis?

Each axis of the two factors and of the result gets a letter, as in an einsum. The decision reads no numbers, so that it
does not depend on the data and does not wait for a GPU.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

PRODUCTS = frozenset(("matmul", "__matmul__", "__rmatmul__", "bmm", "mm", "mv", "baddbmm", "einsum"))

Axis = str | None  # "key" for that of the softmax, "learned" for one that a learned matrix makes
Axes = tuple[Axis, ...]


class Product(NamedTuple):
    """Two factors and the letters of their axes and of the result's."""

    factors: tuple[Tensor, Tensor]
    letters: tuple[list[str], list[str]]
    result: list[str]


class Layout(NamedTuple):
    """Which axes of weights are batch and heads, which are queries, and which is the keys'. By letters."""

    axes: list[str]
    batch: list[str]
    query: list[str]
    key: str

    @property
    def order(self) -> list[int]:
        """The axes in the order batch, query, key. Axes of size 1 that broadcast come last."""
        named = [*self.batch, *self.query, self.key]
        return [self.axes.index(letter) for letter in (*named, *(x for x in self.axes if x not in named))]

    def as_map(self, weights: Tensor, heads: int | None = None) -> Tensor:
        """Return weights as a map shows them, with up to 4 axes. heads: of an axis that is batch and heads in one."""
        mapped = weights.ndim - len(self.axes)  # axes of vmap, which come first
        weights = weights.permute(*range(mapped), *(mapped + n for n in self.order))
        lead = weights.shape[: mapped + len(self.batch)]
        if heads and len(lead) == 1:
            lead = torch.Size((lead[0] // heads, heads))
        queries = weights.shape[mapped + len(self.batch) : mapped + len(self.batch) + len(self.query)]
        keys = weights.shape[mapped + len(self.batch) + len(self.query)]
        weights = weights.reshape(*lead, math.prod(queries), keys)
        return weights.flatten(0, weights.ndim - 4) if weights.ndim > 4 else weights

    def as_factor(self, weights: Tensor, factor: Tensor) -> Tensor:
        """Undo `as_map`: return the weights in the shape of the factor that they were."""
        order = self.order
        permuted = weights.reshape([factor.shape[n] for n in order])
        return permuted.permute([order.index(n) for n in range(len(order))])


def product_of(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Product | None:
    """Return the factors and letters of a call of one of `PRODUCTS`; None if it has not two factors."""
    operands = [*args, *kwargs.values()]
    if name == "einsum":
        equation, *operands = operands
        if len(operands) == 1 and isinstance(operands[0], list | tuple):
            operands = list(operands[0])
    operands = operands[1:3] if name == "baddbmm" else operands[::-1] if name == "__rmatmul__" else operands
    if len(operands) != 2 or not all(isinstance(factor, Tensor) and factor.ndim for factor in operands):
        return None
    a, b = operands
    if name == "einsum":
        return _einsum_product(equation, a, b) if isinstance(equation, str) else None
    lead = [chr(ord("a") + n) for n in range(max(a.ndim, b.ndim, 2) - 2)]
    leads = [lead[len(lead) + 2 - factor.ndim :] if factor.ndim > 2 else [] for factor in (a, b)]
    rows, cols = ["L"] * (a.ndim > 1), ["E"] * (b.ndim > 1)
    return Product((a, b), ([*leads[0], *rows, "S"], [*leads[1], "S", *cols]), [*lead, *rows, *cols])


def _einsum_product(equation: str, a: Tensor, b: Tensor) -> Product | None:
    inputs, _, result = equation.replace(" ", "").partition("->")
    parts = inputs.split(",")
    if not result or len(parts) != 2:
        return None
    unnamed = [
        t.ndim - len(part.replace("...", "")) if "..." in part else 0 for part, t in zip(parts, (a, b), strict=True)
    ]
    dots = [chr(192 + n) for n in range(max(unnamed))]  # letters that an equation can't have
    left, right = (
        list(part.replace("...", "".join(dots[len(dots) - n :]))) for part, n in zip(parts, unnamed, strict=True)
    )
    return Product((a, b), (left, right), list(result.replace("...", "".join(dots))))


def sum_of_terms(weights: Tensor, value: Tensor, ndim: int, dim: int) -> Product:
    """Describe `(weights * value).sum(dim)` as a product. ndim: of the terms."""
    axes = [chr(ord("a") + n) for n in range(ndim)]
    summed = axes[dim % ndim]

    def letters(factor: Tensor) -> list[str]:
        letters_of = axes[ndim - factor.ndim :]
        return [f"_{letter}" if size == 1 else letter for letter, size in zip(letters_of, factor.shape, strict=True)]

    return Product(
        (weights, value), (letters(weights), letters(value)), [letter for letter in axes if letter != summed]
    )


def judge(axes: Axes, product: Product, n: int, *, learned_scores: bool, learned_value: bool) -> Layout | str:
    """Return the layout of weights in a product that is attention, else the reason why it is none.

    axes: of the weights, factor n. learned_scores: a learned matrix makes the softmax's axis. learned_value: the other
    factor is a parameter, and the scores are no product of queries and keys.
    """
    mine, other, result = product.letters[n], product.letters[1 - n], product.result
    key = mine[axes.index("key")] if "key" in axes else None
    if key is None or key in result or key not in other:
        return "no sum runs over the axis of the softmax"
    if not any(letter in result and letter not in mine for letter in other):
        return "numbers are summed, no vectors"
    if learned_scores:
        return "its scores are a learned matrix's outputs: a gate, a router or a classifier"
    if learned_value:
        return "learned vectors are mixed"
    batch = [letter for letter in mine if letter != key and letter in other]
    query = [letter for letter in mine if letter != key and letter not in batch and letter in result]
    while len(query) > 1 and len(batch) < 2:  # heads that share their values
        batch.append(query.pop(0))
    return Layout(mine, batch, query, key)


class View:
    """A view of a tensor whose axes are known. It keeps shapes and strides, and neither tensor."""

    def __init__(self, of: Any, function: Callable[..., Any], n: int, args: Any, kwargs: Any, view: Tensor) -> None:
        """Describe a view: what function(*args, **kwargs) returned. of: the `Track` of argument n."""
        source = args[n]
        self.of, self.shape, self.strides = of, source.shape, source.stride()
        self.view_shape, self.view_strides = view.shape, view.stride()
        self.call: Any = None
        if not (source.is_contiguous() and view._is_view()):  # it may be a copy, whose strides say nothing
            self.call = function, (*args[:n], None, *args[n + 1 :]), n, kwargs
            if any(isinstance(argument, Tensor) for argument in self.call[1]):
                self._make_again()

    def axes(self) -> Axes:
        """Return what each axis is, by its stride."""
        if self.call is not None:
            self._make_again()
        known = [axis for axis in zip(self.strides, self.shape, self.of.axes, strict=True) if axis[1] > 1]
        result: list[Axis] = []
        for stride, size in zip(self.view_strides, self.view_shape, strict=True):
            over = [(n, axis) for step, n, axis in known if stride and step <= stride < step * n and size > 1]
            result.append(over[0][1] if over and size <= over[0][0] else None)
        return tuple(result)

    def _make_again(self) -> None:
        """Make the view of a contiguous tensor without numbers. If that fails, no axis is known."""
        function, args, n, kwargs = self.call
        self.call, probe = None, torch.empty(self.shape, device="meta")
        self.strides = probe.stride()
        try:
            view = function(*args[:n], probe, *args[n + 1 :], **kwargs)
            self.view_shape, self.view_strides = view.shape, view.stride()
        except Exception:  # a function of tensors on one device, for example, or of several results
            self.view_strides = (0,) * len(self.view_shape)
