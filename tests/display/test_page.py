"""Panels as the page's data: plain JSON, nothing that is not finite."""

import json

import pytest

from regard.display.page import panel_data
from regard.display.panels import Panel
from tests.display.samples import hard, plain


@pytest.mark.parametrize("panel", [*plain(), *hard()], ids=lambda panel: f"{type(panel).__name__} {panel.name}")
def test_a_panel_is_plain_json(panel: Panel) -> None:
    data = panel_data(panel)
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert (data["name"], data["title"], data["note"]) == (panel.name, panel.title, panel.note)


def test_arcs_are_a_heat_map_of_the_same_numbers() -> None:
    data = panel_data(plain()[-1])
    assert data["kind"] == "heat"
    assert data["values"] == [[0.75], [0.25]]
    assert (data["rows"], data["columns"]) == (["a 0", "b 1"], ["c 0"])


def test_another_kind_of_panel_is_not_passed_over_in_silence() -> None:
    with pytest.raises(NotImplementedError, match="Panel"):
        panel_data(Panel(name="a", title="b"))
