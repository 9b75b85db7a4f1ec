"""Rows are as high as they say, and text stays text."""

from pathlib import Path

import pytest

from regard.display.canvas import Row, all_axes, stack_rows_in_figure, write_figure


def test_rows_have_the_height_that_they_ask_for(tmp_path: Path) -> None:
    rows = [Row(height, lambda figure, place: figure.add_subplot(place)) for height in (1.5, 4.5)]
    figure = stack_rows_in_figure(rows, 7.0)
    assert figure.get_size_inches().tolist() == [7, 6]
    assert write_figure(figure, tmp_path / "a.png") == []
    upper, lower = (axes.get_window_extent() for axes in all_axes(figure))
    assert lower.y1 < 4.5 * figure.dpi <= upper.y0 + 1
    assert upper.height < 1.5 * figure.dpi


def test_a_pdf_is_the_same_each_time(tmp_path: Path) -> None:
    for name in ("a.pdf", "b.PDF"):
        figure = stack_rows_in_figure([Row(2.0, lambda part, place: part.add_subplot(place).set_title("a bank"))], 5.0)
        assert write_figure(figure, tmp_path / name) == []
    assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "b.PDF").read_bytes()
    assert b"/MediaBox [ 0 0 360 144 ]" in (tmp_path / "a.pdf").read_bytes()


@pytest.mark.parametrize("text", ["$x_1$", r"\alpha & <b>", "a_b^c"])
def test_text_with_signs_of_mathematics_stays_text(text: str, tmp_path: Path) -> None:
    figure = stack_rows_in_figure([Row(2.0, lambda figure, place: figure.add_subplot(place).set_title(text))], 5.0)
    assert write_figure(figure, tmp_path / "a.svg") == []
    written = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") in written
