"""What stands where a part of a picture was removed."""

import pytest
import torch

from regard.images.removal import FILLS, Fill, removed

PIXELS = torch.arange(2 * 3 * 11 * 13, dtype=torch.float32).view(2, 3, 11, 13)


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
