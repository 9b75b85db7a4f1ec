"""Say which operations of a forward pass are linear in the tensor that they read, and compute them so.

Norms are linear once their statistics are held fixed (Kobayashi et al. 2021, "Incorporating Residual and Normalization
Layers into Analysis of Masked Language Models"); what they add is a bias.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

# Operations that put the numbers of their first argument elsewhere, or sum them, and no more.
MOVES = frozenset((
    "__get__", "__getitem__", "broadcast_to", "chunk", "clone", "contiguous", "expand", "expand_as", "flatten", "flip",
    "gather", "index_select", "mean", "moveaxis", "movedim", "narrow", "neg", "__neg__", "permute", "positive",
    "repeat", "repeat_interleave", "reshape", "reshape_as", "roll", "select", "split", "split_with_sizes", "squeeze",
    "sum", "swapaxes", "swapdims", "t", "tensor_split", "tile", "transpose", "unbind", "unflatten", "unsqueeze", "view",
    "view_as", "view_as_complex", "view_as_real",
    "to", "float", "double", "half", "bfloat16", "type", "type_as", "cpu", "cuda",
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
MATRIX_PRODUCTS = frozenset(("matmul", "__matmul__", "mm", "bmm", "einsum"))
DROPOUTS = frozenset(("dropout", "dropout1d", "dropout2d", "feature_dropout", "alpha_dropout"))
NORMS = {
    "layer_norm": ("input", "normalized_shape", "weight", "bias", "eps"),
    "rms_norm": ("input", "normalized_shape", "weight", "eps"),
    "normalize": ("input", "p", "dim", "eps"),
}


def is_statistic(factor: Tensor, x: Tensor) -> bool:
    """Whether a factor is one number for each vector, as a norm's statistics are."""
    return factor.numel() == 1 or (factor.shape[-1] == 1 and x.shape[-1] > 1)


def arguments(names: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of an operation by their names."""
    return dict(zip(names, args, strict=False)) | kwargs


def normed(name: str, given: dict[str, Any]) -> tuple[Tensor, Tensor | None] | None:
    """What a norm makes of its input without its bias, its statistics held fixed, and the bias.

    None where it is not over the last axis alone.
    """
    x: Tensor = given["input"]
    still = x.detach()
    if name == "normalize":
        if given.get("dim", 1) not in (-1, x.ndim - 1):
            return None
        size = still.norm(given.get("p", 2.0), -1, keepdim=True).clamp_min(given.get("eps", 1e-12))
        return x / size, None
    if len(given["normalized_shape"]) != 1:
        return None
    weight, eps = given.get("weight"), given.get("eps")
    if name == "layer_norm":
        spread = still.var(-1, correction=0, keepdim=True)
        x = x - x.mean(-1, keepdim=True)
        eps = 1e-5 if eps is None else eps
    else:
        spread = still.square().mean(-1, keepdim=True)
        eps = torch.finfo(x.dtype).eps if eps is None else eps
    x = x * (spread + eps).rsqrt()
    return x if weight is None else x * weight.detach(), given.get("bias")


def is_dropped(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a dropout drops anything."""
    given = arguments(("input", "p", "training"), args, kwargs)
    return bool(given.get("training", True)) and given.get("p", 0.5) > 0


def tensors_within(values: Any) -> Iterator[Tensor]:
    """The tensors among values, in lists and dictionaries of them too."""
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, (list, tuple)):
        for each in values:
            yield from tensors_within(each)
    elif isinstance(values, dict):
        yield from tensors_within(tuple(values.values()))


def still(values: Any, keeps: Callable[[Tensor], bool]) -> Any:
    """The same values, tensors detached unless they are to be kept as they are."""
    if isinstance(values, Tensor):
        return values if keeps(values) else values.detach()
    return type(values)(still(each, keeps) for each in values) if isinstance(values, (list, tuple)) else values
