"""Remove a part of a picture that a model reads: blank it, fill it with the picture's mean, or blur it."""

from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

Fill = Literal["blank", "mean", "blur"]
FILLS: tuple[Fill, ...] = get_args(Fill)


def removed(
    pixels: Float[Tensor, "n colours h w"], rows: slice, columns: slice, fill: Fill
) -> Float[Tensor, "n colours h w"]:
    """Copy pictures without a part."""
    without, part = pixels.clone(), pixels[:, :, rows, columns]
    if fill == "blank":
        new = torch.zeros_like(part)
    elif fill == "mean":
        new = pixels.mean((2, 3), keepdim=True).expand_as(part)
    else:
        high, wide = ((side - 1) // 2 for side in part.shape[2:])
        new = F.avg_pool2d(F.pad(part, (wide, wide, high, high), mode="reflect"), (2 * high + 1, 2 * wide + 1), 1)
    without[:, :, rows, columns] = new
    return without
