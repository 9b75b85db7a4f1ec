"""Limit the memory and tensors that building a model may take to a few times what its checkpoint holds.

transformers builds a model without memory (on the device "meta"), and fills it from the checkpoint afterwards. A config
that asks for more than its checkpoint holds is stopped while it is built, wherever in a family's code its numbers lead.
"""

from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from regard.errors import RegardError
from regard.memory import format_bytes, require_memory
from regard.model_files.limits import CheckpointSizes

FACTORIES = {"empty", "zeros", "ones", "full", "rand", "randn", "arange", "eye", "tensor"}
DRAWN = {"normal_", "uniform_", "kaiming_uniform_"}  # first weights
SHARED = 4  # an encoder-decoder makes one table of embeddings four times before it shares it
SPARE = 1 << 26  # numbers in float32 beyond that: tables of positions and masks, which are not in the checkpoint
PARTS, MORE = 16, 2000  # tensors that are made for each one of the checkpoint, which may hold several in one


class Budget(TorchFunctionMode):
    """Count the tensors made on "meta" in a with block, in this thread; raise RegardError beyond the checkpoint's."""

    def __init__(self, sizes: CheckpointSizes, name: str) -> None:
        super().__init__()
        self.held, self.name = sizes, name
        self.bytes = self.tensors = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        drawn = (*args, *(kwargs or {}).values())[0] if func.__name__ in DRAWN else None
        if isinstance(drawn, Tensor) and drawn.device.type == "meta":
            return drawn  # it has no numbers, and torch would import its compiler to draw some
        made = func(*args, **(kwargs or {}))
        if isinstance(made, Tensor) and made.device.type == "meta" and func.__name__ in FACTORIES:
            self.bytes += made.numel() * made.itemsize  # a mask has a byte for a number
            self.tensors += 1
            if self.bytes > 4 * (SHARED * self.held.numbers + SPARE) or self.tensors > PARTS * self.held.tensors + MORE:
                raise RegardError(
                    f"model {self.name!r}: its config asks for more than its checkpoint holds, {self.held.tensors:,} "
                    f"tensors of {format_bytes(4 * self.held.numbers)} in float32: one of them belongs to another model"
                )
        return made


def kept_as_stored(sizes: CheckpointSizes | None, dtype: torch.dtype | None) -> bool:
    """Return whether a checkpoint's weights stay as they are: some are smaller, and no dtype is requested (None)."""
    return dtype is None and sizes is not None and sizes.half and (sizes.plain or sizes.mxfp4)


def needs(sizes: CheckpointSizes, dtype: torch.dtype | None = torch.float32) -> int:
    """Count the bytes that a checkpoint takes as a model of this dtype; None for as it is stored, else float32."""
    return sizes.bytes if kept_as_stored(sizes, dtype) else sizes.numbers * (dtype or torch.float32).itemsize


def require_memory_for_model(
    sizes: CheckpointSizes, device: torch.device, name: str, dtype: torch.dtype | None
) -> None:
    """Raise an error for a model for which there is no memory, before any of it is read. dtype: as in `needs`."""
    helps = "take a smaller one, or free memory"
    if dtype == torch.float32 and kept_as_stored(sizes, None):
        helps = f"keep its weights as they are stored, {format_bytes(needs(sizes, None))} (dtype auto), or {helps}"
    how = "as stored" if kept_as_stored(sizes, dtype) else f"in {str(dtype or torch.float32).removeprefix('torch.')}"
    for place in {torch.device("cpu"), device}:
        require_memory(needs(sizes, dtype), place, f"model {name!r}, {how},", helps)
