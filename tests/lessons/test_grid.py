"""A matrix as a grid: its numbers where there is room, and colours of both signs where they are asked for."""

import pytest
import torch
from matplotlib.figure import Figure

from drawings.grid import heatmap


@pytest.mark.parametrize(("size", "written"), [(3, 8), (13, 0)])
def test_numbers_where_there_is_room(size: int, written: int) -> None:
    matrix = torch.full((size, size), -0.25)
    matrix[0, 0] = 0.001  # next to nothing
    axes = Figure().add_subplot()
    names = [f"word {n}" for n in range(size)]
    heatmap(matrix, names, names, title="weights", diverging=True, labels=("query", "key"), axes=axes)
    assert [text.get_text() for text in axes.texts] == ["-0.25"] * written
    assert axes.images[0].get_clim() == (-0.25, 0.25)
    assert [label.get_text() for label in axes.get_yticklabels()] == names
    assert (axes.get_title(), axes.get_ylabel(), axes.get_xlabel()) == ("weights", "query", "key")
