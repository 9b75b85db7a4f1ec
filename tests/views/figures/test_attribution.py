"""What made an outcome as a picture: bars that sum to it, heads in their cells."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.capture.score_path import SideParts, Writer
from regard.views.figures.attribution import MOST, draw_attribution, paint_attribution
from tests.explain.findings.test_attribution import BY_HEADS, BY_TOKENS, DIRECT


def test_bars_are_the_parts() -> None:
    (axes,) = paint_attribution(DIRECT).axes
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([2.0, -1.5, 1.0, 0.5, 0.01])
    assert axes.get_yticklabels()[0].get_text() == "layer 0, head 1 from “river” (0)"
    assert axes.get_title() == "logit of “x” at “run”: +2.01"
    (axes,) = paint_attribution(BY_TOKENS, "word").axes
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([3.0, -0.5])


def test_of_many_parts_those_that_matter_least_are_one_bar() -> None:
    torch.manual_seed(0)
    vectors = torch.randn(60, 1, dtype=torch.float64)
    writers = tuple(Writer("feed-forward", layer) for layer in range(60))
    found = replace(DIRECT, parts=SideParts(writers, vectors, vectors.sum(0), (2,)))
    (axes,) = paint_attribution(found).axes
    assert len(axes.patches) == MOST + 1
    assert sum(bar.get_width() for bar in axes.patches) == pytest.approx(float(vectors.sum()))
    assert axes.get_yticklabels()[-1].get_text() == "36 others together"


def test_heads_in_their_cells(tmp_path: Path) -> None:
    figure = paint_attribution(BY_HEADS)
    np.testing.assert_allclose(np.asarray(figure.axes[0].images[0].get_array()), [[0.1, 2.0], [-1.0, 0.0]])
    name = replace(BY_HEADS, outcome_name="logit of “Paris” less that of “London” at token 4")
    wide = paint_attribution(name)
    wide.draw_without_rendering()
    assert wide._suptitle.get_window_extent().width < wide.bbox.width  # type: ignore[attr-defined]
    assert draw_attribution(BY_HEADS, tmp_path / "a.png") == []
    assert (tmp_path / "a.png").stat().st_size > 5000
