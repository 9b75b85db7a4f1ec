"""Open a picture: upright, of eight bits and three colours, and say what was done to make it so."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError
from PIL.Image import DecompressionBombError, DecompressionBombWarning

from regard.errors import RegardError
from regard.files import check_regular

# Formats that Pillow decodes itself; of the others some run a program (EPS) or fetch what they name.
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM")
PLAIN = ("RGB", "L", "1", "P", "YCbCr")  # modes that become RGB with nothing to tell
SIXTEEN = ("I;16", "I;16L", "I;16B", "I;16N")


@dataclass(frozen=True)
class Picture:
    """A picture as it is shown to a model: pixels of mode RGB, upright. notes: what was done to what was given."""

    pixels: Image.Image
    name: str
    notes: tuple[str, ...] = ()

    @property
    def size(self) -> tuple[int, int]:
        """Return its width and height, in pixels."""
        return self.pixels.size


def read_picture(given: Any) -> Picture:
    """Open a picture and make it upright RGB of eight bits.

    given: the path of a file (PNG, JPEG, WebP, GIF, BMP, TIFF or PPM), a Pillow image, an array (height, width, 3) of
    eight-bit numbers, or a `Picture`, which is returned. Turned pixels are turned upright; of several frames the first
    is read; what is transparent is laid on white; 16 bits become 8. Each is a note.

    Raises:
        RegardError: something else; a file that is none, is cut short or of another format; or more pixels than Pillow
            opens without a warning, which a file of a few kilobytes can ask for.
    """
    if isinstance(given, Picture):
        return given
    if isinstance(given, Image.Image):
        return _converted(given, "a picture")
    if isinstance(given, np.ndarray):
        if given.dtype != np.uint8 or given.ndim != 3 or given.shape[2] != 3 or given.size == 0:
            raise RegardError(
                f"image: given an array {given.shape} {given.dtype}, needs (height, width, 3) uint8, red, green, blue"
            )
        return _converted(Image.fromarray(given), "a picture")
    if not isinstance(given, (str, os.PathLike)):
        raise RegardError(f"image: given {type(given).__name__}, needs a file, a Pillow image or an array of pixels")
    path = Path(given)
    check_regular(path, "image")
    with _pillow_errors_in_line(repr(str(given))), Image.open(path, formats=FORMATS) as image:
        return _converted(image, path.name)


def read_picture_bytes(data: bytes, name: str) -> Picture:
    """Open a picture of the bytes of a file, as `read_picture` opens a file. name: what the picture is called."""
    with _pillow_errors_in_line(repr(name)), Image.open(BytesIO(data), formats=FORMATS) as image:
        return _converted(image, name)


@contextmanager
def _pillow_errors_in_line(named: str) -> Iterator[None]:
    """Make one line of what Pillow raises while a picture is opened and decoded."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DecompressionBombWarning)
        try:
            yield
        except (DecompressionBombError, DecompressionBombWarning) as error:
            most = f"{Image.MAX_IMAGE_PIXELS or 0:,}"
            raise RegardError(f"image {named} has too many pixels, at most {most} are read") from error
        except UnidentifiedImageError as error:
            raise RegardError(f"image {named} is none that can be read, needs {', '.join(FORMATS)}") from error
        except (OSError, SyntaxError, ValueError, EOFError) as error:  # SyntaxError: Pillow's word for a broken PNG
            raise RegardError(f"image {named} is not whole: {str(error).splitlines()[0]}") from error


def _converted(image: Image.Image, name: str) -> Picture:
    """Upright RGB of eight bits of an opened image, with notes on what that changed."""
    notes: list[str] = []
    frames = 1
    with suppress(EOFError, OSError):  # counting reads on: what follows the first frame may be cut short
        frames = getattr(image, "n_frames", 1)
    if frames > 1:
        image.seek(0)
        notes.append(f"{name} has {frames} frames: the first was read")
    image.load()
    upright = ImageOps.exif_transpose(image)
    if (image.getexif().get(0x0112) or 1) != 1:
        notes.append(f"{name} was turned upright, as its EXIF data says")
    if upright.mode in SIXTEEN:
        notes.append(f"{name} has 16 bits a pixel: they were made 8, by the high byte")
        return Picture(Image.fromarray((np.asarray(upright) >> 8).astype(np.uint8)).convert("RGB"), name, tuple(notes))
    if "A" in upright.mode or "a" in upright.mode or "transparency" in upright.info:
        seen = upright.convert("RGBA")
        if seen.getchannel("A").getextrema() != (255, 255):
            notes.append(f"{name} is transparent in parts: it was laid on white")
        white = Image.new("RGBA", seen.size, "white")
        return Picture(Image.alpha_composite(white, seen).convert("RGB"), name, tuple(notes))
    if upright.mode == "CMYK":
        notes.append(f"{name} is CMYK, which was made RGB without its colour profile")
    elif upright.mode not in PLAIN:
        raise RegardError(f"image {name!r} has pixels of mode {upright.mode}, needs 8 bits (or 16 of grey) a colour")
    return Picture(upright.convert("RGB"), name, tuple(notes))
