"""The patches of a picture that a model's tokens stand for, and where each lies on the picture's own pixels.

A vision transformer cuts what it sees into square patches, row by row, and puts tokens of its own before them: [CLS],
one more where it was distilled, registers (Dosovitskiy et al. 2021, "An Image is Worth 16x16 Words"; Touvron et al.
2021; Darcet et al. 2024, "Vision Transformers Need Registers").
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from regard.checks import is_whole
from regard.errors import OutOfRangeError, RegardError
from regard.images.picture import Picture
from regard.text.tokens import Token

Box = tuple[float, float, float, float]  # left, top, right, bottom, in pixels of the picture
Fill = Literal["blank", "mean", "blur"]
FILLS: tuple[Fill, ...] = get_args(Fill)


@dataclass(frozen=True)
class Patches:
    """Which token stands for which part of a picture.

    picture: what was given, upright. rows, columns: of patches. first: the number of the first patch's token; the
    others follow row by row. seen: the part of the picture that the model saw, None where it is not known.
    """

    picture: Picture
    rows: int
    columns: int
    first: int
    seen: Box | None = field(default=None)

    def box(self, token: int) -> Box:
        """Find where a token's patch lies on the picture."""
        if not is_whole(token) or not 0 <= token - self.first < self.rows * self.columns:
            last = self.first + self.rows * self.columns - 1
            raise OutOfRangeError(f"patch: given token {token!r}, patches are tokens {self.first} to {last}")
        if self.seen is None:
            raise RegardError("patch: where the patches lie on the picture is not known, the trace's status says why")
        left, top, right, bottom = self.seen
        row, column = divmod(token - self.first, self.columns)
        wide, high = (right - left) / self.columns, (bottom - top) / self.rows
        return left + column * wide, top + row * high, left + (column + 1) * wide, top + (row + 1) * high

    def heat(self, weights: Float[Tensor, "... L"]) -> Float[Tensor, "... rows columns"]:
        """Lay the numbers of tokens out as their patches lie, those of other tokens left out.

        weights: one number a token, such as a row of an attention map.
        """
        of_patches = weights[..., self.first : self.first + self.rows * self.columns]
        if of_patches.shape[-1] != self.rows * self.columns:
            needed = self.first + self.rows * self.columns
            raise RegardError(f"heat: given {weights.shape[-1]} numbers, needs one for each of {needed} tokens or more")
        return of_patches.unflatten(-1, (self.rows, self.columns))


def patch_grid(config: Any, pixels: Float[Tensor, "1 3 h w"]) -> tuple[int, int] | None:
    """Work out how many rows and columns of patches a model cuts pixels into; None where its config does not say.

    config: of the model; its patch_size is a number, or (height, width).
    """
    size: Any = getattr(config, "patch_size", None)
    high, wide = size if isinstance(size, Sequence) and len(size) == 2 else (size, size)
    if not (is_whole(high) and is_whole(wide) and high > 0 and wide > 0):
        return None
    return int(pixels.shape[2]) // int(high), int(pixels.shape[3]) // int(wide)


def patch_tokens(config: Any, grid: tuple[int, int], length: int) -> tuple[Token, ...] | None:
    """Name the tokens of a picture: "row,column" of each patch, counted from 0, and those that stand before them.

    None where the model has other tokens than patches and what its config names: it may have merged some.
    """
    rows, columns = grid
    registers = getattr(config, "num_register_tokens", 0) or 0
    extra = length - rows * columns
    distilled = str(getattr(config, "model_type", "")) == "deit"
    before = {0: [], 1: ["[CLS]"], 1 + registers: ["[CLS]", *(f"[REG{n}]" for n in range(1, registers + 1))]}
    names = ["[CLS]", "[DIST]"] if distilled and extra == 2 else before.get(extra)
    if extra and hasattr(config, "prefix_tokens"):  # of timm and torchvision
        names = config.prefix_tokens if len(config.prefix_tokens) == extra else None
    if names is None:
        return None
    special = [Token(-1, name, 0, 0, None, True) for name in names]
    patches = [Token(-1, f"{n // columns},{n % columns}", 0, 0, None, False) for n in range(rows * columns)]
    return (*special, *patches)


def seen_note(picture: Picture, seen: Box | None) -> str:
    """Say which part of a picture the model saw; "" where it saw all of it."""
    width, height = picture.size
    if seen is None:
        return f"The positions of patches in {picture.name} aren't known, because it isn't resized evenly."
    left, top, right, bottom = (round(side) for side in seen)
    left, top, right, bottom = max(left, 0), max(top, 0), min(right, width), min(bottom, height)
    if (left, top, right, bottom) == (0, 0, width, height):
        return ""
    part = (right - left) * (bottom - top) / (width * height)
    return (
        f"The model saw {part:.0%} of {picture.name}: pixels {left}–{right} of {width} across and "
        f"{top}–{bottom} of {height} down."
    )


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
