"""What schematic figures are drawn from: tensors to scale, with their numbers, sizes and signs."""

import pytest
import torch
from matplotlib.patches import Rectangle

from drawings.sheet import INPUT, QUERY, arrow, box, path, plate, sheet, tensor, tint


def told(axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def test_a_sheet_is_measured_in_inches() -> None:
    figure, axes = sheet(5, 3, "a title")
    assert tuple(figure.get_size_inches()) == (5, 3)
    assert axes.get_xlim() == (0, 5)
    assert axes.get_ylim() == (0, 3)
    assert told(axes) == ["a title"]


def test_a_tensor_is_drawn_to_scale_with_its_numbers() -> None:
    _, axes = sheet(5, 3)
    values = torch.tensor([[1.0, -2.0, 0.5], [0.0, 4.0, 3.0]])
    width, height = tensor(axes, 1, 1, values, QUERY, "q", cell=(0.2, 0.1), digits=1, rows=["a", "b"])
    assert (width, height) == pytest.approx((0.6, 0.2))
    assert told(axes) == ["1.0", "-2.0", "0.5", "0.0", "4.0", "3.0", "a", "b", "q", "2 × 3"]
    (image,) = axes.images
    assert torch.equal(torch.tensor(image.get_array()), values.double())
    assert tuple(image.get_extent()) == pytest.approx((1, 1.6, 1, 1.2))
    assert (image.norm.vmin, image.norm.vmax) == (-4, 4)  # white is 0
    assert image.cmap(0.5)[:3] == pytest.approx((1, 1, 1), abs=0.01)


def test_a_vector_is_a_column_and_below_zero_is_another_colour() -> None:
    _, axes = sheet(5, 3)
    tensor(axes, 0, 0, torch.tensor([1.0, -1.0, 0.0]), INPUT, "x", sizes=False)
    (image,) = axes.images
    assert image.get_array().shape == (3, 1)
    red, green, blue, _ = image.cmap(0.0)
    assert red > 2 * green  # grey tensors have red below 0
    assert red > 2 * blue


def test_boxes_arrows_and_plates() -> None:
    _, axes = sheet(5, 3)
    box(axes, 1, 1, 2, 1, "softmax")
    plate(axes, 0, 0, 1, 1, QUERY, "6 × 16")
    arrow(axes, (0, 0), (1, 1), "scaled $x$")
    path(axes, [(0, 0), (0, 1), (1, 1)])
    assert told(axes) == ["softmax", "6 × 16", "scaled $x$"]
    assert sum(isinstance(patch, Rectangle) for patch in axes.patches) == 1
    assert len(axes.patches) == 4
    assert len(axes.lines) == 1


def test_tints_are_light() -> None:
    assert min(tint("#000000")) == pytest.approx(0.82)
    assert tint("#ffffff") == pytest.approx((1, 1, 1))
