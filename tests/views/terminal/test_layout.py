"""Numbers in a terminal, in a matrix of text and in the cells of a picture: what rounds to zero has no sign."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drawings.numbers import show_numbers
from regard.views.figures.elements.heatmap import heatmap
from regard.views.terminal.layout import shown

VALUES = st.floats(-0.1, 0.1) | st.floats(-1e-6, 1e-6) | st.floats(-100, 100)


def signs_fit(text: str, value: float) -> None:
    """Assert that a number has a minus exactly where it is negative and a digit that is not 0 is shown."""
    assert text.startswith("-") == (value < 0 and any(digit in text for digit in "123456789")), (text, value)


@given(VALUES, st.sampled_from([".2f", ".3f", ".4f", ".3g", ".0%", "6.1f"]))
def test_a_number_that_rounds_to_zero_has_no_sign(value: float, form: str) -> None:
    signs_fit(shown(value, form).strip(), value)
    assert float(shown(value, ".2f")) == float(f"{value:.2f}")


def test_where_there_is_no_number_there_is_a_dash() -> None:
    assert [shown(None), shown(float("nan")), shown(-0.0)] == ["–", "–", "0.000"]


@given(st.lists(VALUES, min_size=1, max_size=5))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_nor_has_one_in_a_matrix_of_text(capsys: pytest.CaptureFixture[str], values: list[float]) -> None:
    show_numbers(torch.tensor([values], dtype=torch.float64), digits=2)
    for text, value in zip(capsys.readouterr().out.split()[1:], values, strict=True):
        signs_fit(text, value)


@given(st.lists(VALUES, min_size=1, max_size=5))
@settings(max_examples=20, deadline=None)
def test_nor_has_one_in_the_cells_of_a_picture(values: list[float]) -> None:
    axes = heatmap(torch.tensor([values], dtype=torch.float64), diverging=True).axes[0]
    for text, value in zip(axes.texts, values, strict=True):
        signs_fit(text.get_text(), value)
