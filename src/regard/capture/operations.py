"""Classify the operations of a forward pass by the names of torch functions, and read their arguments.

All modules that watch operations use these tables. An `Operation` reads a followed tensor. It may be a sum, a linear
map, a norm, or a product with known factors.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from regard.trace.attention_output import Norm

CASTS = ("to", "float", "double", "half", "bfloat16", "type", "type_as", "cpu", "cuda")
# Operations that only rearrange or sum the values of their first argument.
MOVES = frozenset((
    "__get__", "__getitem__", "broadcast_to", "chunk", "clone", "contiguous", "expand", "expand_as", "flatten", "flip",
    "gather", "index_select", "mean", "moveaxis", "movedim", "narrow", "neg", "__neg__", "permute", "positive",
    "repeat", "repeat_interleave", "reshape", "reshape_as", "roll", "select", "split", "split_with_sizes", "squeeze",
    "sum", "swapaxes", "swapdims", "t", "tensor_split", "tile", "transpose", "unbind", "unflatten", "unsqueeze", "view",
    "view_as", "view_as_complex", "view_as_real", *CASTS,
))  # fmt: skip
JOINS = frozenset(("cat", "concat", "concatenate", "stack", "hstack", "vstack"))
# Operations that don't read a tensor's values, only properties such as shape and dtype.
LIKE = frozenset((
    "zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "new_zeros", "new_ones", "new_empty", "new_full",
    "new_tensor", "size", "dim", "numel", "stride", "is_floating_point", "is_complex", "is_contiguous", "element_size",
    "data_ptr", "__len__", "storage_offset", "untyped_storage", "get_device", "ndimension",
))  # fmt: skip
WRITES = frozenset(("copy_", "__setitem__"))  # write the last argument into the first
# The signs of a sum's terms.
SUMS = {"add": (1, 1), "__add__": (1, 1), "__radd__": (1, 1), "sub": (1, -1), "subtract": (1, -1), "__sub__": (1, -1),
        "rsub": (-1, 1), "__rsub__": (-1, 1)}  # fmt: skip
PRODUCTS = frozenset(("mul", "multiply", "__mul__", "__rmul__"))
QUOTIENTS = frozenset(("div", "divide", "true_divide", "__truediv__"))
IN_PLACE = {"add_": "add", "sub_": "sub", "mul_": "mul", "div_": "div", "__iadd__": "add", "__isub__": "sub",
            "__imul__": "mul", "__itruediv__": "div"}  # fmt: skip
ADDS = frozenset(name for name in (*SUMS, *IN_PLACE) if SUMS.get(IN_PLACE.get(name, name)) == (1, 1))
MATRIX_PRODUCTS = frozenset(("matmul", "__matmul__", "mm", "bmm", "baddbmm", "einsum"))
LINEAR_MAPS = {"linear": ("input", "weight", "bias"), "addmm": ("input", "mat1", "mat2")}
SOFTMAXES = ("softmax", "_softmax")
STATISTICS = frozenset(("pow", "__pow__", "square", "mean", "var", "norm", "vector_norm", "linalg_vector_norm"))
ACTIVATIONS = frozenset(("tanh", "relu", "gelu", "silu", "sigmoid", "elu", "leaky_relu", "mish"))
DROPOUTS = frozenset(("dropout", "dropout1d", "dropout2d", "feature_dropout", "alpha_dropout"))
NORMS = {
    "layer_norm": ("input", "normalized_shape", "weight", "bias", "eps"),
    "rms_norm": ("input", "normalized_shape", "weight", "eps"),
    "normalize": ("input", "p", "dim", "eps"),
}
EPS = {"layer_norm": 1e-5, "normalize": 1e-12}  # defaults


class OperationMode(TorchFunctionMode):
    """Pass each operation with its name to `_operation`, which returns the result."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self._operation(func, getattr(func, "__name__", ""), args, kwargs or {})

    def _operation(self, func: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        """Compute a torch operation, func(*args, **kwargs), and observe or change it."""
        raise NotImplementedError


def operation_writes_in_place(name: str) -> bool:
    """Return whether a torch operation of this name writes into its first argument."""
    return (name.endswith("_") and not name.endswith("__")) or name.startswith("__i") or name == "__setitem__"


def is_norm_statistic(factor: Tensor, x: Tensor) -> bool:
    """Return whether a factor has one number per vector, like a norm's statistics."""
    return factor.numel() == 1 or (factor.shape[-1] == 1 and x.shape[-1] > 1)


def linear_operation_arguments(name: str, args: Any, kwargs: Any) -> tuple[Tensor, Tensor, Tensor | None, bool] | None:
    """Return (input, weight, bias, transposed) of an nn.Linear call or of GPT-2's Conv1D, which uses addmm.

    weight: (M, C), or (C, M) if transposed. bias: of any broadcastable shape. None for other operations.
    """
    if name not in LINEAR_MAPS:
        return None
    names = LINEAR_MAPS[name]
    arguments = dict(zip(names, args, strict=False)) | kwargs
    if len(args) > len(names) or not arguments.keys() <= set(names):  # alpha, beta, out
        return None
    if name == "linear":
        return arguments["input"], arguments["weight"], arguments.get("bias"), False
    return arguments["mat1"], arguments["mat2"], arguments["input"], True


def norm(name: str, args: Any, kwargs: Any) -> dict[str, Any] | None:
    """Return the arguments of a norm over only the last axis, including eps. None for other operations."""
    if name not in NORMS:
        return None
    arguments = dict(zip(NORMS[name], args, strict=False)) | kwargs
    x: Tensor = arguments["input"]
    if arguments.get("eps") is None:
        arguments["eps"] = EPS[name] if name in EPS else torch.finfo(x.dtype).eps
    if name == "normalize":
        over_last = arguments.get("dim", 1) in (-1, x.ndim - 1)
    else:
        over_last = len(arguments["normalized_shape"]) == 1
    return arguments if over_last else None


def norm_with_fixed_statistics(name: str, arguments: dict[str, Any]) -> tuple[Tensor, Tensor | None]:
    """Return (a norm's output with fixed statistics and without bias, its bias). arguments: from `norm`.

    Norms with fixed statistics are linear (Kobayashi et al. 2021, "Incorporating Residual and
    Normalization Layers into Analysis of Masked Language Models").
    """
    x: Tensor = arguments["input"]
    detached, weight = x.detach(), arguments.get("weight")
    if name == "normalize":
        return x / detached.norm(arguments.get("p", 2.0), -1, keepdim=True).clamp_min(arguments["eps"]), None
    if name == "layer_norm":
        spread = detached.var(-1, correction=0, keepdim=True)
        x = x - x.mean(-1, keepdim=True)
    else:
        spread = detached.square().mean(-1, keepdim=True)
    x = x * (spread + arguments["eps"]).rsqrt()
    return x if weight is None else x * weight.detach(), arguments.get("bias")


def tensors_within(values: object) -> list[Tensor]:
    """Return the tensors among an operation's arguments or results, including those in lists and tuples."""
    if isinstance(values, Tensor):
        return [values]
    if isinstance(values, (list, tuple)):  # few nested calls, because this runs for every operation
        return [x for value in values for x in ([value] if isinstance(value, Tensor) else tensors_within(value))]
    return []


def still(values: Any, keeps: Callable[[Tensor], bool]) -> Any:
    """Return an operation's arguments with all tensors detached for which `keeps` is false."""
    if isinstance(values, Tensor):
        return values if keeps(values) else values.detach()
    return type(values)(still(value, keeps) for value in values) if isinstance(values, (list, tuple)) else values


@dataclass
class Operation:
    """One operation that read a followed tensor. args: as before the operation, even if it wrote into them."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Tensor | None
    storage: int  # of the followed tensor
    storages: list[int]  # of the arguments, in order

    @property
    def adds(self) -> bool:
        """Return whether this operation is a plain sum of two tensors."""
        return self.name in ADDS and len(self.storages) == 2 and 0 not in self.storages and not self.kwargs

    @property
    def measures(self) -> bool:
        """Return whether it only measures the followed tensor, such as its square in an RMS norm, or its dtype."""
        squares = self.name in PRODUCTS and len(self.storages) == 2 and self.storages[0] == self.storages[1]
        like = self.name in CASTS and self.storages[0] != self.storage
        return squares or like or self.name in STATISTICS


@dataclass(frozen=True)
class Factors:
    """The factors of a vector along its path: scale per token, (B, L, 1), and gain per component, (M,)."""

    scale: Tensor | float = 1.0
    gain: Tensor | float = 1.0

    @property
    def plain(self) -> bool:
        """Return whether there are no factors along the path."""
        return isinstance(self.scale, float) and isinstance(self.gain, float) and self.scale * self.gain == 1.0


def factors(seen: Operation, before: Factors) -> Factors | None:
    """Return the factors after an operation that multiplies the followed vectors. None for other operations.

    The result must have the followed tensor's shape. A factor must be a number, one number per token, or one number per
    component. Gates, with a number for each component of each token, aren't supported.
    """
    followed = next((x for x in seen.args if isinstance(x, Tensor) and storage_of(x) == seen.storage), None)
    if followed is None or seen.result is None or seen.result.shape != followed.shape:
        return None
    if seen.name in CASTS:
        return before
    if seen.name == "rms_norm":
        arguments = norm(seen.name, seen.args, seen.kwargs)
        if arguments is None or arguments["input"] is not followed:
            return None
        weight, scale = arguments.get("weight"), (followed.square().mean(-1, keepdim=True) + arguments["eps"]).rsqrt()
        return Factors(before.scale * scale, before.gain if weight is None else before.gain * weight)
    if seen.kwargs or len(seen.args) != 2 or seen.name not in PRODUCTS | QUOTIENTS:
        return None
    first, second = seen.args
    if seen.name in QUOTIENTS and first is not followed:
        return None
    factor = second if first is followed else first
    if isinstance(factor, Tensor) and storage_of(factor) == seen.storage:
        return None
    if not isinstance(factor, Tensor):
        number = 1 / float(factor) if seen.name in QUOTIENTS else float(factor)
        return Factors(before.scale * number, before.gain)
    factor = factor.reciprocal() if seen.name in QUOTIENTS else factor
    if factor.shape[-1:] in ((), (1,)):
        return Factors(before.scale * factor.expand(*followed.shape[:-1], 1), before.gain)
    if factor.shape == followed.shape[-1:]:
        return Factors(before.scale, before.gain * factor)
    return None


def followed_linear_map(seen: Operation) -> tuple[Tensor, Tensor, Tensor | None] | None:
    """Return (input, weight (M, C), bias) of a linear map of the followed tensor. None for other operations."""
    arguments = linear_operation_arguments(seen.name, seen.args, seen.kwargs)
    if arguments is None or storage_of(arguments[0]) != seen.storage:
        return None
    x, weight, bias, transposed = arguments
    return None if bias is not None and bias.ndim != 1 else (x, weight.T if transposed else weight, bias)


def followed_layer_norm(seen: Operation) -> Norm | None:
    """Return the followed tensor's layer norm over the last axis. None for other operations."""
    arguments = norm(seen.name, seen.args, seen.kwargs) if seen.name == "layer_norm" else None
    if arguments is None or storage_of(arguments["input"]) != seen.storage:
        return None
    weight, bias = (None if x is None else x.detach() for x in map(arguments.get, ("weight", "bias")))
    return Norm(weight, bias, arguments["eps"])


def storage_of(tensor: Tensor) -> int:
    """Return the address of a tensor's storage. 0 for tensors without one (inside vmap, without elements)."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return 0


def write_counts_of_tensors(*tensors: Tensor | None) -> tuple[int, ...]:
    """Return the number of in-place writes to each tensor. 0 for inference tensors, which don't count them."""
    return tuple(0 if t is None or t.is_inference() else t._version for t in tensors)
