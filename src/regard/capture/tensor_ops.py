"""Recognise one operation of a forward pass: a sum, a linear map, a norm, or a product with known factors."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.trace.attention_output import Norm

ADDS = ("add", "__add__", "__radd__", "add_", "__iadd__")
PRODUCTS = ("mul", "multiply", "__mul__", "__rmul__")
QUOTIENTS = ("div", "divide", "true_divide", "__truediv__")
CASTS = ("to", "float", "double", "half", "bfloat16", "type", "type_as")
STATISTICS = ("pow", "__pow__", "square", "mean", "var", "norm", "vector_norm", "linalg_vector_norm")


@dataclass
class Operation:
    """One operation that read a followed tensor. args are as they were before it, also where it wrote into one."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Tensor | None
    storage: int  # the followed one
    storages: list[int]  # of the arguments, as given

    @property
    def adds(self) -> bool:
        """Whether it is the plain sum of two tensors."""
        return self.name in ADDS and len(self.storages) == 2 and 0 not in self.storages and not self.kwargs

    @property
    def measures(self) -> bool:
        """Whether it reads the followed tensor for a statistic of it, as an RMS norm does: its square, its dtype."""
        squares = self.name in PRODUCTS and len(self.storages) == 2 and self.storages[0] == self.storages[1]
        like = self.name in CASTS and self.storages[0] != self.storage
        return squares or like or self.name in STATISTICS


@dataclass(frozen=True)
class Factors:
    """What a vector was multiplied by on its way: one factor a token, (B, L, 1), and one a component, (M,)."""

    scale: Tensor | float = 1.0
    gain: Tensor | float = 1.0

    @property
    def plain(self) -> bool:
        """Whether there were none."""
        return isinstance(self.scale, float) and isinstance(self.gain, float) and self.scale * self.gain == 1.0


def factors(seen: Operation, before: Factors) -> Factors | None:
    """The factors after an operation that gives a multiple of the followed vectors; None for any other operation.

    The result has to have the followed tensor's shape, and a factor that is no number has to be one for each token or
    one for each component: a gate (a factor for each component of each token) is none.
    """
    mine = next((each for each in seen.args if isinstance(each, Tensor) and storage_of(each) == seen.storage), None)
    if mine is None or seen.result is None or seen.result.shape != mine.shape:
        return None
    if seen.name in CASTS:
        return before
    if seen.name == "rms_norm":
        return _rms_norm(seen, mine, before)
    if seen.kwargs or len(seen.args) != 2 or seen.name not in (*PRODUCTS, *QUOTIENTS):
        return None
    first, second = seen.args
    if seen.name in QUOTIENTS and first is not mine:
        return None
    factor = second if first is mine else first
    if isinstance(factor, Tensor) and storage_of(factor) == seen.storage:
        return None
    if not isinstance(factor, Tensor):
        number = 1 / float(factor) if seen.name in QUOTIENTS else float(factor)
        return Factors(before.scale * number, before.gain)
    factor = factor.reciprocal() if seen.name in QUOTIENTS else factor
    if factor.shape[-1:] in ((), (1,)):
        return Factors(before.scale * factor.expand(*mine.shape[:-1], 1), before.gain)
    if factor.shape == mine.shape[-1:]:
        return Factors(before.scale, before.gain * factor)
    return None


def multiplies_by_number(name: str, args: tuple[Any, ...]) -> bool:
    """Whether an operation does no more than multiply a tensor by a number."""
    return name in PRODUCTS and len(args) == 2 and sum(isinstance(each, (int, float)) for each in args) == 1


def linear(seen: Operation) -> tuple[Tensor, Tensor, Tensor | None] | None:
    """(input, weight (M, C), bias) of a linear map: nn.Linear's call, or addmm as GPT-2's Conv1D writes it."""
    if seen.name == "linear":
        both = dict(zip(("input", "weight", "bias"), seen.args, strict=False)) | seen.kwargs
        found = both["input"], both["weight"], both.get("bias")
    elif seen.name == "addmm" and len(seen.args) == 3 and not seen.kwargs and seen.args[0].ndim == 1:
        found = seen.args[1], seen.args[2].T, seen.args[0]
    else:
        return None
    return found if storage_of(found[0]) == seen.storage else None


def layer_norm(seen: Operation) -> Norm | None:
    """The layer norm, where it is one over the last axis."""
    if seen.name != "layer_norm":
        return None
    both = dict(zip(("input", "normalized_shape", "weight", "bias", "eps"), seen.args, strict=False)) | seen.kwargs
    if len(both["normalized_shape"]) != 1 or storage_of(both["input"]) != seen.storage:
        return None
    weight, bias = both.get("weight"), both.get("bias")
    return Norm(
        None if weight is None else weight.detach(), None if bias is None else bias.detach(), both.get("eps", 1e-5)
    )


def tensors_in(values: Any) -> Iterator[Tensor]:
    """The tensors among values, and in lists of them."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from (each for each in value if isinstance(each, Tensor))


def storage_of(tensor: Tensor) -> int:
    """Where a tensor's numbers lie; 0 for one that has none (inside vmap, without elements)."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return 0


def writes(name: str) -> bool:
    """Whether an operation of this name writes into its first argument."""
    return (name.endswith("_") and not name.endswith("__")) or name.startswith("__i") or name == "__setitem__"


def versions(*tensors: Tensor | None) -> tuple[int, ...]:
    """How often tensors were written to. Inference tensors do not say."""
    return tuple(0 if t is None or t.is_inference() else t._version for t in tensors)


def _rms_norm(seen: Operation, mine: Tensor, before: Factors) -> Factors | None:
    """The factors after torch's own RMS norm over the last axis."""
    both = dict(zip(("input", "normalized_shape", "weight", "eps"), seen.args, strict=False)) | seen.kwargs
    if len(both["normalized_shape"]) != 1 or both["input"] is not mine:
        return None
    eps, weight = both.get("eps"), both.get("weight")
    eps = torch.finfo(mine.dtype).eps if eps is None else eps
    scale = (mine.square().mean(-1, keepdim=True) + eps).rsqrt()
    return Factors(before.scale * scale, before.gain if weight is None else before.gain * weight)
