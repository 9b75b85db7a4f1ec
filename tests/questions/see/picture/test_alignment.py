"""The cells of both views and of every layer are the alignment's weights, with what they are said to be."""

import numpy as np
import pytest

from regard.explain.texts.summary import summarise
from regard.questions.see.answer import Seen
from regard.questions.see.picture.whole import NO_COLUMN, paint_seen
from tests.support.pictures import drawn_cells, framed, texts_of

SOURCE, TARGET = "the man on the river bank", "un homme sur la rive"


@pytest.fixture(scope="module")
def pair(tiny_pair):
    return tiny_pair.trace(SOURCE, target=TARGET)


def test_a_row_that_writes_is_the_one_before(pair) -> None:
    summary = summarise([pair], "bank")
    (found,) = summary.target.alignments
    figure, notes = paint_seen(summary, [pair], shape="column")
    assert notes == [NO_COLUMN]
    weights = np.array(found.weights)
    views = drawn_cells(figure, "large")
    for (axes, cells), layer, rows in zip(
        views, (found.written_layer, found.read_layer), (np.s_[:-1], np.s_[1:]), strict=True
    ):
        given = weights[found.layers.index(layer)][rows]
        np.testing.assert_allclose(cells, given)
        assert [label.get_text() for label in axes.get_yticklabels()] == [t.text for t in pair.decoder.tokens[1:]]
        bank = [token.text for token in pair.encoder.tokens].index("bank")
        assert framed(axes) == [(int(given[:, bank].argmax()), bank)]
    assert f"layer {found.written_layer}, mean of heads" in texts_of(figure)


def test_every_layer_is_small_below(pair) -> None:
    summary = summarise([pair])
    (found,) = summary.target.alignments
    figure, _ = paint_seen(summary, [pair])
    for n, layer in enumerate(found.layers):
        ((_, cells),) = drawn_cells(figure, f"layer {layer}")
        np.testing.assert_allclose(cells, np.array(found.weights[n]))
        roles = [role for role, own in (("written", found.written_layer), ("read", found.read_layer)) if own == layer]
        assert (f"{layer}: {' and '.join(roles)}" if roles else str(layer)) in texts_of(figure)


def test_one_layer_and_head_that_were_asked_for(pair, tmp_path) -> None:
    summary = summarise([pair], layer=1, head=2)
    figure, _ = paint_seen(summary, [pair], layer=1, head=2)
    (_, written), _ = drawn_cells(figure, "large")
    np.testing.assert_allclose(written, pair.decoder.cross[1][2][:-1].double().numpy(), rtol=1e-6)
    assert "layer 1, head 2" in texts_of(figure)
    assert Seen(summary, 1, 2, traces=[pair]).draw(tmp_path / "a.svg") == []
