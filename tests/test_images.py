"""Images become upright RGB, with notes; patches lie where they are, and the tokens before them are named."""

import io
import re
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some
from PIL import Image
from transformers import CLIPVisionConfig, DeiTConfig, Dinov2WithRegistersConfig, ViTConfig

from regard.errors import RegardError
from regard.images import Patches, patch_tokens, read_picture, read_picture_bytes

WIDE = np.arange(7 * 11 * 3, dtype=np.uint8).reshape(7, 11, 3)  # 11 wide, 7 high


def written(tmp_path: Path, image: Image.Image, name: str, **options: Any) -> Path:
    image.save(tmp_path / name, **options)
    return tmp_path / name


def test_files_images_and_arrays_are_one(tmp_path: Path) -> None:
    image = Image.fromarray(WIDE)
    for source in (WIDE, image, written(tmp_path, image, "a.png"), str(tmp_path / "a.png")):
        picture = read_picture(source)
        assert picture.size == (11, 7)
        assert picture.notes == ()
        assert np.array_equal(np.asarray(picture.pixels), WIDE)
    assert picture.name == "a.png"
    assert read_picture(picture) is picture
    sent = read_picture_bytes((tmp_path / "a.png").read_bytes(), "a.png")
    assert (sent.name, np.array_equal(np.asarray(sent.pixels), WIDE)) == ("a.png", True)
    with pytest.raises(RegardError, match=r"image 'b.png' cannot be read"):
        read_picture_bytes(b"", "b.png")


def test_what_a_camera_turned_is_upright(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # the picture's top is at the right
    picture = read_picture(written(tmp_path, Image.fromarray(WIDE), "a.png", exif=exif))
    assert picture.size == (7, 11)
    assert np.array_equal(np.asarray(picture.pixels), np.rot90(WIDE, -1))
    assert ["EXIF" in note and "a.png" in note for note in picture.notes] == [True]


def test_what_is_transparent_lies_on_white() -> None:
    pixels = np.zeros((2, 3, 4), np.uint8)
    pixels[0, 0] = (200, 100, 0, 255)
    picture = read_picture(Image.fromarray(pixels))
    shown = np.asarray(picture.pixels)
    assert shown[0, 0].tolist() == [200, 100, 0]
    assert (shown[1] == 255).all()
    assert "on white" in picture.notes[0]
    pixels[..., 3] = 255
    assert read_picture(Image.fromarray(pixels)).notes == ()


def test_sixteen_bits_are_the_high_byte(tmp_path: Path) -> None:
    deep = (np.arange(35, dtype=np.uint16) * 1777).reshape(5, 7)
    picture = read_picture(written(tmp_path, Image.fromarray(deep), "deep.png"))
    assert np.array_equal(np.asarray(picture.pixels)[:, :, 1], deep >> 8)
    assert "16 bits per pixel" in picture.notes[0]


def test_the_first_frame_is_read_and_cmyk_is_told(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (5, 3), colour) for colour in ("red", "blue", "lime")]
    path = written(tmp_path, frames[0], "film.gif", save_all=True, append_images=frames[1:])
    picture = read_picture(path)
    assert picture.pixels.getpixel((0, 0)) == (255, 0, 0)
    assert ["3 frames of film.gif" in note for note in picture.notes] == [True]
    printed = read_picture(written(tmp_path, Image.new("CMYK", (5, 3)), "print.jpg"))
    assert printed.pixels.mode == "RGB"
    assert "CMYK" in printed.notes[0]


