"""Pictures as models read them: opened, cut into patches, made a tensor, and the way back from a token to its place."""

import os
import warnings
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import torch
from jaxtyping import Float
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError
from torch import Tensor
from torch.nn import functional as F

from regard.checks import is_whole
from regard.errors import OutOfRangeError, RegardError, first_line
from regard.files import check_regular
from regard.model_files.suppress_warnings import quiet
from regard.text.tokens import Token

if TYPE_CHECKING:
    from transformers import BaseImageProcessor, ProcessorMixin

# Formats that Pillow decodes itself; of the others some run a program (EPS) or fetch what they name.
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM")
PLAIN = ("RGB", "L", "1", "P", "YCbCr")  # modes that become RGB without a note
MAX_PIXELS = 50_000_000  # 8 bytes each while an image is read, of WebP 16; a small file can ask for any number
MAX_SIDE = 65_535  # the most that JPEG allows; Pillow also needs memory for each row


@dataclass(frozen=True)
class Picture:
    """An image as a model is shown it: pixels of mode RGB, upright. notes: what was changed in the given image."""

    pixels: Image.Image
    name: str
    notes: tuple[str, ...] = ()

    @property
    def size(self) -> tuple[int, int]:
        """Return its width and height, in pixels."""
        return self.pixels.size


def read_picture(image: Any) -> Picture:
    """Read an image as upright 8-bit RGB.

    given: the path of a file (PNG, JPEG, WebP, GIF, BMP, TIFF or PPM), a Pillow image, an array (height, width, 3) of
    eight-bit numbers, or a `Picture`, which is returned. Rotated pixels are turned upright, the first of several frames
    is read, transparent pixels are laid on white, and 16 bits become 8. Each change is a note.
    """
    if isinstance(image, Picture):
        return image
    if isinstance(image, np.ndarray):
        if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or image.size == 0:
            raise RegardError(f"image: given an array {image.shape} {image.dtype}, needs (height, width, 3) uint8, RGB")
        image = Image.fromarray(image)
    if isinstance(image, Image.Image):
        return _read(image, "a picture", "a picture")
    if not isinstance(image, (str, os.PathLike)):
        raise RegardError(f"image: given {type(image).__name__}, needs a file, a Pillow image or an array of pixels")
    path = Path(image)
    check_regular(path, "image")
    return _read(path, path.name, str(image))


def read_picture_bytes(data: bytes, name: str) -> Picture:
    """Read an image from the bytes of a file, as `read_picture` reads a file. name: what to call it in notes."""
    return _read(BytesIO(data), name, name)


