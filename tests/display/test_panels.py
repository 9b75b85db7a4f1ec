"""The vocabulary of panels: every kind is drawn by every drawer, and has the fields that the page knows."""

import dataclasses
import re
from pathlib import Path

import pytest

from regard.display import panels
from regard.display.answer import panel_data
from tests.display.samples import plain

FORMAT = (Path(__file__).parents[2] / "web" / "src" / "data" / "format.ts").read_text(encoding="utf-8")


def test_the_samples_have_every_kind_of_panel() -> None:
    assert {type(panel) for panel in plain()} == set(panels.Panel.__subclasses__())


def fields_of(kind: str) -> set[str]:
    """The fields that format.ts gives a kind of panel, without those of all panels."""
    found = re.search(rf'kind: "{kind}";([^}}]*)', FORMAT)
    assert found is not None, kind
    body = re.sub(r"//[^\n]*", "", found[1])
    return set(re.findall(r"(\w+)\??:", body))


@pytest.mark.parametrize("panel", plain(), ids=lambda panel: panel.name)
def test_the_page_has_a_panels_fields_by_the_same_names(panel: panels.Panel) -> None:
    data = panel_data(panel)
    assert set(data) - {"kind", "name", "title", "note"} == fields_of(data["kind"])


@pytest.mark.parametrize(
    ("kind", "interface"),
    [(panels.Sums, "Sums"), (panels.Behind, "Behind"), (panels.Point, "Point"), (panels.Called, "Called"),
     (panels.Curve, "Series"), (panels.Column, "Column"), (panels.InContext, "InContext")],
)  # fmt: skip
def test_what_a_panel_is_made_of_has_the_pages_names_too(kind: type, interface: str) -> None:
    found = re.search(rf"interface {interface} {{(.*?)\n}}", FORMAT, re.DOTALL)
    assert found is not None
    body = re.sub(r"//[^\n]*", "", re.sub(r"\{[^}]*\}", "", found[1]))
    assert set(re.findall(r"(\w+)\??:", body)) == {each.name for each in dataclasses.fields(kind)}