def test_a_damaged_second_frame_leaves_the_first(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    frame = Image.fromarray(WIDE)
    content = written(tmp_path, frame, "a.tiff", save_all=True, append_images=[frame], exif=exif).read_bytes()
    second = content.rindex(struct.pack("<HHI", 256, 4, 1))  # the tag of the width
    (tmp_path / "a.tiff").write_bytes(content[:second] + b"\1\3" + content[second + 2 :])
    picture = read_picture(tmp_path / "a.tiff")
    assert np.array_equal(np.asarray(picture.pixels), np.rot90(WIDE, -1))
    assert "EXIF" in picture.notes[0]


def test_what_pillow_warns_of_is_a_note(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    whole = written(tmp_path, Image.fromarray(WIDE), "a.tiff", description="a river bank").read_bytes()
    at = whole.index(struct.pack("<HH", 270, 2))  # the tag of the description, and how long it is
    (tmp_path / "a.tiff").write_bytes(whole[: at + 4] + b"\0\0\1\0" + whole[at + 8 :])
    picture = read_picture(tmp_path / "a.tiff")
    assert np.array_equal(np.asarray(picture.pixels), WIDE)
    assert "a.tiff are damaged: " in picture.notes[0]
    assert not list(recwarn)


def bomb(width: int, height: int) -> bytes:
    """A PNG of 100 bytes whose header asks for any number of pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


def png() -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (37, 41, 3), dtype=np.uint8)).save(file, "PNG")
    return file.getvalue()


def damaged_tiff() -> bytes:
    """A TIFF that gives the place of its pixels as text."""
    file = io.BytesIO()
    Image.fromarray(WIDE).save(file, "TIFF")
    return re.sub(rb"\x11\x01[\x03\x04]\x00", b"\x11\x01\x02\x00", file.getvalue(), count=1)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "cannot be read, expected one of PNG, JPEG"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "cannot be read"),
        (png()[:2000], "is damaged, or cut short"),
        (damaged_tiff(), "is damaged, or cut short"),
        (bomb(60_000, 60_000), "has too many pixels"),
        (bomb(7072, 7072), "has too many pixels: at most 50,000,000 are read, 65,535 a side; make it smaller"),
        (bomb(1, 65_536), "has too many pixels"),
        (bomb(1, 65_535), "is damaged, or cut short"),
    ],
)
def test_files_that_are_no_pictures(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "x.png").write_bytes(content)
    with pytest.raises(RegardError, match=says) as caught:
        read_picture(tmp_path / "x.png")
    assert "x.png" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (7, "got int, expected a file, a Pillow image or an array"),
        (WIDE / 2, r"got \(7, 11, 3\) float64, expected an RGB array \(height, width, 3\) uint8"),
        (WIDE[:, :, 0], r"got \(7, 11\) uint8"),
        (Image.new("F", (3, 3)), "^image 'a picture' has mode F"),
        ("no/such.png", "No such file"),
        (Image.new("1", (7072, 7072)), "has too many pixels"),
        (Image.open(io.BytesIO(png()[:2000])), "'a picture' is damaged, or cut short"),
    ],
)
def test_what_is_no_picture(given: Any, says: str) -> None:
    with pytest.raises(RegardError, match=says):
        read_picture(given)


PICTURE = read_picture(np.zeros((70, 110, 3), np.uint8))


@given(some.integers(1, 7), some.integers(1, 11), some.integers(0, 5), some.data())
def test_a_tokens_box_is_where_its_number_lies(rows: int, columns: int, first: int, data: some.DataObject) -> None:
    patches = Patches(PICTURE, rows, columns, first, (3.0, 5.0, 101.0, 67.0))
    token = data.draw(some.integers(first, first + rows * columns - 1))
    left, top, right, bottom = patches.box(token)
    row, column = divmod(token - first, columns)
    wide, high = 98.0 / columns, 62.0 / rows
    assert (right - left, bottom - top) == (pytest.approx(wide), pytest.approx(high))
    assert (left, top) == (pytest.approx(3.0 + column * wide), pytest.approx(5.0 + row * high))
    numbers = torch.zeros(2, first + rows * columns)
    numbers[1, token] = 1
    heat = patches.heat(numbers)
    assert heat.shape == (2, rows, columns)
    assert heat.nonzero().tolist() == [[1, row, column]]


def test_what_is_no_patch_is_named() -> None:
    patches = Patches(PICTURE, 2, 3, 1, None)
    with pytest.raises(RegardError, match="patch: got token 0, but patches are tokens 1 to 6"):
        patches.box(0)
    with pytest.raises(RegardError, match="the patches' positions in the image are unknown"):
        patches.box(1)
    with pytest.raises(RegardError, match="heat: got 6 numbers, expected one per token, 7 or more"):
        patches.heat(torch.zeros(6))


def test_tokens_are_named_by_row_and_column() -> None:
    def names(config: object, grid: tuple[int, int], length: int) -> list[str] | None:
        tokens = patch_tokens(config, grid, length)
        return None if tokens is None else [token.text for token in tokens]

    assert names(ViTConfig(), (2, 3), 7) == ["[CLS]", "0,0", "0,1", "0,2", "1,0", "1,1", "1,2"]
    assert names(CLIPVisionConfig(), (1, 2), 2) == ["0,0", "0,1"]
    assert names(DeiTConfig(), (1, 1), 3) == ["[CLS]", "[DIST]", "0,0"]
    registers = Dinov2WithRegistersConfig(num_register_tokens=2)
    assert names(registers, (1, 1), 4) == ["[CLS]", "[REG1]", "[REG2]", "0,0"]
    assert names(ViTConfig(), (2, 3), 9) is None
    assert names(ViTConfig(), (4, 4), 5) is None
