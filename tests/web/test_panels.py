import math
from typing import Any

from regard.explain.evolution import evolution
from regard.web.html_file import script_json
from regard.web.panels import (
    column,
    evolution_panels,
    heat,
    in_context,
    point,
    scatter,
    table,
)
from tests.support.own_models import opened


def test_numbers_that_are_none_are_left_out() -> None:
    assert table("t", "n", [column("a"), column("b", 2, bar=True)], [["x", math.nan], [None, 1.5]]) == {
        "kind": "table",
        "name": "t",
        "title": "t",
        "note": "n",
        "columns": [{"name": "a", "digits": None, "bar": False}, {"name": "b", "digits": 2, "bar": True}],
        "rows": [["x", None], [None, 1.5]],
    }
    assert heat("t", "", ["r"], ["c"], [[math.inf]])["values"] == [[None]]
    assert scatter("t", "", "x", "y", [point(1.0, 2.0, "a", "g", 0)])["points"] == [
        {"x": 1, "y": 2, "label": "a", "group": "g", "after": 0, "context": None}
    ]
    assert scatter("t", "", "x", "y", [], called=("a", "b", "c"), drawn="groups", equal=True) == {
        "kind": "scatter", "name": "t", "title": "t", "note": "", "x": "x", "y": "y", "points": [],
        "called": {"label": "a", "group": "b", "context": "c"}, "drawn": "groups", "equal": True,
    }  # fmt: skip
    assert in_context("a ", "b", " c") == {"left": "a ", "form": "b", "right": " c"}
    assert heat("t", "", ["r"], ["c"], [[0.5]], largest=2.0)["largest"] == 2.0


def test_how_attention_formed() -> None:
    model = opened("gpt")
    traces = [(step, model.trace("A man is fishing")) for step in (0, 10, 20)]
    found = evolution(traces, 1)
    panels = evolution_panels(found)
    assert [panel["kind"] for panel in panels] == ["heat", "heat", "heat", "table", "scatter"]
    assert panels[2]["signed"] is True
    points: Any = panels[4]["points"]
    assert [each["after"] for each in points[:4]] == [None, 0, 1, None]
    assert len(points) == 3 * len(found.embedded)
    assert [panel["kind"] for panel in evolution_panels(evolution(traces[:1], 1))][:1] == ["heat"]
    script_json({"panels": panels})
