"""Several panels in one picture: grids of a group side by side, captions and titles above."""

from dataclasses import replace
from itertools import combinations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.text import Text

from regard.display.elements.canvas import all_axes
from regard.display.panels import Bars, Heat, Panel, Point, Scatter
from regard.display.picture import paint


def grid(name: str, group: str = "") -> Heat:
    return Heat(name=name, title=name, rows=["layer 0"], columns=["head 0", "head 1"], values=[[0.25, None]],
                axes=("layer", "head"), unit="share", group=group)  # fmt: skip


def titles(panels: list[Panel]) -> list[list[str]]:
    """The panels' titles, line by line of the picture."""
    figure = paint(panels, "all")
    return [[title for axes in all_axes(part) if (title := axes.get_title(loc="left"))] for part in figure.subfigs]


def test_heat_maps_of_a_group_stand_side_by_side_and_all_else_below() -> None:
    bars = Bars(name="bars", title="bars", unit="adds", parts=[("a", 1.0)])
    panels = [*(grid(f"a{n}", "first") for n in range(4)), grid("b", "second"), bars]
    assert titles(panels) == [["a0", "a1", "a2", "a3"], ["b"], ["bars"]]
    figure = paint(panels, "all")
    above = ["" if part._suptitle is None else part._suptitle.get_text() for part in figure.subfigs]  # type: ignore[attr-defined]
    assert above == ["all\nfirst", "second", ""]


def test_all_grids_of_a_group_are_equally_wide() -> None:
    figure = paint([replace(grid(f"a{n}"), rows=["layer 0"] * 5, values=[[0.5, 0.25]] * 5) for n in range(5)], "all")
    figure.draw_without_rendering()
    widths = [axes.get_window_extent().width for axes in all_axes(figure) if axes.get_title(loc="left")]
    np.testing.assert_allclose(widths, widths[0], rtol=1e-6)
    tops = [axes.get_window_extent().y1 for axes in all_axes(figure) if axes.get_title(loc="left")]
    assert [len({round(top) for top in tops[n : n + 3]}) for n in (0, 3)] == [1, 1]


def written(figure: Figure) -> str:
    return "\n".join(text.get_text() for text in figure.findobj(Text)).replace("\n", " ")


def test_a_picture_has_each_panels_caption() -> None:
    one = replace(grid("one"), caption="By a method.")
    for panels in ([one], [one, Bars(name="b", title="b", unit="u", parts=[("a", 1.0)], caption="From a text.")]):
        text = written(paint(panels, "all"))
        assert [each.caption in text for each in panels] == [True] * len(panels)


def test_clouds_have_their_names_beside_them_and_none_lies_on_another() -> None:
    places = {"sense 1": 0.0, "sense 2": 0.3, "a third one": 5.0}
    points = [Point(at + n % 3 * 0.2, n // 3 * 0.2, "doc", name) for name, at in places.items() for n in range(9)]
    cloud = Scatter(name="c", title="c", x="x", y="y", points=points, drawn="groups", equal=True)
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
