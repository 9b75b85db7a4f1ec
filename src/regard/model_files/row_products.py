"""Multiply one row of float32 numbers by a weight as it is stored, each number raised where it is used.

A model that writes reads all of its weights for each token, and does little else with them: fewer bytes take less time
than the same numbers in float32.
"""

from collections.abc import Callable
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.kernels import threads
from regard.model_files.quantised_rows import SHARED, QuantisedRows

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
    if isinstance(weight, QuantisedRows):
        from regard.model_files.quantised_blocks import PASSES, multiply_row

        if weight.kind not in PASSES or weight.ndim != 2 or weight.flipped:
            return None
        packed = weight.bytes
        multiply: Callable[..., None] = partial(multiply_row, weight.kind)
    else:
        if weight.dtype != torch.bfloat16 or weight.device.type != "cpu" or weight.numel() < LEAST:
            return None
        from regard.model_files.bfloat16_rows import multiply_bfloat16_row

        packed, multiply = weight.view(torch.uint16), multiply_bfloat16_row
    if not packed.is_contiguous():
        return None
    made = torch.empty(len(weight))
    rows, given, into = packed.detach().numpy(), x.detach().contiguous().numpy(), made.numpy()
    workers = threads.worker_thread_count() if made.numel() * len(given) >= SHARED else 1
    each = -(-len(rows) // max(1, workers))

    def part(first: int) -> None:
        multiply(rows[first : first + each], given, into[first : first + each])

    if workers == 1:
        part(0)
    else:
        threads.run_on_worker_threads([partial(part, first) for first in range(0, len(rows), each)])
    return made
