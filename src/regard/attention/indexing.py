"""Parse a numpy-style index of a tensor that does not exist: the part of every axis that it needs, and the rest."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.attention.masks import Index


def parse_map_index(index: Any, shape: tuple[int, ...], device: torch.device) -> tuple[list[Index], tuple[Any, ...]]:
    """Split an index into the needed part of every axis and the index that turns that part into the answer.

    For any tensor x of this shape, `x[np.ix_(needed)][finish]` equals `x[index]`. Takes integers, slices (any step),
    `...`, None, and integer or boolean vectors (list, array or tensor).
    """
    parts = list(index) if isinstance(index, tuple) else [index]
    count = sum(1 for p in parts if p is not None and p is not Ellipsis)
    if count > len(shape):
        raise IndexError(f"an attention map of {len(shape)} axes {shape} was given {count} indices")
    if sum(1 for p in parts if p is Ellipsis) > 1:
        raise IndexError("an index may hold one '...' only")
    if not any(p is Ellipsis for p in parts):
        parts.append(Ellipsis)
    at = next(n for n, p in enumerate(parts) if p is Ellipsis)
    parts[at : at + 1] = [slice(None)] * (len(shape) - count)

    needed: list[Index] = []
    finish: list[Any] = []
    for part in parts:
        if part is None:
            finish.append(None)
            continue
        axis, size = len(needed), shape[len(needed)]
        if isinstance(part, slice):
            start, stop, step = part.indices(size)
            run = range(start, stop, step)
            positions = None if step == 1 else torch.tensor(list(run), dtype=torch.long, device=device)
            needed.append(slice(start, start + len(run)) if positions is None else positions)
            finish.append(slice(None))
        elif isinstance(part, (int, np.integer)) and not isinstance(part, (bool, np.bool_)):
            position = _map_position_in_range(int(part), axis, size)
            needed.append(slice(position, position + 1))
            finish.append(0)
        else:
            unique, inverse = _map_index_vector(part, axis, size, device).unique(return_inverse=True)
            needed.append(unique)
            finish.append(inverse)
    return needed, tuple(finish)


def _map_index_vector(part: Any, axis: int, size: int, device: torch.device) -> Tensor:
    if not isinstance(part, (list, tuple, range, np.ndarray, Tensor)):
        raise TypeError(
            f"axis {axis} was given {part!r}: an index is made of integers, slices, '...', None and integer or boolean "
            "vectors"
        )
    try:
        vector = torch.as_tensor(part if isinstance(part, (np.ndarray, Tensor)) else list(part), device=device)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"axis {axis} was given {part!r}, which is no vector of integers or booleans") from error
    if vector.dtype == torch.bool:
        if vector.shape != (size,):
            raise IndexError(
                f"axis {axis} has size {size} and was given a boolean index of shape {tuple(vector.shape)}"
            )
        return vector.nonzero()[:, 0]
    if vector.numel() == 0:
        return vector.long()
    if vector.is_floating_point() or vector.is_complex():
        raise TypeError(f"axis {axis} was given an index of {vector.dtype}: it needs integers or booleans")
    for position in (int(vector.min()), int(vector.max())):
        _map_position_in_range(position, axis, size)
    return torch.where(vector < 0, vector + size, vector).long()


def _map_position_in_range(position: int, axis: int, size: int) -> int:
    if not -size <= position < size:
        span = f"{-size} to {size - 1}" if size else "empty"
        raise IndexError(f"index {position} is out of range for axis {axis} of size {size} (range: {span})")
    return position % size
