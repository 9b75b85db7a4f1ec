"""What is painted is what was given, where it was given."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from regard.display.elements.weight_cells import bare, frame, largest_own, paint_weights, weight_bar, write_weights
from regard.explain.weights.sinks import own_tokens
from regard.text.tokens import Token
from tests.support.pictures import drawn_weights

TOKENS = [Token(n, text, 0, 0, n, text == "[CLS]") for n, text in enumerate(["[CLS]", "a", "sink", "b"])]
VALUES = np.array([[0.7, 0.04, 0.06, 0.2], [0.5, 0.25, 0.1, 0.15], [np.nan, 0.0, 0.5, 0.5]])


def test_coloured_and_grey_keys_are_apart_and_all_there() -> None:
    axes = Figure().add_subplot()
    own = own_tokens(TOKENS, {2})
    assert own == [1, 3]
    assert largest_own(VALUES, own) == 0.5
    image = paint_weights(axes, VALUES, own, 0.5)
    np.testing.assert_array_equal(drawn_weights(axes), VALUES)
    coloured = np.ma.getmaskarray(image.get_array())
    assert (~coloured).any(0).tolist() == [False, True, False, True]
    assert image.norm(0.125) == pytest.approx(0.5)  # by the square root, to the largest that was given


def test_weights_of_a_tenth_and_more_are_written_into_their_cells() -> None:
    axes = Figure().add_subplot()
    write_weights(axes, np.nan_to_num(VALUES), [1, 3])
    told = {tuple(reversed(text.get_position())): text.get_text() for text in axes.texts}
    assert told == {(0, 0): ".70", (0, 3): ".20", (1, 0): ".50", (1, 1): ".25", (1, 2): ".10", (1, 3): ".15",
                    (2, 2): ".50", (2, 3): ".50"}  # fmt: skip
    axes = Figure().add_subplot()
    write_weights(axes, np.ones((1, 27)), range(27))
    assert not axes.texts  # no room


def test_the_bar_says_what_its_colours_and_greys_are() -> None:
    for tokens, sinks, expected in (
        (TOKENS, {2}, "; grey: special tokens and sinks"),
        (TOKENS, set(), "; grey: special tokens"),
        (TOKENS[1:], {0}, "; grey: sinks"),
        (TOKENS[1:], set(), ""),
    ):
        figure = Figure()
        axes = figure.add_subplot()
        weight_bar(figure, paint_weights(axes, VALUES, [1, 3], 0.85), axes, tokens, sinks)
        bar = figure.axes[1]
        assert bar.get_ylabel() == f"weight, square-root scale{expected}"
        assert [text.get_text() for text in bar.get_yticklabels()] == ["0", "0.05", "0.2", "0.4", "0.6", "0.8"]


def test_a_frame_is_around_its_cell() -> None:
    axes = Figure().add_subplot()
    frame(axes, 2, 3)
    (patch,) = axes.patches
    assert patch.get_xy() == (2.5, 1.5)
    bare(axes)
    assert not any(spine.get_visible() for spine in axes.spines.values())
