"""Write every kind of panel as a page has it: its fields by their own names, as `web/src/data/format.ts` says."""

from dataclasses import asdict, replace
from functools import singledispatch
from typing import Any

from regard.display.panels import Bars, Curves, Heat, Panel, Scatter, Shares, Strip, Table, untold
from regard.display.written import shares_text
from regard.files import plain_json_values

Data = dict[str, Any]
# of a terminal and pictures: the page shows all panels
ELSEWHERE = (
    "screen", "brief", "picture", "group", "upwards", "others", "full", "marked",
    "label", "joined", "running", "written", "strong", "before",
)  # fmt: skip
MAX_PARTS = (
    300  # parts that a page has by themselves: each is a row, and a text has as many parts as heads times tokens
)


@singledispatch
def panel_data(panel: Panel) -> Data:
    """Write a panel as the page's data."""
    raise NotImplementedError(type(panel).__name__)


@panel_data.register
def _bars(panel: Bars) -> Data:
    """The first parts, and how many others there are and what they sum to."""
    rest = [number for _, number in panel.parts[MAX_PARTS:]]
    others = plain_json_values([len(rest), sum(rest)]) if rest else None
    return _panel_as_page_data(replace(panel, parts=panel.parts[:MAX_PARTS])) | {"others": others}


@panel_data.register
def _table(panel: Table) -> Data:
    """Named numbers are text, as much of them as there is."""
    rows = [[shares_text(cell) if isinstance(cell, Shares) else cell for cell in row] for row in panel.rows]
    return _panel_as_page_data(replace(panel, rows=rows))


@panel_data.register
def _strip(panel: Strip) -> Data:
    """With the number of the darkest colour where that is not the largest."""
    return _panel_as_page_data(panel) | {"largest": panel.full}


@panel_data.register
def _heat(panel: Heat) -> Data:
    """The picture that others are laid over has no heat itself."""
    return _panel_as_page_data(replace(panel, largest=0.0) if panel.under == panel.name else panel)


@panel_data.register(Scatter)
@panel_data.register(Curves)
def _panel_as_page_data(panel: Panel) -> Data:
    own = {
        name: value
        for name, value in asdict(panel).items()
        if name not in ELSEWHERE and (name not in ("tab", "unbounded") or value)
    }
    if not untold(panel, panel.title, panel.note):
        del own["caption"]
    return {"kind": type(panel).__name__.lower(), **plain_json_values(own)}
