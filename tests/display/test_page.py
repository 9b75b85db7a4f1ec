"""Panels as the page's data: plain JSON, nothing that is not finite."""

import json
from dataclasses import replace

import pytest

from regard.display.page import MAX_PARTS, panel_data
from regard.display.panels import Bars, Panel
from tests.display.samples import hard, plain


@pytest.mark.parametrize("panel", [*plain(), *hard()], ids=lambda panel: f"{type(panel).__name__} {panel.name}")
def test_a_panel_is_plain_json(panel: Panel) -> None:
    data = panel_data(panel)
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert (data["name"], data["title"], data["note"]) == (panel.name, panel.title, panel.note)


def test_of_many_bars_the_others_are_counted_and_summed_up() -> None:
    parts = [(f"p{n}", float(2000 - n)) for n in range(1000)]
    panel = Bars(name="b", title="b", unit="adds", parts=parts, whole=sum(each for _, each in parts))
    data = panel_data(panel)
    assert data["parts"] == [list(part) for part in parts[:MAX_PARTS]]
    assert data["others"] == [1000 - MAX_PARTS, sum(each for _, each in parts[MAX_PARTS:])]
    assert panel_data(replace(panel, parts=parts[:MAX_PARTS]))["others"] is None


def test_a_tables_total_is_no_row() -> None:
    data = panel_data(plain()[0])
    assert len(data["rows"]) == 3
    assert data["total"] == ["all", 1.25]


def test_a_caption_is_told_where_title_and_note_do_not_say_it() -> None:
    panel = replace(plain()[1], caption="By a method.")
    assert panel_data(panel)["caption"] == "By a method."
    assert "caption" not in panel_data(replace(panel, title="Parts, by a method"))
    assert "caption" not in panel_data(replace(panel, note="By a method. Red adds."))
    assert "caption" not in panel_data(plain()[1])


def test_another_kind_of_panel_is_not_passed_over_in_silence() -> None:
    with pytest.raises(NotImplementedError, match="Panel"):
        panel_data(Panel(name="a", title="b"))
