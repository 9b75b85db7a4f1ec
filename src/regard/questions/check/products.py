"""Check the products of this machine: what each linear map of a model gives, against numpy's in float64.

A wrong matrix product makes a model and whoever looks at it wrong alike; only arithmetic that neither of them uses
tells. Both ways are checked: what PyTorch computes in the model's own pass, and what a trace computes.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy
import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from regard.errors import RegardError
from regard.questions.check.claims import Apart, Claim, claim
from regard.questions.check.own_code import plain_pass
from regard.questions.check.passes import Read

ROWS = 12  # of each product that are computed again
BLOCK = 1 << 22  # numbers of a weight that are in float64 at a time
# Of the sum of the absolute products: rounding of sums as long as a model is wide is some 1e-7 of it in float32. A
# half-precision result is itself rounded to 2^-8 or 2^-11.
FLOAT32, HALF = 1e-5, 1e-2
SAID = "linear maps give numpy's products"


def products_are_numpys(read: Read) -> Iterator[Claim]:
    """Check a few rows of every linear map's product, in the model's own pass and in a trace; of those in memory."""
    model = read.model.model
    on_disk = sum(_is_linear(module) and module.weight.is_meta for module in model.modules())
    ways: tuple[tuple[str, Callable[[], Any]], ...] = (
        ("in its own pass", lambda: plain_pass(model, read.inputs)),
        ("in a trace", lambda: read.model.trace(**read.reading.asked)),
    )
    for of, run in ways:
        with _products_seen(model) as seen:
            run()
        if not seen:
            raise RegardError(
                "its linear maps lie on disk" if on_disk else "it has no linear maps that are modules of their own"
            )
        worst = max((_apart(*each) for each in seen), key=lambda each: each.difference)
        least = FLOAT32 if model.dtype == torch.float32 else HALF
        count = f"{len({path for path, *_ in seen})} of them {of}, {model.device}"
        count += f", {on_disk} on disk aside" * bool(on_disk)
        yield claim("arithmetic", SAID, count, worst, least)


@contextmanager
def _products_seen(model: nn.Module) -> Iterator[list[tuple[str, nn.Module, Tensor, Tensor]]]:
    """Keeps, of every linear map that runs inside the block, its path and module, and some rows of x and of y."""
    seen: list[tuple[str, nn.Module, Tensor, Tensor]] = []
    hooks = []

    def hook(path: str) -> Callable[..., None]:
        def keep(module: nn.Module, args: Any, output: Any) -> None:
            if not args or not isinstance(output, Tensor) or not output.numel():  # an expert may be given no token
                return
            with torch._C.DisableTorchFunction():  # a trace follows what is done to its tensors
                x, y = args[0].reshape(-1, args[0].shape[-1]), output.reshape(-1, output.shape[-1])
                rows = torch.linspace(0, len(x) - 1, min(ROWS, len(x))).round().long().unique()
                seen.append((path, module, x[rows.to(x.device)].clone(), y[rows.to(y.device)].clone()))

        return keep

    for path, module in model.named_modules():
        if _is_linear(module) and not module.weight.is_meta:
            hooks.append(module.register_forward_hook(hook(path)))
    try:
        yield seen
    finally:
        for each in hooks:
            each.remove()


def _is_linear(module: Any) -> bool:
    return type(module) in (nn.Linear, Conv1D)


def _apart(path: str, module: Any, x: Tensor, y: Tensor) -> Apart:
    """How far y is from x times the module's weight, of the sum of the absolute products, at most."""
    rows, made = x.double().cpu().numpy(), y.double().cpu().numpy()
    weight = module.weight.t() if isinstance(module, Conv1D) else module.weight  # (M, C)
    bias = None if module.bias is None else module.bias.detach().double().cpu().numpy()
    worst, size = 0.0, max(1, BLOCK // weight.shape[1])
    for start in range(0, weight.shape[0], size):
        block = weight[start : start + size].detach().double().cpu().numpy()
        expected, whole = rows @ block.T, numpy.abs(rows) @ numpy.abs(block.T)
        if bias is not None:
            expected, whole = expected + bias[start : start + size], whole + numpy.abs(bias[start : start + size])
        apart = numpy.abs(made[:, start : start + size] - expected) / numpy.maximum(whole, 1e-300)
        apart = numpy.where(whole > 0, apart, numpy.abs(made[:, start : start + size]))
        worst = max(worst, float(numpy.nan_to_num(apart, nan=numpy.inf).max()))
    return Apart.of(worst, f"{path}, {weight.shape[1]} to {weight.shape[0]}")
