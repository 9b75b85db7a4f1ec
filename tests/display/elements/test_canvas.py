"""Rows are as high as they say, axes have the tokens' names, and text stays text."""

from pathlib import Path

import pytest

from regard.display.elements.canvas import (
    LABELS,
    Row,
    all_axes,
    mark_names,
    name_of_drawn_weights,
    stack_rows_in_figure,
    token_names_on_axis,
    write_figure,
)
from regard.text.tokens import Token


def tokens(count: int) -> list[Token]:
    return [Token(n, f"t{n}", n, n + 1, n, n == 0) for n in range(count)]


def test_rows_have_the_height_that_they_ask_for(tmp_path: Path) -> None:
    rows = [Row(height, lambda figure, place: figure.add_subplot(place)) for height in (1.5, 4.5)]
    figure = stack_rows_in_figure(rows, 7.0)
    assert figure.get_size_inches().tolist() == [7, 6]
    assert write_figure(figure, tmp_path / "a.png") == []
    upper, lower = (axes.get_window_extent() for axes in all_axes(figure))
    assert lower.y1 < 4.5 * figure.dpi <= upper.y0 + 1
    assert upper.height < 1.5 * figure.dpi


def test_many_tokens_are_named_in_steps_with_their_numbers() -> None:
    places, labels, _ = token_names_on_axis(tokens(LABELS))
    assert places == list(range(LABELS))
    assert labels[3] == "t3"
    places, labels, _ = token_names_on_axis(tokens(3 * LABELS))
    assert places == list(range(0, 3 * LABELS, 3))
    assert labels[2] == "6 t6"


def test_special_tokens_sinks_and_the_followed_word_are_marked() -> None:
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    axes.set_xticks(range(4), ["t0", "t1", "t2", "t3"])
    mark_names(axes, "x", tokens(4), followed={2}, sinks={1})
    assert [(label.get_text(), label.get_color(), label.get_fontweight()) for label in axes.get_xticklabels()] == [
        ("t0", "#999999", "normal"), ("t1 (sink)", "#999999", "normal"), ("t2", "#d55e00", "bold"),
        ("t3", "black", "normal"),
    ]  # fmt: skip
    assert (name_of_drawn_weights(2, None), name_of_drawn_weights(2, 5)) == (
        "layer 2, mean of heads",
        "layer 2, head 5",
    )


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
