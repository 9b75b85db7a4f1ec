"""A map's picture has its weights, and its tokens for names."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

import regard
from regard.display.attention_map import CELLS, NAMED


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
    assert size > NAMED
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
