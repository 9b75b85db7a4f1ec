"""Recognise one operation of a forward pass: a sum, a linear map, a norm, or a product with known factors."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from regard.capture.operations import ADDS, CASTS, PRODUCTS, QUOTIENTS, STATISTICS, linear_map, norm
from regard.trace.attention_output import Norm


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
    if seen.kwargs or len(seen.args) != 2 or seen.name not in PRODUCTS | QUOTIENTS:
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
    """(input, weight (M, C), bias) of a linear map of the followed tensor."""
    found = linear_map(seen.name, seen.args, seen.kwargs)
    if found is None or storage_of(found[0]) != seen.storage:
        return None
    x, weight, bias, transposed = found
    return None if bias is not None and bias.ndim != 1 else (x, weight.T if transposed else weight, bias)


def layer_norm(seen: Operation) -> Norm | None:
    """The layer norm, where it is one over the last axis."""
    given = norm(seen.name, seen.args, seen.kwargs) if seen.name == "layer_norm" else None
    if given is None or storage_of(given["input"]) != seen.storage:
        return None
    weight, bias = (None if each is None else each.detach() for each in (given.get("weight"), given.get("bias")))
    return Norm(weight, bias, given["eps"])


def storage_of(tensor: Tensor) -> int:
    """Where a tensor's numbers lie; 0 for one that has none (inside vmap, without elements)."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return 0


def versions(*tensors: Tensor | None) -> tuple[int, ...]:
    """How often tensors were written to. Inference tensors do not say."""
    return tuple(0 if t is None or t.is_inference() else t._version for t in tensors)


def _rms_norm(seen: Operation, mine: Tensor, before: Factors) -> Factors | None:
    """The factors after torch's own RMS norm over the last axis."""
    given = norm(seen.name, seen.args, seen.kwargs)
    if given is None or given["input"] is not mine:
        return None
    weight, scale = given.get("weight"), (mine.square().mean(-1, keepdim=True) + given["eps"]).rsqrt()
    return Factors(before.scale * scale, before.gain if weight is None else before.gain * weight)
