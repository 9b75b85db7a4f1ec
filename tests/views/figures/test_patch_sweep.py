"""A sweep of patches as a picture: every share in its cell, one scale, and what the axes say."""

from pathlib import Path

import numpy as np
import pytest

from regard.views.figures.patch_sweep import draw_patches, paint_patches
from tests.explain.findings.test_patch_sweep import SWEEP


def test_every_share_is_in_its_cell(tmp_path: Path) -> None:
    axes, _ = paint_patches(SWEEP).axes
    (image,) = axes.images
    assert np.asarray(image.get_array()) == pytest.approx(np.array(SWEEP.shares))
    assert image.get_clim() == (-1.0, 1.0)
    assert [each.get_text() for each in axes.get_yticklabels()] == ["input", "0"]
    assert [each.get_text() for each in axes.get_xticklabels()] == ["clean 0", "text 1"]
    assert draw_patches(SWEEP, tmp_path / "a.svg") == []
    assert (tmp_path / "a.svg").read_text().count("0.25") >= 1
