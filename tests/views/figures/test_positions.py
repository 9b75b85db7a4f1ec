"""The matrices that are drawn are the encoding's, and the title says what they do."""

import numpy as np
import pytest
import torch

from regard.explain.vectors.positions import encoding
from regard.views.figures.positions import draw_positions, paint_positions


@pytest.mark.parametrize(("kind", "said"), [("sinusoidal", "added"), ("rotary", "turned"), ("alibi", "score")])
def test_every_matrix_is_drawn(kind: str, said: str, tmp_path) -> None:
    pictures = encoding(kind, 13, 8)
    figure = paint_positions(kind, pictures, "")
    images = [axes.images[0] for axes in figure.axes if axes.images and axes.get_ylabel()]
    assert len(images) == len(pictures)
    for image, picture in zip(images, pictures, strict=True):
        np.testing.assert_array_equal(image.get_array(), picture.numpy())
        low, high = image.get_clim()
        assert low == pytest.approx(-float(picture.abs().max() if kind == "alibi" else pictures.abs().max()))
        assert high == (0 if kind == "alibi" else -low)
    assert said in figure.get_suptitle()
    assert draw_positions(kind, pictures, "", tmp_path / "a.png") == []


def test_colours_of_a_trained_table_end_before_its_largest_numbers() -> None:
    table = 0.1 * torch.ones(1, 40, 50)
    table[0, 3, 4] = 7.0
    figure = paint_positions("learned", table, " of a model")
    (image,) = figure.axes[0].images
    assert image.get_clim() == pytest.approx((-0.1, 0.1))
    assert figure.axes[1].get_ylabel() == "single numbers reach 0.10 and 7.00"
    assert figure.get_suptitle().startswith("learned positions of a model, 40 × 50: what is added")
