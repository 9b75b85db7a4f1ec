"""What a notebook shows: tables as HTML tables, with the cells that the terminal's have, and nothing but text."""

import re
from html.parser import HTMLParser

import pytest
from rich.table import Table as Grid

from regard.display.notebook import parts_html
from regard.display.panels import Column, Panel, Table
from regard.display.terminal import drawn, tables_side_by_side
from regard.display.terminal_parts import plain_text_of_parts
from tests.display.samples import hard, plain

WIDE = 400  # columns: nothing is folded or left out


class Read(HTMLParser):
    """The cells of every table, row by row, and all that is said."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.said: list[str] = []
        self.tags: set[str] = set()
        self.inside = False  # of a table
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "table":
            self.inside = True
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("th", "td"):
            self.tables[-1][-1].append("")
        self.said.append(" " * (tag != "span"))

    def handle_endtag(self, tag: str) -> None:
        if tag == "table":
            self.inside = False

    def handle_data(self, data: str) -> None:
        self.said.append(data)
        if self.inside:
            self.tables[-1][-1][-1] += data


def letters(text: str) -> list[str]:
    """All that is written, in whatever order: a terminal folds long names; a table's rule is none."""
    return sorted("".join(text.replace("─", "").split()))


@pytest.mark.parametrize("panel", [*plain(), *hard()], ids=lambda panel: f"{type(panel).__name__} {panel.name}")
def test_a_notebook_says_all_that_a_terminal_says(panel: Panel) -> None:
    shown = drawn(panel, WIDE, 10, "elsewhere")
    page = Read(parts_html([shown]))
    assert page.tags <= {"div", "span", "table", "tr", "th", "td"}
    if not hasattr(shown, "_repr_html_"):  # a text's own tokens, shaded
        assert letters("".join(page.said)) == letters(plain_text_of_parts([shown], WIDE))


def test_cells_are_those_of_the_terminals_table() -> None:
    columns = [Column("what <b>"), Column("size", 2, bar=True), Column("left", 2, signed=True)]
    rows = [["a & b 7", 1.5, 0.25], ["[CLS]", -0.75, -0.5]]
    panel = Table(name="t", title="<T>", columns=columns, rows=rows, total=["all", 2.25, None], note="A note.")
    html = parts_html([drawn(panel, 80, 10, "")])
    (found,) = Read(html).tables
    assert found == [
        ["what <b>", "size", "", "left"], ["a & b 7", "1.50", "█" * 16, "+0.25"], ["[CLS]", "−0.75", "▒" * 8, "−0.50"],
        ["all", "2.25", "", "–"],
    ]  # fmt: skip
    assert html.count("text-align:right") == 2 * 4
    assert re.search(r"font-weight:bold[^>]*>all", html)
    assert re.search(r'font-weight: bold">&lt;T&gt;</span>', html)
    assert ["#d0453a" in html, "#2b7bba" in html] == [True, True]  # bars of both signs


def test_tables_side_by_side_are_two() -> None:
    own = [Table(name=name, title=name, columns=[Column("a")], rows=[[name]]) for name in ("one", "two")]
    shown = tables_side_by_side(own, 100, 10, "")
    assert isinstance(shown, Grid)
    assert Read(parts_html([shown])).tables == [[["a"], ["one"]], [["a"], ["two"]]]
