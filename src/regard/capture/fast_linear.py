"""Compute a model's linear maps on a CPU by the fastest product there: they are most of a trace's time.

It is the same float32 product, summed in another order; the status of a trace says so (`REORDERED`). On processors
where PyTorch's own choice (MKL) runs at half the speed of oneDNN, a trace of a long text takes less time than the
model's forward pass alone.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.kernels import matmul
from regard.capture.operations import OperationMode, linear_operation_arguments

LEAST = 1 << 24  # multiplications in a product below which choosing and calling cost more than is gained,
ROWS = 16  # and rows: one row is read as fast as memory gives its weight, whoever multiplies
PLAIN = (Tensor, nn.Parameter)
REORDERED = (
    "large linear maps went through oneDNN, the faster one here: it sums in another order than the plain model, so "
    "weights and states are off the plain model's by rounding (docs/families.md)"
)


def fast_products_in_pass(tokens: int, largest: int) -> "AbstractContextManager[FastProducts | None]":
    """Inside the block, large float32 linear maps on the CPU go through oneDNN where that is the faster one here.

    tokens: how many the model reads. largest: its `largest_matrix`. Short texts have no large map: nothing is done.
    """
    return nullcontext() if tokens * largest < LEAST or matmul.linear() is matmul.blas else FastProducts()


def largest_matrix(model: nn.Module) -> int:
    """Count the numbers of the largest matrix that a model may multiply by: a table of embeddings only as its head."""
    tables = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    heads = {id(getattr(module, "weight", None)) for module in model.modules() if isinstance(module, nn.Linear)}
    sizes = [each.numel() for each in model.parameters() if each.ndim > 1 and id(each) not in tables - heads]
    return max(sizes, default=0)


class FastProducts(OperationMode):
    """Looks at every operation inside the block, and computes the linear maps among them that oneDNN is to compute.

    used: whether there were any.
    """

    def __init__(self) -> None:
        super().__init__()
        self.used = False

    def _operation(self, func: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        found = linear_operation_arguments(name, args, kwargs)
        done = None if found is None else _linear(*found)
        self.used |= done is not None
        return func(*args, **kwargs) if done is None else done


def _linear(
    input: Float[Tensor, "*B C"], weight: Tensor, bias: Tensor | None, transposed: bool
) -> Float[Tensor, "*B M"] | None:
    """input @ weightᵀ + bias, (.., M); None where it is left to PyTorch. weight: (M, C), transposed: (C, M)."""
    given = (input, weight) if bias is None else (input, weight, bias)
    if any(type(x) not in PLAIN or x.dtype != torch.float32 or x.device.type != "cpu" for x in given):
        return None
    rows, axes = input.numel() // max(1, input.shape[-1]), [each.ndim for each in given[1:]]
    if axes not in ([2], [2, 1]) or not weight.is_contiguous() or rows < ROWS or rows * weight.numel() < LEAST:
        return None
    # the operator has no gradient and knows no autocast
    if torch.is_grad_enabled() or torch.is_autocast_enabled("cpu") or matmul.linear() is not matmul.onednn:
        return None
    weight = weight.t() if transposed else weight
    return torch.ops.mkldnn._linear_pointwise.default(input.contiguous(), weight, bias, "none", [], "")
