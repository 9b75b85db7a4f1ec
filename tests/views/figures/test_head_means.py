"""The grids of heads over a corpus, held against their numbers."""

from pathlib import Path

import numpy as np
import pytest

from regard.views.figures.head_means import draw_head_means, heads_figure
from tests.views.terminal.test_head_means import made


@pytest.mark.filterwarnings("ignore:All-NaN")
def test_each_grid_shows_its_scores_on_the_common_scale(tmp_path: Path) -> None:
    found = made()
    found.scores["distance"][0, 0] = 30.0
    images = {image.get_gid(): image for axes in heads_figure({"": found}).axes for image in axes.images}
    assert set(images) == set(found.scores)
    for name, image in images.items():
        np.testing.assert_array_equal(np.ma.getdata(image.get_array()), found.scores[name])
        assert image.get_clim() == (0, 30.0 if name == "distance" else 0.9)
    draw_head_means(found, tmp_path / "a.svg")
    assert (tmp_path / "a.svg").stat().st_size > 10_000
