"""Panels as pictures: drawn into files, with the numbers that they have."""

import io
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text
from rich.console import Console

from regard.display import terminal
from regard.display.canvas import APART, BAR, LESS, MORE, WEIGHTS, all_axes, write_figure
from regard.display.figure import ACROSS, LETTER, MAX_BARS, MIN_NAME_INCHES, TEXT, paint
from regard.display.panels import Bars, Column, Heat, Panel, Point, Scatter, Strip, Sums, Table
from regard.display.pen import text_width
from regard.errors import RegardError
from tests.display.samples import hard, plain


@pytest.mark.parametrize("panel", [*plain(), *hard()], ids=lambda panel: f"{type(panel).__name__} {panel.name}")
def test_every_panel_is_drawn(panel: Panel, tmp_path: Path) -> None:
    if isinstance(panel, Table) and not any(column.bar for column in panel.columns):
        with pytest.raises(RegardError, match="table without bars"):
            paint([panel], "title")
        return
    file = tmp_path / "a.svg"
    write_figure(paint([panel], "A title that\nis long " * 9), file)
    assert file.read_text(encoding="utf-8").startswith("<?xml")


def test_another_kind_of_panel_is_not_passed_over_in_silence() -> None:
    with pytest.raises(NotImplementedError, match="Panel"):
        paint([Panel(name="a", title="b")], "")


def grid(name: str) -> Heat:
    return Heat(name=name, title=name, rows=["layer 0"], columns=["head 0", "head 1"], values=[[0.25, None]],
                axes=("layer", "head"), unit="share")  # fmt: skip


def large(count: int) -> Heat:
    """A grid of whose cells (n, n) is n, and all others 0."""
    values = [[float(r) if r == c else 0.0 for c in range(count)] for r in range(count)]
    sums = Sums(rows=[float(n) for n in range(count)], columns=[float(n) for n in range(count)],
                all=count * (count - 1) / 2, across="a", down="d", name="all of it")  # fmt: skip
    names = [f"part {n}" for n in range(count)]
    return Heat(name="h", title="h", rows=names, columns=names, values=values, axes=("down", "across"), unit="adds",
                signed=True, sums=sums)  # fmt: skip


def test_a_heat_map_with_sums_has_all_its_parts_and_the_sum_is_told() -> None:
    axes = only(large(31))
    assert np.asarray(axes.images[0].get_array()).shape == (31, 31)
    assert [label.get_text() for label in axes.get_yticklabels()] == [f"part {n}" for n in range(31)]
    assert axes.get_xlabel() == "across\nall of it: adds +465.00"


def test_names_of_columns_stand_upright_where_they_have_room() -> None:
    long = replace(grid("a"), columns=["a long name", *"bcdefghijklmn"], values=[[0.5] * 14])
    assert [label.get_rotation() for label in only(grid("a")).get_xticklabels()] == [0, 0]
    assert [label.get_rotation() for label in only(long).get_xticklabels()] == [60] * 14


def test_names_of_a_large_matrix_have_room_and_it_is_no_larger_for_them() -> None:
    names, values = [str(n) for n in range(400)], [[0.0] * 400] * 400
    grid = Heat(name="h", title="h", rows=names, columns=names, values=values, axes=("a", "b"), unit="")
    figure = paint([grid], "")
    assert max(figure.get_size_inches()) <= 9
    (axes, _) = all_axes(figure.subfigs[0])
    assert len(axes.get_xticklabels()) <= 7 / (3 * LETTER)
    assert len(axes.get_yticklabels()) <= 5 / MIN_NAME_INCHES


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
    for whole, count in ((1275.0, MAX_BARS + 1), (None, MAX_BARS)):
        axes = only(Bars(name="b", title="b", unit="adds", parts=parts, whole=whole))
        widths = [bar.get_width() for bar in axes.patches]
        assert len(widths) == count
        assert (sum(widths) == 1275.0) == (whole is not None)
        assert axes.get_xlabel() == "adds" + f" (first {MAX_BARS} of 50)" * (whole is None)


@pytest.mark.parametrize(("unit", "last"), [("probability", 1.0), ("weight", 1.0), ("nats", 1.1)])
def test_an_axis_of_shares_ends_at_one(unit: str, last: float) -> None:
    axes = only(Bars(name="b", title="b", unit=unit, parts=[("a", 0.97), ("b", 0.02)], whole=None))
    ticks = [tick for tick in axes.get_xticks() if tick <= axes.get_xlim()[1]]
    assert max(ticks) == pytest.approx(1.0 if last == 1.0 else max(ticks))
    assert axes.get_xlim()[1] > 1  # the numbers beside the bars have room


def test_a_table_is_drawn_by_its_first_column_with_bars() -> None:
    columns = [Column("name"), Column("count", 0), Column("score", 2, bar=True)]
    axes = only(Table(name="t", title="t", columns=columns, rows=[["a", 3, -0.5], ["b", 4, None], ["c", 5, 0.75]]))
    assert [bar.get_width() for bar in axes.patches] == [-0.5, 0.75]
    assert axes.get_xlabel() == "score"


