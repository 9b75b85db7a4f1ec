"""The picture of a text read in windows shows the band that there is, and what its axes are."""

import numpy as np
import pytest

from regard.explain.matrix import matrix
from regard.explain.windowed_matrix import windowed
from regard.views.figures.matrix import paint_matrix

TEXT = "The man sat down on the bank of the river and counted the money that he had taken from the bank. " * 9


@pytest.fixture(scope="module")
def found(minilm):
    plan, windows = minilm.stream(TEXT, window=64, layers=[2])
    return windowed(plan, windows, 2, top=3, far=9)


def test_the_band_is_what_is_drawn(found) -> None:
    axes = paint_matrix(found).axes[0]
    (image,) = axes.images
    band, drawn = np.array(found.band.values, dtype=float), image.get_array()
    there = ~np.isnan(band) & (band > 0)
    assert (~np.ma.getmaskarray(drawn) == there).all()
    largest = band[there].max()
    np.testing.assert_allclose(np.asarray(drawn)[there], np.maximum(band[there], largest * 1e-5))
    assert image.get_extent() == [found.band.first - 0.5, found.band.first + found.band.count - 0.5, found.tokens, 0]
    assert found.tokens == len(band) < 256
    assert (there.sum(1) >= 62).all()  # of every query, the keys of its window


def test_its_axes_title_and_circles_say_what_they_are(found) -> None:
    figure = paint_matrix(found)
    axes = figure.axes[0]
    assert axes.get_xlabel().startswith("offset of the key from the query, in tokens")
    assert axes.get_ylabel() == "attending (query), in tokens of the text"
    title = figure.get_suptitle()
    assert f"Attention of {found.tokens} tokens read in {found.band.windows} windows of 64 tokens, stride 31" in title
    assert "layer 2, mean of 12 heads" in title
    assert "grey: no two tokens of one window" in title
    spots = [tuple(line.get_xydata()[0]) for line in axes.lines]
    assert spots == [(pair.key.token - pair.query.token, pair.query.token + 0.5) for pair in found.pairs]
    assert len(spots) == 3


def test_a_text_that_was_read_as_a_whole_has_its_matrix(minilm) -> None:
    whole = matrix(minilm.trace(TEXT, layers=[2]), 2)
    axes = paint_matrix(whole).axes[0]
    assert axes.get_xlabel() == "attended to (key), in tokens"
    assert axes.images[0].get_array().shape == (len(whole.picture), len(whole.picture))
