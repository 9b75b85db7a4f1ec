"""Panels in a terminal: in forty columns as in a hundred, with what is left out named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from regard.display.panels import Bars, Column, Heat, Panel, Table
from regard.display.terminal import drawn, number_text
from regard.views.terminal.layout import lines_of
from tests.display.samples import hard, plain


def lines(panel: Panel, width: int = 100, top: int = 10) -> list[str]:
    return lines_of([drawn(panel, width, top, "in --json")], width)


@pytest.mark.parametrize("width", [40, 100])
@pytest.mark.parametrize("panel", [*plain(), *hard()], ids=lambda panel: f"{type(panel).__name__} {panel.name}")
def test_every_panel_is_drawn_in_few_columns(panel: Panel, width: int) -> None:
    text = lines(panel, width)
    assert all(cell_len(line) <= width for line in text)
    assert not any("\x1b" in line or "-0.00" in line or "−0.00 " in line or "nan" in line for line in text)


def test_another_kind_of_panel_is_not_passed_over_in_silence() -> None:
    with pytest.raises(NotImplementedError, match="Panel"):
        drawn(Panel(name="a", title="b"), 80, 10, "")


def test_numbers_of_a_table_are_never_folded_and_columns_left_out_are_named() -> None:
    columns = [Column("head"), *(Column(f"score {n}", 3) for n in range(9))]
    table = Table(name="t", title="t", columns=columns, rows=[["layer 1, head 2", *(-123.456 - n for n in range(9))]])
    text = lines(table, 60)
    left = " ".join(" ".join(text).split())
    kept = [n for n in range(9) if any(f"score {n}" in line for line in text[:3])]
    assert kept == list(range(len(kept)))
    assert 0 < len(kept) < 9
    for n in range(9):
        assert any(f"−{123.456 + n:.3f}" in line for line in text) == (n in kept)
    names = ", ".join(f"score {n}" for n in range(len(kept), 9))
    assert left.endswith(f"columns {names}: left out here, in --json")


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=30), st.integers(1, 30))
def test_the_bars_that_are_shown_and_the_others_sum_to_the_whole(numbers: list[float], top: int) -> None:
    parts = [(f"part {n}", number) for n, number in enumerate(numbers)]
    text = lines(Bars(name="b", title="b", unit="adds", parts=parts, whole=sum(numbers)), top=top)
    assert any("sum" in line for line in text)
    assert sum("part " in line for line in text) == min(top, len(numbers)) + 1  # and the heading
    others = len(numbers) - top
    assert any("together" in line or "1 other" in line for line in text) == (others > 0)


def test_of_a_heat_map_the_columns_with_the_largest_numbers_are_kept() -> None:
    values = [[0.01 * n for n in range(31)], [-0.5 if n == 3 else 0.0 for n in range(31)]]
    grid = Heat(name="h", title="h", note="A share. More of it.", rows=["layer 0", "layer 1"], axes=("layer", "head"),
                columns=[f"head {n}" for n in range(31)], values=values, unit="share", signed=True)  # fmt: skip
    text = lines(grid, 60)
    shown = [int(name) for name in text[1].split()[1:]]
    least = min(max(abs(row[n]) for row in values) for n in shown)
    assert shown == sorted(shown)
    assert 3 in shown
    assert all(max(abs(row[n]) for row in values) <= least for n in range(31) if n not in shown)
    assert "  A share" in text
    assert f"  {31 - len(shown)} more with smaller numbers: left out here, in --json" in text


@given(st.one_of(st.none(), st.floats()), st.integers(0, 5))
def test_a_number_that_rounds_to_nothing_has_no_sign(value: float | None, digits: int) -> None:
    text = number_text(value, digits)
    if text != "–":
        assert float(text.replace("−", "-")) != 0 or not text.startswith("−")
