"""A small matrix as cells: its own numbers, written where there is room, in colours that fit their signs."""

import numpy as np
import torch

from regard.display.elements.colours import DIFFERENCES, WEIGHTS
from regard.display.elements.heatmap import heatmap


def test_cells_are_the_matrix() -> None:
    matrix = torch.tensor([[0.5, -0.25, 0.0], [0.125, 1.0, -1.0]])
    axes = heatmap(matrix, ["a", "b"], ["c", "d", "e"], title="of $x$", diverging=True, labels=("down", "across")).axes[
        0
    ]
    (image,) = axes.images
    np.testing.assert_array_equal(image.get_array(), matrix.numpy())
    assert image.get_clim() == (-1, 1)
    assert image.get_cmap() == DIFFERENCES
    assert [text.get_text() for text in axes.texts] == ["0.50", "-0.25", "0.00", "0.12", "1.00", "-1.00"]
    assert (axes.get_title(), axes.get_ylabel(), axes.get_xlabel()) == ("of $x$", "down", "across")
    assert [label.get_text() for label in axes.get_xticklabels()] == ["c", "d", "e"]


def test_numbers_from_0_are_white_to_dark_and_into_given_axes() -> None:
    from matplotlib.figure import Figure

    figure = Figure()
    axes = figure.add_subplot()
    assert heatmap(torch.rand(13, 4), axes=axes) is figure
    assert axes.images[0].get_cmap() == WEIGHTS
    assert axes.images[0].get_clim()[0] == 0
    assert not axes.texts  # no room
