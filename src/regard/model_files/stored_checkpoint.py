"""Read safetensors files as they are stored: their tensors are mapped into memory, and none is copied or converted."""

from collections.abc import Sequence
from pathlib import Path

from jaxtyping import Float
from safetensors import safe_open
from torch import Tensor

from regard.model_files.stored_weight import HALVES, StoredWeight

LEAST = 1 << 14  # numbers of a matrix below which it is raised once and for all: it is small, and sooner used

STORED = (
    "weights are kept in half precision, as the checkpoint has them, and raised where they are used: all arithmetic is "
    "float32, by blocks, so that it may round otherwise than the plain model"
)


def stored_tensors(files: Sequence[Path]) -> dict[str, Float[Tensor, "..."]]:
    """Read a checkpoint's tensors by name: large matrices in half precision as `StoredWeight`s, all others as they are.

    Raises:
        safetensors.SafetensorError, OSError: a file cannot be read.
    """
    tensors: dict[str, Tensor] = {}
    for file in files:
        with safe_open(file, framework="pt") as opened:
            for name in opened.keys():  # noqa: SIM118
                tensor = opened.get_tensor(name)
                large = tensor.ndim > 1 and tensor.numel() >= LEAST
                tensors[name] = StoredWeight.of(tensor) if large and tensor.dtype in HALVES else tensor
    return tensors
