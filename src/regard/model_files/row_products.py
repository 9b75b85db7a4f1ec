"""Multiply one row of float32 numbers by a weight as it is stored, each number raised where it is used.

A model that writes reads all of its weights for each token, and does little else with them: fewer bytes take less time
than the same numbers in float32.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from regard.model_files.quantised_rows import QuantisedRows, share_out

LEAST = 1 << 18  # numbers of a bfloat16 matrix below which it is raised by torch: Numba takes half a second to load


def multiply_one_row(
    x: Float[Tensor, " C"], weight: Float[Tensor, "M C"] | QuantisedRows
) -> Float[Tensor, " M"] | None:
    """Return weight @ x, (M,) in float32; None where there is no pass for such a weight: it is raised by blocks then.

    weight: in bfloat16, or quantised in one of the kinds of `quantised_blocks.PASSES`, on a CPU, its rows one after
    another.
    """
    if x.device.type != "cpu" or x.shape != weight.shape[1:]:
        return None
    if isinstance(weight, Tensor):
        if weight.dtype != torch.bfloat16 or weight.device.type != "cpu" or weight.numel() < LEAST:
            return None
    elif weight.ndim != 2 or weight.flipped:
        return None
    from regard.model_files.quantised_blocks import BFLOAT16, PASSES, multiply_row

    kind, packed = (BFLOAT16, weight.view(torch.uint16)) if isinstance(weight, Tensor) else (weight.kind, weight.bytes)
    if kind not in (BFLOAT16, *PASSES) or not packed.is_contiguous():
        return None
    made = torch.empty(len(weight))
    rows, given, into = packed.detach().numpy(), x.detach().contiguous().numpy(), made.numpy()

    def part(first: int, end: int) -> None:
        multiply_row(kind, rows[first:end], given, into[first:end])

    share_out(len(rows), made.numel() * len(given), part)
    return made