@pytest.mark.parametrize(("signed", "numbers", "colours"), [
    (False, [1.0, 2.0], [BAR, BAR]), (True, [1.0, 2.0], [MORE, MORE]), (False, [1.0, -2.0], [MORE, LESS]),
])  # fmt: skip
def test_bars_of_numbers_with_a_sign_are_red_above_0_and_blue_below(signed, numbers, colours) -> None:
    columns = [Column("name"), Column("score", 2, bar=True, signed=signed)]
    table = Table(name="t", title="t", columns=columns, rows=[[f"{n}", each] for n, each in enumerate(numbers)])
    assert [to_hex(bar.get_facecolor()) for bar in only(table).patches] == colours
    console = Console(file=io.StringIO(), color_system="standard", force_terminal=True)
    console.print(terminal.drawn(table, 80, 10, ""))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert ["\x1b[31m█" in text, any(f"\x1b[36m{bar}" in text for bar in "█▒")] == [
        MORE in colours,
        bool({BAR, LESS} & {*colours}),
    ]


def test_a_text_with_a_full_number_is_drawn_as_itself_each_token_on_its_colour() -> None:
    tokens, values = ["[CLS]", "a", "river", "bank"], [5.0, 0.25, None, 0.5]
    panel = Strip(name="t", title="t", tokens=tokens, values=values, unit="changes", full=0.5, special=[0])
    axes = only(panel)
    drawn = {text.get_text(): text.get_bbox_patch() for text in axes.texts}
    assert list(drawn) == [*tokens, "darkest: changes 0.50 or more (special tokens and sinks in grey)"]
    colours = [to_hex(drawn[each].get_facecolor()) for each in tokens]
    assert colours == [to_hex(each) for each in (APART(1.0), WEIGHTS(0.5), WEIGHTS(0.0), WEIGHTS(1.0))]
    long = only(replace(panel, tokens=["word"] * 100, values=[0.1] * 100, special=[]))
    assert max(text.get_position()[0] + text_width("word", TEXT) for text in long.texts) <= ACROSS + 3
    assert len({text.get_position()[1] for text in long.texts}) > 5


def grouped(name: str, group: str = "") -> Heat:
    return Heat(name=name, title=name, rows=["layer 0"], columns=["head 0", "head 1"], values=[[0.25, None]],
                axes=("layer", "head"), unit="share", group=group)  # fmt: skip


def titles(panels: list[Panel]) -> list[list[str]]:
    """The panels' titles, line by line of the picture."""
    figure = paint(panels, "all")
    return [[title for axes in all_axes(part) if (title := axes.get_title(loc="left"))] for part in figure.subfigs]


def test_heat_maps_of_a_group_stand_side_by_side_and_all_else_below() -> None:
    bars = Bars(name="bars", title="bars", unit="adds", parts=[("a", 1.0)])
    panels = [*(grouped(f"a{n}", "first") for n in range(4)), grouped("b", "second"), bars]
    assert titles(panels) == [["a0", "a1", "a2", "a3"], ["b"], ["bars"]]
    figure = paint(panels, "all")
    above = ["" if part._suptitle is None else part._suptitle.get_text() for part in figure.subfigs]  # type: ignore[attr-defined]
    assert above == ["all\nfirst", "second", ""]


def test_all_grids_of_a_group_are_equally_wide() -> None:
    figure = paint([replace(grouped(f"a{n}"), rows=["layer 0"] * 5, values=[[0.5, 0.25]] * 5) for n in range(5)], "all")
    figure.draw_without_rendering()
    widths = [axes.get_window_extent().width for axes in all_axes(figure) if axes.get_title(loc="left")]
    np.testing.assert_allclose(widths, widths[0], rtol=1e-6)
    tops = [axes.get_window_extent().y1 for axes in all_axes(figure) if axes.get_title(loc="left")]
    assert [len({round(top) for top in tops[n : n + 3]}) for n in (0, 3)] == [1, 1]


def written(figure: Figure) -> str:
    return "\n".join(text.get_text() for text in figure.findobj(Text)).replace("\n", " ")


def test_a_picture_has_each_panels_caption() -> None:
    one = replace(grouped("one"), caption="By a method.")
    for panels in ([one], [one, Bars(name="b", title="b", unit="u", parts=[("a", 1.0)], caption="From a text.")]):
        text = written(paint(panels, "all"))
        assert [each.caption in text for each in panels] == [True] * len(panels)


def test_clouds_have_their_names_beside_them_and_none_lies_on_another() -> None:
    places = {"sense 1": 0.0, "sense 2": 0.3, "a third one": 5.0}
    points = [Point(at + n % 3 * 0.2, n // 3 * 0.2, "doc", name) for name, at in places.items() for n in range(9)]
    cloud = Scatter(name="c", title="c", x="x", y="y", points=points)
    figure = paint([cloud], "all")
    figure.draw_without_rendering()
    (axes,) = all_axes(figure)
    boxes = {text.get_text(): Text.get_window_extent(text) for text in axes.texts}
    assert [*boxes] == [*places]
    assert axes.get_legend() is None
    assert not any(one.overlaps(other) for one, other in combinations(boxes.values(), 2))
    for name, at in places.items():
        x, y = axes.transData.transform((at + 0.2, 0.2))
        box = boxes[name]
        assert abs((box.x0 + box.x1) / 2 - x) < 130
        assert abs((box.y0 + box.y1) / 2 - y) < 130
