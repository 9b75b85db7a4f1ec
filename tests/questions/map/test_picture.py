"""The picture of a long text: far weights over it, what it receives, how far heads look, and all of it."""

import numpy as np
import pytest

from regard.display.elements.canvas import all_axes
from regard.questions.map.picture import paint_map
from regard.questions.map.whole import matrix, windowed
from tests.support.pictures import axes_with

TEXT = "The man sat down on the bank of the river and counted the money that he had taken from the bank. " * 9


@pytest.fixture(scope="module")
def found(minilm):
    plan, windows = minilm.stream(TEXT, window=64, layers=[2])
    return windowed(plan, windows, 2, top=3, far=9)


@pytest.fixture(scope="module")
def whole(minilm):
    return matrix(minilm.trace(TEXT, layers=[2]), 2)


def test_the_band_is_what_is_drawn(found) -> None:
    (axes,) = axes_with(paint_map(found), "Whole matrix, by query and offset")
    (image,) = axes.images
    band, drawn = np.array(found.band.values, dtype=float), image.get_array()
    there = ~np.isnan(band) & (band > 0)
    assert (~np.ma.getmaskarray(drawn) == there).all()
    largest = band[there].max()
    np.testing.assert_allclose(np.asarray(drawn)[there], np.maximum(band[there], largest * 1e-5))
    assert image.get_extent() == [found.band.first - 0.5, found.band.first + found.band.count - 0.5, found.tokens, 0]
    assert found.tokens == len(band) < 256
    assert (there.sum(1) >= 62).all()  # of every query, the keys of its window
    assert axes.get_xlabel().startswith("key position − query position")
    assert axes.get_ylabel() == "query position"
    assert "grey: not in one window" in axes.get_title()
    spots = [tuple(line.get_xydata()[0]) for line in axes.lines]
    assert spots == [(pair.key.token - pair.query.token, pair.query.token + 0.5) for pair in found.pairs]


def test_its_title_says_how_the_text_was_read(found, whole) -> None:
    title = paint_map(found).subfigs[0].get_suptitle()
    assert f"Attention of {found.tokens} tokens read in {found.band.windows} windows of 64 tokens, stride 31" in title
    assert "layer 2, mean of 12 heads" in title
    assert (
        paint_map(whole).subfigs[0].get_suptitle() == f"Attention of {whole.tokens} tokens, layer 2, mean of 12 heads"
    )


def test_a_text_that_was_read_as_a_whole_has_its_matrix(whole) -> None:
    (axes,) = axes_with(paint_map(whole), "Whole matrix, circles: the links above")
    assert axes.get_xlabel() == "key position"
    np.testing.assert_allclose(axes.images[0].get_array(), np.maximum(whole.picture, np.max(whole.picture) * 1e-5))
    spots = [tuple(line.get_xydata()[0]) for line in axes.lines]
    assert spots == [(pair.key.token + 0.5, pair.query.token + 0.5) for pair in whole.pairs]


@pytest.mark.parametrize("which", ["found", "whole"])
def test_arcs_are_the_far_pairs_with_their_weights_and_heads(which: str, request) -> None:
    shown = request.getfixturevalue(which)
    (axes,) = axes_with(paint_map(shown), f"Strongest links over more than {shown.far} tokens")
    arcs = [line.get_gid() for line in axes.lines if line.get_gid()]
    assert sorted(arcs) == sorted(f"arc {pair.query.token} {pair.key.token}" for pair in shown.pairs)
    texts = [text.get_text() for text in axes.texts]
    assert {f"{n}: {p.weight:.2f}, head {p.head}" for n, p in enumerate(shown.pairs, 1)} <= set(texts)
    assert {f"{p.query.text} {p.query.token}" for p in shown.pairs} <= set(texts)


def test_what_is_received_and_how_far_heads_look(whole, minilm) -> None:
    figure = paint_map(whole)
    (received,) = [axes for axes in all_axes(figure) if axes.get_xlabel().startswith("position in the text")]
    (stairs,) = received.patches
    np.testing.assert_allclose(stairs.get_data().values, whole.received)
    named = {text.get_text() for text in received.texts}
    assert {f"{each.place.text} {each.received:.2f}" for each in whole.receivers} == named
    figure.draw_without_rendering()
    highest = received.transData.transform((0, max(whole.received)))[1]
    assert all(text.get_window_extent().y0 > highest for text in received.texts)  # a name stands on no bar
    (near,) = axes_with(figure, "Mean weight by distance")
    np.testing.assert_array_equal(near.images[0].get_array(), np.array(whole.near.values))
    one = matrix(minilm.trace(TEXT, layers=[2]), 2, 3)
    (near,) = axes_with(paint_map(one), "Mean weight by distance")
    np.testing.assert_array_equal(near.images[0].get_array(), np.array(one.near.values))


def test_nothing_far_is_said(minilm) -> None:
    short = matrix(minilm.trace("a man on a river bank"), 1)
    (axes,) = axes_with(paint_map(short), "Strongest links")
    assert [text.get_text() for text in axes.texts] == ["no link this far"]
