"""Every kind of panel in a terminal, and tables with as many columns as have room."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from regard.display.panels import Bars, Column, Heat, Panel, Table
from regard.display.terminal import MIN_COLUMN, drawn
from regard.display.terminal_parts import APART, SET_IN, columns, plain_lines_of_parts
from tests.display.samples import hard, plain


def lines(panel: Panel, width: int = 100, top: int = 10) -> list[str]:
    return plain_lines_of_parts([drawn(panel, width, top, "--json")], width)


@pytest.mark.parametrize("width", [40, 100])
@pytest.mark.parametrize("panel", [*plain(), *hard()], ids=lambda panel: f"{type(panel).__name__} {panel.name}")
def test_every_panel_is_drawn_in_few_columns(panel: Panel, width: int) -> None:
    text = lines(panel, width)
    assert all(cell_len(line) <= width for line in text)
    assert not any("\x1b" in line or "-0.00" in line or "−0.00 " in line or "nan" in line for line in text)


def test_another_kind_of_panel_is_not_passed_over_in_silence() -> None:
    with pytest.raises(NotImplementedError, match="Panel"):
        drawn(Panel(name="a", title="b"), 80, 10, "")


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
    assert "  A share. More of it." in text
    assert f"  Not shown: {31 - len(shown)} columns with smaller numbers (see --json)" in text


def test_columns_are_as_far_apart_as_their_room_is_reckoned_with() -> None:
    grid = columns("abc", "defgh")
    grid.add_row("xyz", "uvwxy")
    assert plain_lines_of_parts([grid], 80)[0] == f"abc{' ' * APART}defgh"
    (line,) = [each for each in lines(plain()[0]) if "what" in each]
    assert len(line) - len(line.lstrip()) == SET_IN


TOKENS = ("[CLS] 0", "we 1", "sat 2", "on 3", "the 4", "quiet 5", "money 6", "bank 7", ". 8", "[SEP] 9", "far 10")


def token_grid(names: tuple[str, ...], number: float = 0.25) -> Heat:
    """A grid of layers and tokens, every number as wide as the others."""
    rows = ["input", *(f"layer {n}" for n in range(3))]
    return Heat(name="h", title="h", rows=rows, columns=names, axes=("layer", "token"), unit="share",
                values=[[number + n / 100 for n in range(len(names))] for _ in rows])  # fmt: skip


@pytest.mark.parametrize("width", range(30, 121, 9))
def test_row_names_of_a_heat_map_are_never_folded_letter_by_letter(width: int) -> None:
    text = lines(token_grid(TOKENS), width)
    assert any(line.split()[:1] == ["layer"] for line in text)
    rows = [line.split()[0] for line in text if re.search(r"0\.\d\d", line)]
    assert rows == ["input", "0", "1", "2"]


def test_names_of_a_heat_maps_columns_fold_before_a_column_is_left_out() -> None:
    names, room = TOKENS[3:8], SET_IN + len("input") + 3 * (APART + 4) + 2 * (APART + 5)  # of "quiet" and "money"
    whole, folded, fewer = (lines(token_grid(names), width) for width in (room + 9, room, room - 1))
    assert "quiet 5" in " ".join(whole)
    assert "quiet" in " ".join(folded)
    assert "quiet 5" not in " ".join(folded)
    assert not any("left out" in line for line in [*whole, *folded])
    assert any("1 columns with smaller numbers" in line for line in fewer)


def test_a_heat_maps_column_takes_no_more_room_than_it_needs() -> None:
    grid = token_grid(("a", "b", "c", "d", "remarkable"))
    room = SET_IN + len("input") + 4 * (APART + 4) + APART + 10
    assert not any("left out" in line for line in lines(grid, room))


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
    assert left.endswith(f"Not shown: columns {names} (see --json)")


def pairs(count: int = 3) -> Table:
    """Pairs of parts, with numbers that matter most."""
    numbers = [20.52, 0.000000026, -0.000314][:count]
    rows = [["position embedding", "token embedding of the first", value, value / 2] for value in numbers]
    return Table(name="t", title="t", rows=rows, total=["all", "", sum(numbers), sum(numbers) / 2], columns=[
        Column("of bank"), Column("of river"), Column("difference", 4, bar=True, signed=True), Column("score", 4)
    ])  # fmt: skip


def test_signed_numbers_of_a_table_have_their_sign_and_the_digits_of_their_column() -> None:
    text = " ".join(lines(pairs()))
    for number in ("+20.5200", "0.0000", "−0.0003"):
        assert number in text
    assert "+10.26" not in text
    assert "10.2600" in text
    table = Table(name="t", title="t", columns=[Column("a", 2, signed=True)], rows=[[None], [0.0], [3]])
    assert [line.strip() for line in lines(table)[3:6]] == ["–", "0.00", "+3.00"]


@pytest.mark.parametrize("width", [48, 60, 70, 80])
def test_text_is_folded_before_a_column_of_numbers_is_left_out(width: int) -> None:
    text = lines(pairs(), width)
    shown = " ".join(text)
    for number in ("difference", "score", "+20.5200", "0.0000", "10.2600"):
        assert number in shown
    assert "column" not in shown
    assert all(cell_len(line) <= width for line in text)


def test_text_is_folded_to_a_few_cells_at_least() -> None:
    text = lines(pairs(), 40)
    assert " ".join(" ".join(text).split()).endswith("Not shown: column score (see --json)")
    assert "position" in " ".join(text)
    assert len("position") == MIN_COLUMN


def test_bars_give_way_to_columns_and_text_is_folded_for_them() -> None:
    assert any("█" in line for line in lines(pairs(), 100))
    assert any("█" in line for line in lines(pairs(), 95))
    assert not any("█" in line for line in lines(pairs(), 70))
