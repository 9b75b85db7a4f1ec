"""Pages of panels alone, without attention: those of the tests of panels, of saved pictures and of paper."""

from pathlib import Path
from typing import Any

from regard.display.answer import panel_data
from regard.display.panels import Column, Heat, Panel, Point, Scatter, Strip, Table
from regard.web.html_file import write_page
from regard.web.page import Page

GRID = [[-5.0, None, 0.0], [-3.0, None, 1.5], [-1.0, None, 2.0], [1.0, None, 2.5], [3.0, None, 0.25]]


def open_panels(page_of: Any, file: Path, *panels: Panel, width: int = 1000) -> Any:
    page = Page("Panels", findings=["A sentence."])
    page.panels = [panel_data(panel) for panel in panels]
    page.opening["view"] = "panel 0"
    write_page(page, file)
    return page_of(None, file=file, width=width)


def four_panels(words: list[str], last: str) -> list[Panel]:
    """One panel of each kind that is about words. last: name of the grid's last column."""
    columns = [Column("word"), Column("score", 2, bar=True), Column("count", 0)]
    points = [Point(float(n % 5), n // 5 / 10, f"p{n}", f"group {n % 3}", n - 5 if n > 4 else None) for n in range(20)]
    rows = [[f"{words[n % 5]} {n}", (n - 50) / 10 if n % 7 else None, n * n] for n in range(140)]
    grid = Heat(
        name="Grid", title="Grid", rows=words, columns=["one", "two", last], values=GRID, signed=True,
        axes=("word", "number"), unit="step",
    )  # fmt: skip
    return [
        Table(name="Words", title="Words", note="Of no model.", columns=columns, rows=rows),
        grid,
        Scatter(name="Places", title="Places", x="across", y="up", points=points),
        Strip(name="Line", title="Line", tokens=words, values=[0.5, None, 2.0, 0.0, 1.25], unit="nats"),
    ]
