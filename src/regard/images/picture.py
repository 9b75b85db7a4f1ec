"""Open an image as upright 8-bit RGB, and note each change that this needed."""

import os
import warnings
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

from regard.errors import RegardError, first_line
from regard.files import check_regular

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
