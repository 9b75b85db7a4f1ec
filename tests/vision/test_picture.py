"""The picture of a picture: as given, and grey under its heat, where its patches lie."""

from typing import Any

import numpy as np
import pytest
import torch

from regard.images import Patches, read_picture
from regard.vision.answer import Look
from regard.vision.picture import paint_looks


def test_heat_lies_where_the_patches_lie() -> None:
    pixels = np.random.default_rng(0).integers(0, 255, (70, 110, 3), dtype=np.uint8)
    patches = Patches(read_picture(pixels), 2, 3, 1, (10.0, 5.0, 100.0, 65.0))
    heat = torch.tensor([[0.1, 0.0, 0.3], [0.2, 0.05, 0.05]], dtype=torch.float64)
    received = torch.ones(2, 3, dtype=torch.float64)
    received[0, 2] = 12.0
    look = Look("cat.png", 0, "[CLS]", 3, 1, 5, heat, 0.3, received, None)
    plain, heated, bar = paint_looks([look], [patches]).axes
    assert np.array_equal(plain.images[0].get_array(), pixels)
    shown: Any = heated.images[1]
    assert list(shown.get_extent()) == [10, 100, 65, 5]
    values = np.ma.filled(np.ma.masked_invalid(shown.get_array()), -1)
    assert values == pytest.approx(np.array([[0.1, 0.0, -1], [0.2, 0.05, 0.05]]))
    assert shown.norm.vmax == pytest.approx(4 * 0.4 / 5)
    assert all(part in heated.get_title("left") for part in ("[CLS]", "layer 3", "head 1"))
    assert "hatched" in bar.get_ylabel()
