"""What a processor makes of an image, which part of it a model sees, and images without some of their parts."""

from typing import Any, get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from transformers import BitImageProcessorPil, ViTConfig, ViTImageProcessorPil

from regard.errors import RegardError
from regard.images import Fill, read_picture
from regard.vision.read import fill_region, image_pixels, patch_grid, seen_box, seen_note

PICTURE = read_picture(np.zeros((70, 110, 3), np.uint8))
PIXELS = torch.arange(2 * 3 * 11 * 13, dtype=torch.float32).view(2, 3, 11, 13)


def test_a_grid_is_as_the_config_says() -> None:
    pixels = torch.zeros(1, 3, 37, 53)
    assert patch_grid(ViTConfig(patch_size=5), pixels) == (7, 10)
    assert patch_grid(ViTConfig(patch_size=[7, 11]), pixels) == (5, 4)
    assert patch_grid(object(), pixels) is None


def test_what_was_not_seen_is_said() -> None:
    assert seen_note(PICTURE, (0.0, 0.0, 110.0, 70.0)) == ""
    assert seen_note(PICTURE, (11.0, 0.0, 99.0, 70.0)) == (
        "The model saw 80% of a picture: pixels 11–99 of 110 across and 0–70 of 70 down."
    )
    assert "aren't known" in seen_note(PICTURE, None)


@pytest.mark.parametrize("fill", get_args(Fill))
def test_all_else_stays(fill: Fill) -> None:
    before = PIXELS.clone()
    found = fill_region(PIXELS, slice(2, 7), slice(3, 10), fill)
    changed = (found != before).any(0).any(0)
    assert torch.equal(PIXELS, before)
    assert changed[2:7, 3:10].any()
    changed[2:7, 3:10] = False
    assert not changed.any()


def test_what_stands_there() -> None:
    rows, columns = slice(2, 7), slice(3, 10)
    assert not fill_region(PIXELS, rows, columns, "blank")[:, :, rows, columns].any()
    mean = fill_region(PIXELS, rows, columns, "mean")[:, :, rows, columns]
    torch.testing.assert_close(mean, PIXELS.mean((2, 3))[..., None, None].expand_as(mean))
    blurred = fill_region(PIXELS, rows, columns, "blur")[:, :, rows, columns]
    part = PIXELS[:, :, rows, columns]
    torch.testing.assert_close(blurred[:, :, 2, 3], part.mean((2, 3)))  # the middle: of all 5 × 7
    around = part[:, :, [2, 1, 0, 1, 2]][..., [3, 2, 1, 0, 1, 2, 3]]  # a corner: mirrored at its edges
    torch.testing.assert_close(blurred[:, :, 0, 0], around.mean((2, 3)))


def test_a_part_of_one_pixel_is_no_blur() -> None:
    assert torch.equal(fill_region(PIXELS, slice(2, 3), slice(4, 5), "blur"), PIXELS)


def cropping(short: int, high: int, wide: int) -> Any:
    return BitImageProcessorPil(size={"shortest_edge": short}, crop_size={"height": high, "width": wide})


def test_the_tensor_is_the_processors() -> None:
    image = read_picture(np.random.default_rng(1).integers(0, 255, (37, 53, 3), dtype=np.uint8))
    made = image_pixels(cropping(32, 28, 28), image)
    assert torch.equal(made, cropping(32, 28, 28)(images=image.pixels, return_tensors="pt")["pixel_values"])


@settings(max_examples=20, deadline=None)
@given(some.integers(60, 400), some.integers(60, 400), some.integers(48, 90), some.integers(28, 48))
def test_the_part_that_is_cut_out_is_measured(width: int, height: int, short: int, crop: int) -> None:
    """Resized so that the shorter side is `short`, cut in the middle: the box by hand, within a pixel of the result."""
    box = seen_box(cropping(short, crop, crop), (width, height))
    assert box is not None
    by_hand = []
    for side, other in ((width, height), (height, width)):
        resized = short if side <= other else int(short * side / other)
        start = (resized - crop) // 2
        by_hand.append((start * side / resized, (start + crop) * side / resized))
    (left, right), (top, bottom) = by_hand
    for measured, expected, side in zip(box, (left, top, right, bottom), (width, height, width, height), strict=True):
        assert abs(measured - expected) <= 1 + side / 100


def test_a_whole_picture_is_seen_to_its_edges_and_padding_is_not_even() -> None:
    assert seen_box(ViTImageProcessorPil(size={"height": 32, "width": 56}), (97, 131)) == (0, 0, 97, 131)
    assert seen_box(cropping(20, 60, 60), (97, 131)) is None


@pytest.mark.parametrize("seeded", [True, False])
def test_random_crops(seeded: bool) -> None:
    """An image and its measure are cropped alike. If a processor has random numbers of its own, no place is claimed."""
    own = np.random.default_rng(0)

    def crop(images: Any, return_tensors: str) -> dict[str, Any]:
        left = int(torch.randint(90, ())) if seeded else own.integers(90)
        pixels = torch.from_numpy(np.asarray(images.crop((left, 0, left + 64, 64)))).permute(2, 0, 1)
        return {"pixel_values": pixels[None]}

    before = torch.get_rng_state()
    columns = np.zeros((64, 160, 3), np.uint8) + np.arange(160, dtype=np.uint8)[:, None]
    shown, box = image_pixels(crop, read_picture(columns)), seen_box(crop, (160, 64))
    assert torch.equal(before, torch.get_rng_state())
    assert (box is not None) == seeded
    if box is not None:
        assert abs(box[0] - float(shown[0, 0, 0, 0])) <= 2


def test_what_cannot_be_used() -> None:
    image = read_picture(np.zeros((5, 7, 3), np.uint8))
    with pytest.raises(RegardError, match=r"'a picture' \(7 × 5 pixels\): .* makes 810,000,000,000 pixels"):
        image_pixels(ViTImageProcessorPil(size={"height": 900_000, "width": 4}), image)
    with pytest.raises(RegardError, match="makes 51,380,224 pixels of it, at most 22,369,621 are made"):
        image_pixels(cropping(224, 224, 224), read_picture(np.zeros((1024, 1, 3), np.uint8)))
    with pytest.raises(RegardError, match="cannot be prepared by the model's processor"):
        image_pixels(lambda images, return_tensors: 1 / 0, image)
