"""Read images as upright RGB pixels, and map the tokens of image patches to their boxes in pixels."""

import os
import warnings
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Float
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError
from torch import Tensor

from regard.checks import is_whole
from regard.errors import OutOfRangeError, RegardError, first_line
from regard.files import check_regular
from regard.text.tokens import Token

# Formats that Pillow decodes itself. Some other formats run a program (EPS) or load files that they name.
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM")
PLAIN = ("RGB", "L", "1", "P", "YCbCr")  # modes that become RGB without a note
MAX_PIXELS = 50_000_000  # a small file can claim any number. Reading takes 8 bytes per pixel, 16 for WebP
MAX_SIDE = 65_535  # the maximum of JPEG. Pillow also needs memory for each row


@dataclass(frozen=True)
class Picture:
    """An image as a model receives it: upright RGB pixels. notes: the changes made to the original image."""

    pixels: Image.Image
    name: str
    notes: tuple[str, ...] = ()

    @property
    def size(self) -> tuple[int, int]:
        """Return the width and height in pixels."""
        return self.pixels.size


def read_picture(image: Any) -> Picture:
    """Read an image as upright 8-bit RGB.

    image: the path of a file (PNG, JPEG, WebP, GIF, BMP, TIFF or PPM), a Pillow image, or an array (height, width, 3)
    of 8-bit integers. A `Picture` is returned unchanged. Rotated images are turned upright, only the first frame is
    read, transparent pixels are drawn on white, and 16 bits are reduced to 8. `notes` lists each change.
    """
    if isinstance(image, Picture):
        return image
    if isinstance(image, np.ndarray):
        if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or image.size == 0:
            raise RegardError(f"image: got {image.shape} {image.dtype}, expected an RGB array (height, width, 3) uint8")
        image = Image.fromarray(image)
    if isinstance(image, Image.Image):
        return _read_image(image, "a picture", "a picture")
    if not isinstance(image, (str, os.PathLike)):
        raise RegardError(f"image: got {type(image).__name__}, expected a file, a Pillow image or an array of pixels")
    path = Path(image)
    check_regular(path, "image")
    return _read_image(path, path.name, str(image))


def read_picture_bytes(data: bytes, name: str) -> Picture:
    """Read an image from the bytes of a file, like `read_picture`. name: the image's name in notes."""
    return _read_image(BytesIO(data), name, name)


