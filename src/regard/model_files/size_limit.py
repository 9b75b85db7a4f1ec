"""Limit the memory and the number of tensors used to build a model, relative to its checkpoint's sizes.

transformers builds a model on the device "meta", which uses no memory, and then loads the checkpoint. If a config asks
for far more than the checkpoint has, regard stops the build, wherever it is in the architecture's code.
"""

from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from regard.errors import RegardError
from regard.memory import format_bytes, require_memory
from regard.model_files.limits import CheckpointSizes

FACTORIES = {"empty", "zeros", "ones", "full", "rand", "randn", "arange", "eye", "tensor"}
DRAWN = {"normal_", "uniform_", "kaiming_uniform_"}  # functions for random initialization
SHARED = 4  # an encoder-decoder allocates four embedding tables before it shares one
SPARE = 1 << 26  # additional float32 numbers, for position tables and masks that aren't in the checkpoint
PARTS, MORE = 16, 2000  # model tensors allowed per checkpoint tensor (it may combine several), plus a fixed number


class Budget(TorchFunctionMode):
    """Count the tensors that this thread makes on "meta" in a with block. Raise RegardError if there are too many."""

    def __init__(self, sizes: CheckpointSizes, name: str) -> None:
        super().__init__()
        self.held, self.name = sizes, name
        self.bytes = self.tensors = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        tensor = (*args, *(kwargs or {}).values())[0] if func.__name__ in DRAWN else None
        if isinstance(tensor, Tensor) and tensor.device.type == "meta":
            return tensor  # there is nothing to initialize, and torch would import its compiler for it
        result = func(*args, **(kwargs or {}))
        if isinstance(result, Tensor) and result.device.type == "meta" and func.__name__ in FACTORIES:
            self.bytes += result.numel() * result.itemsize  # a mask has one byte per number
            self.tensors += 1
            if self.bytes > 4 * (SHARED * self.held.numbers + SPARE) or self.tensors > PARTS * self.held.tensors + MORE:
                raise RegardError(
                    f"model {self.name!r}: its config asks for more than its checkpoint holds, {self.held.tensors:,} "
                    f"tensors of {format_bytes(4 * self.held.numbers)} in float32: one of them belongs to another model"
                )
        return result


def kept_as_stored(sizes: CheckpointSizes | None, dtype: torch.dtype | None) -> bool:
    """Return whether weights stay as stored, because some are smaller than float32 and no dtype is requested (None)."""
    return dtype is None and sizes is not None and sizes.half and (sizes.plain or sizes.mxfp4)


def nbytes(sizes: CheckpointSizes, dtype: torch.dtype | None = torch.float32) -> int:
    """Return the bytes of a checkpoint's model in this dtype. None: as stored if possible, otherwise float32."""
    return sizes.bytes if kept_as_stored(sizes, dtype) else sizes.numbers * (dtype or torch.float32).itemsize


def require_memory_for_model(
    sizes: CheckpointSizes, device: torch.device, name: str, dtype: torch.dtype | None
) -> None:
    """Raise RegardError if a model doesn't fit into memory, before reading its weights. dtype: as in `nbytes`."""
    helps = "take a smaller one, or free memory"
    if dtype == torch.float32 and kept_as_stored(sizes, None):
        helps = f"keep its weights as they are stored, {format_bytes(nbytes(sizes, None))} (dtype auto), or {helps}"
    form = "as stored" if kept_as_stored(sizes, dtype) else f"in {str(dtype or torch.float32).removeprefix('torch.')}"
    for target in {torch.device("cpu"), device}:
        require_memory(nbytes(sizes, dtype), target, f"model {name!r}, {form},", helps)
