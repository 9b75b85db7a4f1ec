"""Say what the operations of a forward pass are, by the names of torch's functions, and read their arguments.

One table for all that watches the operations of a pass.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

CASTS = ("to", "float", "double", "half", "bfloat16", "type", "type_as", "cpu", "cuda")
# Operations that put the numbers of their first argument elsewhere, or sum them, and no more.
MOVES = frozenset((
    "__get__", "__getitem__", "broadcast_to", "chunk", "clone", "contiguous", "expand", "expand_as", "flatten", "flip",
    "gather", "index_select", "mean", "moveaxis", "movedim", "narrow", "neg", "__neg__", "permute", "positive",
    "repeat", "repeat_interleave", "reshape", "reshape_as", "roll", "select", "split", "split_with_sizes", "squeeze",
    "sum", "swapaxes", "swapdims", "t", "tensor_split", "tile", "transpose", "unbind", "unflatten", "unsqueeze", "view",
    "view_as", "view_as_complex", "view_as_real", *CASTS,
))  # fmt: skip
JOINS = frozenset(("cat", "concat", "concatenate", "stack", "hstack", "vstack"))
# Operations that read a tensor's shape and dtype alone.
LIKE = frozenset((
    "zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "new_zeros", "new_ones", "new_empty", "new_full",
    "new_tensor", "size", "dim", "numel", "stride", "is_floating_point", "is_complex", "is_contiguous", "element_size",
    "data_ptr", "__len__", "storage_offset", "untyped_storage", "get_device", "ndimension",
))  # fmt: skip
WRITES = frozenset(("copy_", "__setitem__"))  # the last argument into the first
# Of a sum the signs of its terms.
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
DROPOUTS = frozenset(("dropout", "dropout1d", "dropout2d", "feature_dropout", "alpha_dropout"))
NORMS = {
    "layer_norm": ("input", "normalized_shape", "weight", "bias", "eps"),
    "rms_norm": ("input", "normalized_shape", "weight", "eps"),
    "normalize": ("input", "p", "dim", "eps"),
}
EPS = {"layer_norm": 1e-5, "normalize": 1e-12}  # where none is given


class OperationMode(TorchFunctionMode):
    """Hands every operation of a pass to `_operation`, by its name; what that returns is the result."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self._operation(func, getattr(func, "__name__", ""), args, kwargs or {})

    def _operation(self, func: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        """Compute func(*args, **kwargs), and do what the mode is for."""
        raise NotImplementedError


def writes(name: str) -> bool:
    """Whether an operation of this name writes into its first argument."""
    return (name.endswith("_") and not name.endswith("__")) or name.startswith("__i") or name == "__setitem__"


def is_statistic(factor: Tensor, x: Tensor) -> bool:
    """Whether a factor is one number for each vector, as a norm's statistics are."""
    return factor.numel() == 1 or (factor.shape[-1] == 1 and x.shape[-1] > 1)


def arguments(names: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of an operation by their names."""
    return dict(zip(names, args, strict=False)) | kwargs


def linear_map(name: str, args: Any, kwargs: Any) -> tuple[Tensor, Tensor, Tensor | None, bool] | None:
    """(input, weight, bias, transposed) of nn.Linear's call, or of addmm as GPT-2's Conv1D writes it.

    weight: (M, C), transposed: (C, M). bias: of any shape that is added. None for any other operation.
    """
    if name not in LINEAR_MAPS:
        return None
    names = LINEAR_MAPS[name]
    given = arguments(names, args, kwargs)
    if len(args) > len(names) or not given.keys() <= set(names):  # the others: alpha, beta, out
        return None
    if name == "linear":
        return given["input"], given["weight"], given.get("bias"), False
    return given["mat1"], given["mat2"], given["input"], True


def norm(name: str, args: Any, kwargs: Any) -> dict[str, Any] | None:
    """The arguments of a norm over the last axis alone, with its eps; None for any other operation."""
    if name not in NORMS:
        return None
    given = arguments(NORMS[name], args, kwargs)
    x: Tensor = given["input"]
    if given.get("eps") is None:
        given["eps"] = EPS[name] if name in EPS else torch.finfo(x.dtype).eps
    last = given.get("dim", 1) in (-1, x.ndim - 1) if name == "normalize" else len(given["normalized_shape"]) == 1
    return given if last else None


def normed(name: str, given: dict[str, Any]) -> tuple[Tensor, Tensor | None]:
    """What a norm makes of its input without its bias, its statistics held fixed, and the bias. given: as `norm` reads.

    Norms are linear once their statistics are held fixed (Kobayashi et al. 2021, "Incorporating Residual and
    Normalization Layers into Analysis of Masked Language Models").
    """
    x: Tensor = given["input"]
    still, weight = x.detach(), given.get("weight")
    if name == "normalize":
        return x / still.norm(given.get("p", 2.0), -1, keepdim=True).clamp_min(given["eps"]), None
    if name == "layer_norm":
        spread = still.var(-1, correction=0, keepdim=True)
        x = x - x.mean(-1, keepdim=True)
    else:
        spread = still.square().mean(-1, keepdim=True)
    x = x * (spread + given["eps"]).rsqrt()
    return x if weight is None else x * weight.detach(), given.get("bias")


def is_dropped(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a dropout drops anything."""
    given = arguments(("input", "p", "training"), args, kwargs)
    return bool(given.get("training", True)) and given.get("p", 0.5) > 0


def tensors_within(values: Any) -> Iterator[Tensor]:
    """The tensors among values, in lists of them too."""
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, (list, tuple)):
        for each in values:
            yield from tensors_within(each)


def still(values: Any, keeps: Callable[[Tensor], bool]) -> Any:
    """The same values, tensors detached unless they are to be kept as they are."""
    if isinstance(values, Tensor):
        return values if keeps(values) else values.detach()
    return type(values)(still(each, keeps) for each in values) if isinstance(values, (list, tuple)) else values
