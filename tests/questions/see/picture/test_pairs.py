"""The cells of both views and of every layer are the alignment's weights, with what they are said to be."""

import numpy as np
import pytest

from regard.display.elements.canvas import all_axes
from regard.explain.texts.summary import summarise
from regard.questions.see.answer import Seen
from regard.questions.see.picture.whole import paint_seen
from tests.support.pictures import axes_with, drawn_weights, framed

SOURCE, TARGET = "the man on the river bank", "un homme sur la rive"


@pytest.fixture(scope="module")
def pair(tiny_pair):
    return tiny_pair.trace(SOURCE, target=TARGET)


def test_a_row_that_writes_is_the_one_before(pair) -> None:
    summary = summarise([pair], "bank")
    (found,) = summary.target.alignments
    figure, _ = paint_seen(summary, [pair])
    weights = np.array(found.weights)
    for doing, layer, rows in (
        ("written", found.written_layer, slice(None, -1)),
        ("read", found.read_layer, slice(1, None)),
    ):
        (axes,) = axes_with(figure, f"where each target token looks as it is {doing} (layer {layer}, mean of heads)")
        given = weights[found.layers.index(layer)][rows]
        np.testing.assert_array_equal(drawn_weights(axes), given)
        names = [label.get_text() for label in axes.get_yticklabels()]
        assert names == [token.text for token in pair.decoder.tokens[1:]]
        bank = [token.text for token in pair.encoder.tokens].index("bank")
        assert framed(axes) == [(int(given[:, bank].argmax()), bank)]
        assert axes.get_ylabel() == f"target 1: token that is {doing}"


def test_every_layer_is_small_below(pair) -> None:
    summary = summarise([pair])
    (found,) = summary.target.alignments
    small = [axes for axes in all_axes(paint_seen(summary, [pair])[0]) if axes.get_title().startswith("layer ")]
    assert len(small) == len(found.layers) == 3
    for n, axes in enumerate(small):
        np.testing.assert_array_equal(drawn_weights(axes), np.array(found.weights[n]))
        roles = [role for role, layer in (("written", found.written_layer), ("read", found.read_layer)) if layer == n]
        assert axes.get_title() == f"layer {n}" + (f": {', '.join(roles)}" if roles else "")


def test_one_layer_and_head_that_were_asked_for(pair, tmp_path) -> None:
    summary = summarise([pair], layer=1, head=2)
    figure, _ = paint_seen(summary, [pair], layer=1, head=2)
    (axes,) = axes_with(figure, "as it is written (layer 1, head 2)")
    np.testing.assert_allclose(drawn_weights(axes), pair.decoder.cross[1][2][:-1].double().numpy(), rtol=1e-6)
    assert Seen(summary, 1, 2, traces=[pair]).draw(tmp_path / "a.svg") == []
