"""A linear layer that trains faster on some CPUs: products by oneDNN where that beats the BLAS of torch.

Its three products (output, gradient of the input, gradient of the weight) are most of what a training step does, and
oneDNN computes them up to twice as fast as MKL on some CPUs. Results agree within float32's rounding.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention.kernels import matmul

LEAST = 1 << 22  # multiplications from which on the faster product outweighs a call from Python and back


class Linear(nn.Linear):
    """`nn.Linear`, with the same parameters and results."""

    def forward(self, x: Float[Tensor, "*B n"]) -> Float[Tensor, "*B m"]:
        """Compute x @ weight.T + bias."""
        if _onednn_linear_pays(x, self.weight) and matmul.linear() is matmul.onednn:
            return _Product.apply(x, self.weight, self.bias)
        return F.linear(x, self.weight, self.bias)


def _onednn_linear_pays(x: Tensor, weight: Tensor) -> bool:
    """Return whether this call is one of training that oneDNN can do.

    On a CPU, in float32, outside autocast, compilers and torch.func (whose transforms want more than a backward).
    """
    return (
        torch.is_grad_enabled()
        and x.numel() * weight.shape[0] >= LEAST
        and weight.requires_grad
        and x.device.type == weight.device.type == "cpu"
        and x.dtype == weight.dtype == torch.float32
        and not torch.is_autocast_enabled("cpu")
        and not torch.compiler.is_compiling()
        and not torch._C._are_functorch_transforms_active()
    )


class _Product(torch.autograd.Function):
    """x @ weight.T + bias, forward and backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _onednn(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        rows, inputs = grad.reshape(-1, grad.shape[-1]), x.reshape(-1, x.shape[-1])
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad
        plain = torch.is_grad_enabled()  # it will be differentiated once more, which oneDNN's product cannot
        to_x = to_weight = None
        if needs_x:
            to_x = rows @ weight if plain else _onednn(rows.contiguous(), weight.t(), None)
            to_x = to_x.view(x.shape)
        if needs_weight:
            to_weight = rows.t() @ inputs if plain else _onednn(rows.contiguous().t(), inputs.t(), None)
        return to_x, to_weight, rows.sum(0) if needs_bias else None


def _onednn(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise.default(x, weight, bias, "none", [], "")
