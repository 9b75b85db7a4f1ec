"""The picture of a long text: far weights over it, what it receives, how far heads look, and all of it."""

import numpy as np
import pytest
from matplotlib.patches import StepPatch

from regard.questions.map.picture import paint_map
from regard.questions.map.whole import matrix, windowed
from tests.support.pictures import artists, texts_of

TEXT = "The man sat down on the bank of the river and counted the money that he had taken from the bank. " * 9


@pytest.fixture(scope="module")
def found(minilm):
    plan, windows = minilm.stream(TEXT, window=64, layers=[2])
    return windowed(plan, windows, 2, top=3, far=9)


@pytest.fixture(scope="module")
def whole(minilm):
    return matrix(minilm.trace(TEXT, layers=[2]), 2)


def whole_of(figure):
    """The axes of the whole matrix, and the numbers of its cells, masked where there are none."""
    image = artists(figure)["whole"]
    return image.axes, image.get_array()


def test_the_band_is_what_is_drawn(found) -> None:
    figure = paint_map(found)
    axes, drawn = whole_of(figure)
    band = np.array(found.band.values, dtype=float)
    assert (np.ma.getmaskarray(drawn) == np.isnan(band)).all()
    there = band > 0
    np.testing.assert_allclose(drawn[there], np.maximum(band[there], band[there].max() * 1e-5))
    extent = [found.band.first - 0.5, found.band.first + found.band.count - 0.5, found.tokens, 0]
    assert axes.images[0].get_extent() == extent
    assert (there.sum(1) >= 62).all()  # of every query, the keys of its window
    assert axes.get_xlabel().startswith("key − query")
    assert any("grey: not in one window" in text for text in texts_of(figure))
    spots = [tuple(line.get_xydata()[0]) for line in axes.lines]
    assert spots == [(pair.key.token - pair.query.token, pair.query.token + 0.5) for pair in found.pairs]


def test_its_title_is_the_first_sentence_and_below_it_how_the_text_was_read(found, whole) -> None:
    for matrix_of_text in (found, whole):
        told = "".join(texts_of(paint_map(matrix_of_text))).replace(" ", "")
        assert matrix_of_text.findings()[0].replace(" ", "") in told
        assert matrix_of_text.title().replace(" ", "") in told


def test_a_text_that_was_read_as_a_whole_has_its_matrix(whole) -> None:
    axes, drawn = whole_of(paint_map(whole))
    assert axes.get_xlabel() == "key"
    np.testing.assert_allclose(drawn, np.maximum(whole.picture, np.max(whole.picture) * 1e-5))
    spots = [tuple(line.get_xydata()[0]) for line in axes.lines]
    assert spots == [(pair.key.token + 0.5, pair.query.token + 0.5) for pair in whole.pairs]


@pytest.mark.parametrize("which", ["found", "whole"])
def test_arcs_are_the_far_pairs_and_the_list_has_their_weights_and_heads(which: str, request) -> None:
    shown = request.getfixturevalue(which)
    figure = paint_map(shown)
    arcs = sorted(gid for gid in artists(figure) if gid.startswith("arc"))
    assert arcs == sorted(f"arc {pair.query.token} {pair.key.token}" for pair in shown.pairs)
    texts = set(texts_of(figure))
    assert {f"{p.query.text} {p.query.token} → {p.key.text} {p.key.token}" for p in shown.pairs} <= texts
    assert {f"{p.weight:.2f}" for p in shown.pairs} | {f"head {p.head}" for p in shown.pairs} <= texts


def test_what_is_received_and_how_far_heads_look(whole, minilm) -> None:
    figure = paint_map(whole)
    (stairs,) = figure.findobj(StepPatch)
    np.testing.assert_allclose(stairs.get_data().values, whole.received)
    (told,) = [text for text in texts_of(figure) if text.startswith("Bars:")]
    assert all(f"{each.place.text} {each.received:.2f}" in told for each in whole.receivers[:5])
    for shown in (whole, matrix(minilm.trace(TEXT, layers=[2]), 2, 3)):
        near = artists(paint_map(shown))["near"].get_array()
        np.testing.assert_array_equal(near, np.array(shown.near.values))


def test_nothing_far_is_one_sentence(minilm) -> None:
    figure = paint_map(matrix(minilm.trace("a man on a river bank"), 1, far=64))
    assert "There is no link this far." in texts_of(figure)
