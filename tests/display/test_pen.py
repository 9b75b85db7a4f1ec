"""A pen writes in points what fits, and cells are the numbers that were given."""

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from regard.display.canvas import Plot
from regard.display.pen import Pen, ribbon, text_width
from tests.support.pictures import drawn_cells, texts_of


@pytest.fixture
def figure():
    figure = Plot(figsize=(4, 2), dpi=144)
    FigureCanvasAgg(figure)
    return figure


def test_text_is_as_wide_as_it_is_measured_and_fits_its_room(figure) -> None:
    pen = Pen(figure, 288, 144)
    pen.text(10, 20, "a bank of the river", 12)
    pen.text(10, 60, "a title that is much too long for the room that it has", 20, bold=True, room=150)
    pen.runs(10, 100, [("two words ", "black", True, 1.0), ("(and an aside)", "grey", False, 0.6)], 12, 60)
    figure.draw_without_rendering()
    one, other, *words = (Text.get_window_extent(text).width / 2 for text in pen.axes.texts)
    assert one == pytest.approx(text_width("a bank of the river", 12), rel=0.05)
    assert other <= 150 * 1.03
    assert sum(words) <= 62
    assert texts_of(figure)[-5:] == ["two", "words", "(and", "an", "aside)"]
    assert text_width("a b ", 10) > text_width("a b", 10) > text_width("ab", 10)


def test_cells_are_the_numbers_and_what_is_apart_is_grey(figure) -> None:
    values = np.array([[0.1, 0.9], [0.5, 0.2], [0.0, 1.0]])
    axes = Pen(figure, 288, 144).cells(20, 20, 60, 60, values, "#0b6ca6", ["abc", "xy"], apart=[1], gid="w")
    ((own, cells),) = drawn_cells(figure, "w")
    np.testing.assert_array_equal(cells, values)
    assert own is axes
    coloured, grey = axes.collections
    assert np.ma.getmaskarray(coloured.get_array())[:, 1].all()
    assert np.ma.getmaskarray(grey.get_array())[:, 0].all()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b", "c"]


def test_an_arc_is_thin_where_it_begins_and_wide_where_it_ends() -> None:
    corners = ribbon(100, 20, 8, 50, -1, 1.0)
    assert corners[0] == (99.4, 0)
    assert {corners[3], corners[4]} == {(16, 0), (24, 0)}
    assert min(y for _, y in corners) < -50