def _read_image(source: Path | BytesIO | Image.Image, name: str, called: str) -> Picture:
    """Read an image, and note changes to it. Raises RegardError for all errors. called: the image's name in them."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            opened = nullcontext(source) if isinstance(source, Image.Image) else Image.open(source, formats=FORMATS)
            with opened as image:
                pixels, notes = _convert_to_rgb(image, name)
                with suppress(Exception):  # counting frames reads the rest of the file, which can be damaged
                    if (frames := getattr(image, "n_frames", 1)) > 1:
                        notes.append(f"Only the first of {frames} frames of {name} was read.")
        except Image.DecompressionBombError as error:
            limits = f"at most {MAX_PIXELS:,} are read, {MAX_SIDE:,} a side"
            raise RegardError(f"image {called!r} has too many pixels: {limits}; make it smaller") from error
        except UnidentifiedImageError as error:
            raise RegardError(f"image {called!r} cannot be read, expected one of {', '.join(FORMATS)}") from error
        except RegardError:
            raise
        except Exception as error:  # damaged files also raise TypeError, KeyError and struct.error
            raise RegardError(f"image {called!r} is damaged, or cut short: {first_line(error)}") from error
    messages = dict.fromkeys(str(warning.message) for warning in warned if warning.category is UserWarning)
    notes += (f"Parts of {name} are damaged: {' '.join(warning.split())}." for warning in messages)
    return Picture(pixels, name, tuple(notes))


def _convert_to_rgb(opened: Image.Image, name: str) -> tuple[Image.Image, list[str]]:
    """Convert an opened image to upright 8-bit RGB. It is decoded once. Returns the pixels and notes on changes."""
    if opened.width * opened.height > MAX_PIXELS or max(opened.size) > MAX_SIDE:
        raise Image.DecompressionBombError
    notes = []
    opened.seek(0)
    if (image := opened).getexif().get(ExifTags.Base.Orientation) in range(2, 9):
        notes.append(f"The EXIF data turned {name} upright.")
        image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I;16"):
        notes.append(f"Only the upper 8 of the 16 bits per pixel of {name} are used.")
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8)).convert("RGB"), notes
    if image.has_transparency_data:
        image = image if image.mode in ("RGBA", "LA") else image.convert("RGBA")
        if image.getchannel("A").getextrema() != (255, 255):
            notes.append(f"Transparent parts of {name} are shown on white.")
        white = Image.new("RGB", image.size, "white")
        white.paste(image, mask=image)
        return white, notes
    if image.mode == "CMYK":
        notes.append(f"The CMYK colours of {name} were converted to RGB without its colour profile.")
    elif image.mode not in PLAIN:
        raise RegardError(f"image {name!r} has mode {image.mode}, expected 8 bits per colour (or 16 of grey)")
    return image if image.mode == "RGB" and image is not opened else image.convert("RGB"), notes


Box = tuple[float, float, float, float]  # left, top, right, bottom, in pixels of the image
Fill = Literal["blank", "mean", "blur"]


@dataclass(frozen=True)
class Patches:
    """The grid of patches of an image, with the number of each patch's token.

    picture: the upright image. rows, columns: the size of the grid. first: the position of the first patch's token. The
    other patches follow row by row. seen: the part of the image that the model saw, None if unknown.
    """

    picture: Picture
    rows: int
    columns: int
    first: int
    seen: Box | None = None

    def box(self, token: int) -> Box:
        """Return the box of a token's patch in pixels of the image: left, top, right, bottom."""
        if not is_whole(token) or not 0 <= token - self.first < self.rows * self.columns:
            last = self.first + self.rows * self.columns - 1
            raise OutOfRangeError(f"patch: got token {token!r}, but patches are tokens {self.first} to {last}")
        if self.seen is None:
            raise RegardError("patch: the patches' positions in the image are unknown: the trace's status shows why")
        left, top, right, bottom = self.seen
        row, column = divmod(token - self.first, self.columns)
        wide, high = (right - left) / self.columns, (bottom - top) / self.rows
        return left + column * wide, top + row * high, left + (column + 1) * wide, top + (row + 1) * high

    def heat(self, weights: Float[Tensor, "... L"]) -> Float[Tensor, "... rows columns"]:
        """Reshape one number per token to the grid of patches, without the class token and register tokens.

        weights: one number per token, such as a row of an attention map.
        """
        of_patches = weights[..., self.first : self.first + self.rows * self.columns]
        if of_patches.shape[-1] != self.rows * self.columns:
            needed = self.first + self.rows * self.columns
            raise RegardError(f"heat: got {weights.shape[-1]} numbers, expected one per token, {needed} or more")
        return of_patches.unflatten(-1, (self.rows, self.columns))


def patch_tokens(config: Any, grid: tuple[int, int], length: int) -> tuple[Token, ...] | None:
    """Return an image's tokens: the special tokens, then the patches, named "row,column" and counted from 0.

    None if patches and the config's special tokens don't add up to `length`, for example because tokens were merged.
    """
    rows, columns = grid
    registers = getattr(config, "num_register_tokens", 0) or 0
    extra = length - rows * columns
    distilled = str(getattr(config, "model_type", "")) == "deit"
    before = {0: [], 1: ["[CLS]"], 1 + registers: ["[CLS]", *(f"[REG{n}]" for n in range(1, registers + 1))]}
    names = ["[CLS]", "[DIST]"] if distilled and extra == 2 else before.get(extra)
    if extra and hasattr(config, "prefix_tokens"):  # models of timm and torchvision
        names = config.prefix_tokens if len(config.prefix_tokens) == extra else None
    if names is None:
        return None
    special = [Token(-1, name, 0, 0, None, True) for name in names]
    patches = [Token(-1, f"{n // columns},{n % columns}", 0, 0, None, False) for n in range(rows * columns)]
    return (*special, *patches)
