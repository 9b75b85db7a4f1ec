"""What a terminal's views are made of; what rounds to zero has no sign, there or in a matrix or picture."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from drawings.numbers import show_numbers
from regard.display.heatmap import heatmap
from regard.display.terminal_parts import (
    ending_lines_in_terminal,
    resampled_for_terminal,
    terminal_bar,
    terminal_height_characters,
)
from regard.trace.status import Status, exactness
from tests.support.terminal import printed_parts

VALUES = st.floats(-0.1, 0.1) | st.floats(-1e-6, 1e-6) | st.floats(-100, 100)


def signs_fit(text: str, value: float) -> None:
    """Assert that a number has a minus exactly where it is negative and a digit that is not 0 is shown."""
    assert text.startswith("-") == (value < 0 and any(digit in text for digit in "123456789")), (text, value)


@given(st.lists(VALUES, min_size=1, max_size=5))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_nor_has_one_in_a_matrix_of_text(capsys: pytest.CaptureFixture[str], values: list[float]) -> None:
    show_numbers(torch.tensor([values], dtype=torch.float64), digits=2)
    for text, value in zip(capsys.readouterr().out.split()[1:], values, strict=True):
        signs_fit(text, value)


@given(st.lists(VALUES, min_size=1, max_size=5))
@settings(max_examples=20, deadline=None)
def test_nor_has_one_in_the_cells_of_a_picture(values: list[float]) -> None:
    axes = Figure().add_subplot()
    heatmap(axes, torch.tensor([values], dtype=torch.float64), diverging=True)
    for text, value in zip(axes.texts, values, strict=True):
        signs_fit(text.get_text().replace("−", "-"), value)


def test_bars_are_as_long_as_their_values() -> None:
    for value, full, room, bar in (
        (0.0, 1.0, 8, ""), (0.5, 1.0, 8, "████"), (1.0, 1.0, 8, "████████"), (2.0, 1.0, 8, "████████"),
        (1 / 16, 1.0, 8, "▌"), (1.0, 0.0, 8, ""), (float("nan"), 1.0, 8, ""), (1.0, 1.0, 0, ""),
    ):  # fmt: skip
        assert terminal_bar(value, full, False, room).plain == bar
    assert terminal_bar(-0.5, 1.0, True, 8).plain == "▒▒▒▒"


def test_heights_and_their_largest_parts() -> None:
    assert terminal_height_characters([0.0, 0.5, 1.0, 9.0, -1.0], 1.0) == " ▄██ "
    assert resampled_for_terminal([1.0, 5.0, 2.0, 3.0], 2) == [5.0, 3.0]
    assert resampled_for_terminal([1.0, 2.0], 9) == [1.0, 2.0]


def test_the_last_lines(bank) -> None:
    status: Status = bank[0].status
    out = printed_parts([ending_lines_in_terminal([status, status], "--full", 1.25, notes=["A note."])])
    assert f"Model: {status.model}, {status.kernels[0]}, 1.2 s" in out
    assert out.count("Note: A note.") == 1
    assert out.startswith(exactness([status]))
    assert out.rstrip().endswith("More: --full")
