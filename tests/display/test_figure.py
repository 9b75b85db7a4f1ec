"""Panels as pictures: drawn into files, with the numbers that they have."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes

from regard.display.figure import MOST, draw, paint
from regard.display.panels import Bars, Column, Heat, Panel, Table
from regard.errors import RegardError
from regard.views.figures.elements.canvas import all_axes
from tests.display.samples import hard, plain


@pytest.mark.parametrize("panel", [*plain(), *hard()], ids=lambda panel: f"{type(panel).__name__} {panel.name}")
def test_every_panel_is_drawn(panel: Panel, tmp_path: Path) -> None:
    if isinstance(panel, Table) and not any(column.bar for column in panel.columns):
        with pytest.raises(RegardError, match="table without bars"):
            paint([panel], "title")
        return
    file = tmp_path / "a.svg"
    draw([panel], "A title that\nis long " * 9, file)
    assert file.read_text(encoding="utf-8").startswith("<?xml")


def test_another_kind_of_panel_is_not_passed_over_in_silence() -> None:
    with pytest.raises(NotImplementedError, match="Panel"):
        paint([Panel(name="a", title="b")], "")


def grid(name: str, group: str = "") -> Heat:
    return Heat(name=name, title=name, rows=["layer 0"], columns=["head 0", "head 1"], values=[[0.25, None]],
                axes=("layer", "head"), unit="share", group=group)  # fmt: skip


def titles(panels: list[Panel]) -> list[list[str]]:
    """The panels' titles, line by line of the picture."""
    figure = paint(panels, "all")
    return [[axes.get_title() for axes in all_axes(part) if axes.get_title()] for part in figure.subfigs]


def test_heat_maps_of_a_group_stand_side_by_side_and_all_else_below() -> None:
    bars = Bars(name="bars", title="bars", unit="adds", parts=[("a", 1.0)])
    panels = [*(grid(f"a{n}", "first") for n in range(4)), grid("b", "second"), bars]
    assert titles(panels) == [["a0", "a1", "a2"], ["a3"], ["b"], ["bars"]]
    figure = paint(panels, "all")
    above = ["" if part._suptitle is None else part._suptitle.get_text() for part in figure.subfigs]  # type: ignore[attr-defined]
    assert above == ["all\nfirst", "", "second", ""]


def only(panel: Panel) -> Axes:
    return all_axes(paint([panel], "").subfigs[0])[0]


def test_a_heat_map_has_its_numbers_and_hatches_where_there_is_none() -> None:
    axes = only(grid("a"))
    values = np.asarray(axes.images[0].get_array())
    np.testing.assert_array_equal(np.isnan(values), [[False, True]])
    assert values[0, 0] == 0.25
    assert [text.get_text() for text in axes.texts] == ["0.25"]
    assert axes.patch.get_hatch()


def test_bars_that_are_left_out_are_one_more_where_all_sum_to_something() -> None:
    parts = [(f"p{n}", float(50 - n)) for n in range(50)]
    for whole, count in ((1275.0, MOST + 1), (None, MOST)):
        axes = only(Bars(name="b", title="b", unit="adds", parts=parts, whole=whole))
        widths = [bar.get_width() for bar in axes.patches]
        assert len(widths) == count
        assert (sum(widths) == 1275.0) == (whole is not None)


def test_a_table_is_drawn_by_its_first_column_with_bars() -> None:
    columns = [Column("name"), Column("count", 0), Column("score", 2, bar=True)]
    axes = only(Table(name="t", title="t", columns=columns, rows=[["a", 3, -0.5], ["b", 4, None], ["c", 5, 0.75]]))
    assert [bar.get_width() for bar in axes.patches] == [-0.5, 0.75]
    assert axes.get_xlabel() == "score"
