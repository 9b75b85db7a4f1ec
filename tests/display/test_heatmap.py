"""A small matrix as cells: its own numbers, written where there is room, in colours that fit their signs."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

import regard
from regard.display.canvas import DIFFERENCES, WEIGHTS
from regard.display.heatmap import CELLS, MAX_NAMED_TOKENS, heatmap


def test_cells_are_the_matrix() -> None:
    matrix = torch.tensor([[0.5, -0.25, 0.0], [0.125, 1.0, -1.0]])
    axes = Figure().add_subplot()
    heatmap(axes, matrix, ["a", "b"], ["c", "d", "e"], title="of $x$", diverging=True, labels=("down", "across"))
    (image,) = axes.images
    np.testing.assert_array_equal(image.get_array(), matrix.numpy())
    assert image.get_clim() == (-1, 1)
    assert image.get_cmap() == DIFFERENCES
    assert [text.get_text() for text in axes.texts] == ["0.50", "−0.25", "0.00", "0.12", "1.00", "−1.00"]
    assert (axes.get_title(), axes.get_ylabel(), axes.get_xlabel()) == ("of $x$", "down", "across")
    assert [label.get_text() for label in axes.get_xticklabels()] == ["c", "d", "e"]


def test_numbers_from_0_are_white_to_dark() -> None:
    axes = Figure().add_subplot()
    heatmap(axes, torch.rand(13, 4))
    assert axes.images[0].get_cmap() == WEIGHTS
    assert axes.images[0].get_clim()[0] == 0
    assert not axes.texts  # no room


def test_a_maps_picture_is_its_weights(bank) -> None:
    trace = bank[0]
    figure, axes = plt.subplots()
    try:
        assert trace.attention[3].plot(head=2, axes=axes) is axes
        (image,) = axes.get_images()
        np.testing.assert_allclose(image.get_array(), trace.attention[3][2].numpy(), atol=1e-6)
        assert [label.get_text() for label in axes.get_yticklabels()] == [token.text for token in trace.tokens]
        assert "head 2" in axes.get_title()
        mean = trace.attention[-1].plot()
        np.testing.assert_allclose(mean.get_images()[0].get_array(), trace.attention[5].dense().mean(0), atol=1e-6)
        assert "mean of 12 heads" in mean.get_title()
    finally:
        plt.close("all")
    with pytest.raises(regard.RegardError, match="head 12 is out of range"):
        trace.attention[3].plot(head=12)
    assert figure is not None


def test_a_large_map_is_drawn_in_means(minilm) -> None:
    trace = minilm.trace("a river bank and a money bank " * 40)
    size = len(trace.tokens)
    assert size > MAX_NAMED_TOKENS
    axes = trace.attention[1].plot(head=3)
    try:
        drawn = torch.as_tensor(np.asarray(axes.get_images()[0].get_array()))
        cells = min(CELLS, size)
        assert drawn.shape == (cells, cells)
        expected = trace.attention[1].pooled(cells, cells)[3]
        torch.testing.assert_close(drawn.float(), expected.float(), atol=1e-6, rtol=0)
        assert f"{size} × {size}, a cell is the mean of its weights" in axes.get_title()
    finally:
        plt.close("all")


def test_the_scale_has_no_colour_that_no_number_can_have() -> None:
    for values, ends in ([[-2.0, 0.0]], (-2, 0)), ([[1.0, 0.0]], (0, 1)), ([[1.0, -2.0]], (-2, 2)):
        figure = Figure()
        heatmap(figure.add_subplot(), torch.tensor(values), diverging=True)
        image, bar = figure.axes
        assert bar.get_ylim() == ends
        assert image.images[0].get_clim() == (-max(map(abs, ends)), max(map(abs, ends)))
