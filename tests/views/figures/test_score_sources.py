"""The split of a score as a picture: its cells sum to the difference, and nothing is left out."""

import numpy as np
import pytest
import torch

from regard.views.figures.score_sources import MOST, draw_score, paint_score
from tests.explain.findings.test_score_sources import made


def cells(found, by=None) -> np.ndarray:
    figure = paint_score(found, by)
    return np.asarray(figure.axes[0].images[0].get_array())


def test_its_cells_are_the_pairs_of_the_difference() -> None:
    found = made([[1, 0], [0, 1]], [[5, -1], [0, 2]], [[1, 0], [0, 1]])
    np.testing.assert_allclose(cells(found), [[4, 0], [-1, 1]])
    figure = paint_score(found)
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == [
        "token embedding",
        "layer 0, feed-forward",
    ]
    assert "score +6.00" in figure.get_suptitle()


def test_of_many_parts_those_that_matter_least_are_drawn_together() -> None:
    torch.manual_seed(0)
    query, key, others = (torch.randn(40, 7).tolist() for _ in range(3))
    found = made(query, key, others)
    drawn = cells(found)
    assert drawn.shape == (MOST, MOST)
    assert drawn.sum() == pytest.approx(found.score - found.mean)
    figure = paint_score(found)
    assert figure.axes[0].get_yticklabels()[-1].get_text() == "17 others together"


def test_the_file_is_written(tmp_path) -> None:
    found = made([[1, 0], [0, 1]], [[5, -1], [0, 2]], [[1, 0], [0, 1]])
    assert draw_score(found, tmp_path / "score.png") == []
    assert (tmp_path / "score.png").stat().st_size > 5000
