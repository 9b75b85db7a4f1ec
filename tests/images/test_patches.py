"""Patches lie where they are: box and token are each other's inverse, heat is laid out row by row."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some
from transformers import CLIPVisionConfig, DeiTConfig, Dinov2WithRegistersConfig, ViTConfig

from regard.errors import RegardError
from regard.images.patches import FILLS, Fill, Patches, patch_grid, patch_tokens, removed, seen_note
from regard.images.picture import read_picture

PICTURE = read_picture(np.zeros((70, 110, 3), np.uint8))
PIXELS = torch.arange(2 * 3 * 11 * 13, dtype=torch.float32).view(2, 3, 11, 13)


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
    with pytest.raises(RegardError, match="patch: given token 0, patches are tokens 1 to 6"):
        patches.box(0)
    with pytest.raises(RegardError, match="where the patches lie on the picture is not known"):
        patches.box(1)
    with pytest.raises(RegardError, match="heat: given 6 numbers, needs one for each of 7 tokens"):
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


@pytest.mark.parametrize("fill", FILLS)
def test_all_else_stays(fill: Fill) -> None:
    before = PIXELS.clone()
    found = removed(PIXELS, slice(2, 7), slice(3, 10), fill)
    changed = (found != before).any(0).any(0)
    assert torch.equal(PIXELS, before)
    assert changed[2:7, 3:10].any()
    changed[2:7, 3:10] = False
    assert not changed.any()


def test_what_stands_there() -> None:
    rows, columns = slice(2, 7), slice(3, 10)
    assert not removed(PIXELS, rows, columns, "blank")[:, :, rows, columns].any()
    mean = removed(PIXELS, rows, columns, "mean")[:, :, rows, columns]
    torch.testing.assert_close(mean, PIXELS.mean((2, 3))[..., None, None].expand_as(mean))
    blurred = removed(PIXELS, rows, columns, "blur")[:, :, rows, columns]
    part = PIXELS[:, :, rows, columns]
    torch.testing.assert_close(blurred[:, :, 2, 3], part.mean((2, 3)))  # the middle: of all 5 × 7
    around = part[:, :, [2, 1, 0, 1, 2]][..., [3, 2, 1, 0, 1, 2, 3]]  # a corner: mirrored at its edges
    torch.testing.assert_close(blurred[:, :, 0, 0], around.mean((2, 3)))


def test_a_part_of_one_pixel_is_no_blur() -> None:
    assert torch.equal(removed(PIXELS, slice(2, 3), slice(4, 5), "blur"), PIXELS)
