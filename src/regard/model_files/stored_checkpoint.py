"""Read safetensors files as they are stored: their tensors are mapped into memory, and none is copied or converted."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from jaxtyping import Float
from safetensors import safe_open
from torch import Tensor

from regard.errors import RegardError
from regard.model_files.quantised_rows import QuantisedRows
from regard.model_files.stored_weight import HALVES, StoredWeight
from regard.model_files.weight_headers import MXFP4

LEAST = 1 << 14  # numbers of a matrix below which it is raised once and for all: it is small, and sooner used

STORED = (
    "Weights are kept in half precision{}, as stored, and converted to float32 for each product. Results may differ "
    "slightly from the original model's."
)


def stored_tensors(files: Sequence[Path]) -> dict[str, Float[Tensor, "..."]]:
    """Read a checkpoint's tensors by name: large matrices in half precision as `StoredWeight`s, all others as they are.

    A weight in MXFP4 is two tensors, which become one `StoredWeight`.
    """
    tensors: dict[str, Tensor] = {}
    blocks: dict[str, dict[str, Tensor]] = {}
    for file in files:
        with safe_open(file, framework="pt") as opened:
            for name in opened.keys():  # noqa: SIM118
                tensor = opened.get_tensor(name)
                part = next((part for part in MXFP4 if name.endswith(part)), None)
                if part is not None and tensor.dtype == torch.uint8:
                    blocks.setdefault(name.removesuffix(part), {})[part] = tensor
                    continue
                large = tensor.ndim > 1 and tensor.numel() >= LEAST
                tensors[name] = StoredWeight.of(tensor) if large and tensor.dtype in HALVES else tensor
    return tensors | {name: _mxfp4_weight(name, parts) for name, parts in blocks.items()}


def _mxfp4_weight(name: str, parts: Mapping[str, Tensor]) -> Tensor:
    """A weight of blocks of 16 bytes, (..., R, N, 16), and a scale for each, (..., R, N): the rows are its columns."""
    shapes = [tuple(parts[part].shape) if part in parts else None for part in MXFP4]
    blocks, scales = shapes
    if blocks is None or scales is None or blocks != (*scales, 16):
        raise RegardError(
            f"tensor {name!r} in MXFP4 has blocks {blocks} and scales {scales}, needs (..., 16) and (...)"
        )
    rows = parts["_blocks"].flatten(-2)
    return StoredWeight.of(QuantisedRows(rows, "MXFP4", (32, 16), flipped=True, aside=parts["_scales"]))
