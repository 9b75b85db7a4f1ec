"""Every head's matrix stands where its layer and number say, with its own numbers."""

import numpy as np
import torch
from matplotlib.figure import Figure

from regard.views.figures.elements.heads_grid import paint_grid, stacked
from tests.support.pictures import drawn_weights, framed


def test_each_matrix_is_in_its_place(bank) -> None:
    trace, axes = bank[0], Figure().add_subplot()
    layers = stacked(trace)
    paint_grid(axes, layers, [n for n, token in enumerate(trace.tokens) if not token.special], (3, 7))
    size = len(trace.tokens)
    gap = round(0.12 * size)
    drawn = drawn_weights(axes)
    for n, weights in enumerate(trace.attention):
        for h in range(12):
            part = drawn[n * (size + gap) :, h * (size + gap) :][:size, :size]
            np.testing.assert_array_equal(part, weights[h].double().numpy())
    assert np.isnan(drawn).sum() == drawn.size - 6 * 12 * size * size
    assert framed(axes) == [(3 * (size + gap), 7 * (size + gap))]
    assert [text.get_text() for text in axes.get_yticklabels()] == list("012345")
    assert torch.tensor(axes.get_xticks()).diff().unique().tolist() == [size + gap]
