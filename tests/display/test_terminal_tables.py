"""Tables in a terminal: numbers are never folded, and what has no room is named."""

import pytest
from rich.cells import cell_len

from regard.display.panels import Column, Table
from regard.display.terminal_parts import plain_lines_of_parts
from regard.display.terminal_tables import MIN_COLUMN, draw_table


def lines(panel: Table, width: int = 100) -> list[str]:
    return plain_lines_of_parts([draw_table(panel, width, 10, "--json")], width)


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