def _read(source: Path | BytesIO | Image.Image, name: str, called: str) -> Picture:
    """Read an image, with notes. Whatever Pillow raises becomes one line. called: what to call the image there."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            opened = nullcontext(source) if isinstance(source, Image.Image) else Image.open(source, formats=FORMATS)
            with opened as image:
                pixels, notes = _converted(image, name)
                with suppress(Exception):  # counting reads on, where anything may be damaged
                    if (frames := getattr(image, "n_frames", 1)) > 1:
                        notes.append(f"Only the first of {frames} frames of {name} was read.")
        except Image.DecompressionBombError as error:
            most = f"at most {MAX_PIXELS:,} are read, {MAX_SIDE:,} a side"
            raise RegardError(f"image {called!r} has too many pixels: {most}; make it smaller") from error
        except UnidentifiedImageError as error:
            raise RegardError(f"image {called!r} cannot be read, needs {', '.join(FORMATS)}") from error
        except RegardError:
            raise
        except Exception as error:  # of any kind: for damaged files also TypeError, KeyError, struct.error
            raise RegardError(f"image {called!r} is damaged, or cut short: {first_line(error)}") from error
    messages = dict.fromkeys(str(warning.message) for warning in warned if warning.category is UserWarning)
    notes += (f"Parts of {name} are damaged: {' '.join(warning.split())}." for warning in messages)
    return Picture(pixels, name, tuple(notes))


def _converted(opened: Image.Image, name: str) -> tuple[Image.Image, list[str]]:
    """Convert an opened image to upright 8-bit RGB. It is decoded once. Return the pixels, and notes on changes."""
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
        raise RegardError(f"image {name!r} has pixels of mode {image.mode}, needs 8 bits (or 16 of grey) a colour")
    return image if image.mode == "RGB" and image is not opened else image.convert("RGB"), notes


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


PROCESSOR_FILE, BOTH_FILE = "preprocessor_config.json", "processor_config.json"  # of pictures; of texts too
LARGEST = 64 << 20  # numbers of a tensor that a processor may make: a config can ask for any size


def read_processor(place: Any, *, texts: bool = False) -> "ProcessorMixin | BaseImageProcessor":
    """Open the image processor of a folder or hub name that has one; no code of it is run.

    texts: open what makes texts with pictures ready, of a model that reads both.
    """
    import transformers

    file = BOTH_FILE if texts else PROCESSOR_FILE
    with quiet():
        try:
            kind = transformers.AutoProcessor if texts else transformers.AutoImageProcessor
            return kind.from_pretrained(place, backend="pil", trust_remote_code=False)
        except Exception as error:  # of the kinds that broken JSON and unknown names bring
            raise RegardError(f"{file} of {str(place)!r} cannot be used: {first_line(error)}") from error


def processed(processor: Any, picture: Picture) -> Float[Tensor, "1 3 h w"]:
    """Make the tensor that the model reads of a picture."""
    return _run(processor, picture.pixels, picture.name)


def seen_box(processor: Any, size: tuple[int, int]) -> tuple[float, float, float, float] | None:
    """Measure which part of a picture a processor shows to the model: (left, top, right, bottom), in pixels.

    size: width and height. The processor is given a picture that is redder to the right and greener downwards: what
    comes out says where each pixel was taken from, whatever the processor resizes, cuts or crops. None where the
    two colours do not grow evenly or change, as if it pads or crops at random: the places are then not known.
    """
    width, height = size
    across = np.round(255 * (np.arange(width) + 0.5) / width).astype(np.uint8)
    down = np.round(255 * (np.arange(height) + 0.5) / height).astype(np.uint8)
    black, white = (_run(processor, Image.new("RGB", size, (level,) * 3), "a measure").double() for level in (0, 255))
    red, green = (Image.fromarray(line).resize(size) for line in (across[None], down[:, None]))
    picture = Image.merge("RGB", (red, green, Image.new("L", size)))
    shown = _run(processor, picture, "a measure").double()
    if bool((white == black).any()) or not torch.equal(shown, _run(processor, picture, "a measure").double()):
        return None
    shown = (shown - black) / (white - black)  # 0 to 1 of the width, and of the height
    x, y = _straight(shown[0, 0].mean(0)), _straight(shown[0, 1].mean(1))
    if x is None or y is None:
        return None
    edges = (0.0, 0.0, float(width), float(height))
    measured = (x[0] * width, y[0] * height, x[1] * width, y[1] * height)
    left, top, right, bottom = (  # the colours are of 256 steps: what is that near to an edge is the edge
        edge if abs(measure - edge) < max(1.0, side / 128) else measure
        for measure, edge, side in zip(measured, edges, (width, height, width, height), strict=True)
    )
    return left, top, right, bottom


def _straight(values: Float[Tensor, " n"]) -> tuple[float, float] | None:
    """Where a line through values begins and ends, half a step outside; None where they stand on none.

    What is near the ends is left out: at a picture's edges a processor has nothing to take means of.
    """
    count = len(values)
    if count < 4:
        return None
    at = torch.arange(count, dtype=torch.float64) + 0.5
    middle = slice(count // 16, count - count // 16)
    design = torch.stack([torch.ones_like(at), at], 1)
    solved = torch.linalg.lstsq(design[middle], values[middle, None]).solution[:, 0]
    if not bool(((design @ solved - values)[middle].abs() < 1.5 / 255).all()) or float(solved[1]) <= 0:
        return None
    return float(solved[0]), float(solved[0] + solved[1] * count)


def _run(processor: Any, image: Image.Image, name: str) -> Float[Tensor, "1 3 h w"]:
    what = f"image {name!r} ({image.width} × {image.height} pixels)"
    sizes = [getattr(processor, name, None) for name in ("size", "crop_size", "pad_size")]
    sides = [side for size in sizes if size is not None for side in dict(size).items() if isinstance(side[1], int)]
    longer = max(image.size) / max(min(image.size), 1)  # times the shorter side, whose size "shortest_edge" is
    made = max((n * n * (longer if key == "shortest_edge" else 1) for key, n in sides), default=0)
    if made * 3 > LARGEST:
        most = f"{made:,.0f} pixels of it, at most {LARGEST // 3:,} are made"
        raise RegardError(f"{what}: the model's processor makes {most}")
    with quiet(), torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)  # what crops at random crops an image and its measure alike
        try:
            pixels = processor(images=image, return_tensors="pt")["pixel_values"]
        except Exception as error:
            raise RegardError(f"{what} cannot be made ready by the model's processor: {first_line(error)}") from error
    if not isinstance(pixels, Tensor) or pixels.ndim != 4 or pixels.shape[:2] != (1, 3):
        shape = tuple(getattr(pixels, "shape", ()))
        raise RegardError(f"{what}: the model's processor makes {shape} of it, needs one item (1, 3, height, width)")
    return pixels.float()
