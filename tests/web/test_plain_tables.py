"""Panels as plain tables: each number, and no text that could be an element."""

from dataclasses import replace

from regard.display.answer import panel_data
from regard.display.panels import Column, Heat, InContext, Panel, Point, Scatter, Strip, Sums, Table
from regard.web.html_file import readable
from regard.web.plain_tables import plain_tables
from tests.support.web_pages import Parsed


def read(panel: Panel | dict[str, object]) -> list[list[str]]:
    """The cells of the table that stands for a panel, row by row, the heads first."""
    data = panel_data(panel) if isinstance(panel, Panel) else panel
    parsed = Parsed("".join(plain_tables([data], readable)))
    rows: list[list[str]] = []
    for tag, _, text in parsed.elements:
        if tag == "tr":
            rows.append([])
        elif tag in ("th", "td"):
            rows[-1].append("".join(text))
        elif tag in ("bdi", "mark"):
            rows[-1][-1] += "".join(text)
    return rows


def test_every_kind_of_panel_has_its_numbers_in_a_table() -> None:
    names = [["\n", " ", ".\n\n", ""]]
    assert read(Table(name="t", title="t", columns=[Column("x")] * 4, rows=names))[1:] == [["↵", "␣", ".↵↵", ""]]
    cells = [["<b>a</b>", 1.25, None], [InContext("the ", "bank", " of"), float("nan"), 2.0]]
    columns = [Column("x"), Column("y", 1), Column("z", 0)]
    assert read(Table(name="t", title="t", columns=columns, rows=cells)) == [
        ["x", "y", "z"], ["<b>a</b>", "1.2", "–"], ["the bank", "–", "2"],
    ]  # fmt: skip
    grid = Heat(
        name="t", title="t", rows=["r"], columns=["a", "b"], values=[[0.5, None]], unit="share", axes=("row", "column")
    )
    assert read(grid) == [
        ["share", "a", "b"], ["r", "0.50", "–"],
    ]  # fmt: skip
    sums = Sums(rows=[0.5, 2.0], columns=[2.5], all=2.5, across="all across", down="all down", name="all")
    summed = replace(grid, rows=["r", "s"], columns=["a"], values=[[0.5], [2.0]], unit="", digits=1, sums=sums)
    assert read(summed) == [
        ["", "a", "all across"], ["r", "0.5", "0.5"], ["s", "2.0", "2.0"], ["all down", "2.5", "2.5"],
    ]  # fmt: skip
    points = [Point(0.5, -1.0, "d", "g", context=InContext("", "w", ""))]
    cloud = Scatter(name="t", title="t", x="across", y="up", points=points)
    assert read(cloud) == [["label", "group", "text", "across", "up"], ["d", "g", "w", "0.500", "−1.000"]]
    assert read(Strip(name="t", title="t", tokens=["a", "b"], values=[1.0, None], unit="nats")) == [
        ["token", "nats"],
        ["a", "1.00"],
        ["b", "–"],
    ]


def test_the_rows_of_all_come_last() -> None:
    columns = [Column("x"), Column("y", 1)]
    assert read(Table(name="t", title="t", columns=columns, rows=[["a", 1.0]], total=["all", 2.5])) == [
        ["x", "y"], ["a", "1.0"], ["all", "2.5"],
    ]  # fmt: skip
    bars = {"kind": "bars", "title": "t", "note": "", "part": "part", "unit": "adds", "digits": 1,
            "parts": [["a", 1.0]], "others": [1234, 0.5], "whole": 1.5}  # fmt: skip
    first = [["part", "adds"], ["a", "1.0"]]
    assert read(bars) == [*first, ["1,234 others together", "0.5"], ["sum", "1.5"]]
    assert read(bars | {"others": None}) == [*first, ["sum", "1.5"]]
    assert read(bars | {"whole": None}) == [*first, ["1,234 others, left out here", "–"]]


def test_a_caption_is_a_paragraph() -> None:
    panel = Table(name="t", title="t", note="n", caption="By a method.", columns=[Column("x")], rows=[["a"]])
    assert "<p>By a method.</p>\n<p>n</p>" in "".join(plain_tables([panel_data(panel)], readable))


def test_a_marked_word_stands_in_its_text_and_notes_are_paragraphs() -> None:
    cells = [[InContext("<left ", "form", " right>")]]
    panel = Table(name="<i>", title="<i>", note="a & b", columns=[Column("x")], rows=cells)
    html = "".join(plain_tables([panel_data(panel)], readable))
    assert "<bdi>&lt;left <mark>form</mark> right&gt;</bdi>" in html
    assert "<h2>&lt;i&gt;</h2>\n<p>a &amp; b</p>" in html


def test_paths_have_a_row_for_each_state() -> None:
    step = {"length": 2.0, "attention": 0.25, "cross": None, "rest": 0.75, "most": "“a” +0.10"}
    path = {"label": "1", "points": [[0.5, -1.0]], "before": [None, 0.5], "steps": [step], "refused": None}
    gone = {"label": "2", "points": None, "before": [None, 0.25], "steps": None, "refused": "why not"}
    neutral = {"sentences": 12, "mean": [0.5, None], "low": [0.25, None], "high": [0.75, None]}
    panel = {
        "kind": "paths", "title": "t", "note": "n", "sentences": ["One.", "Two."], "digits": 3, "paths": [path, gone],
        "states": [{"mark": "in", "name": "enters"}, {"mark": "★", "name": "leaves"}], "drawn": [1],
        "curves": [{"label": "river", "paths": [[0.125, 0.25], [None, -0.5]], "neutral": neutral}],
        "neutral": [0.0, 0.25],
        "marks": [{"label": "river", "point": [2.0, 3.0]}, {"label": "money", "point": None}],
    }  # fmt: skip
    assert read(panel) == [
        ["path", "state", "cosine to river", "x", "y", "cosine to the state before", "length of the step", "attention",
         "feed-forward", "largest shares through attention"],
        ["1", "enters", "0.125", "–", "–", "–", "–", "–", "–", "–"],
        ["1", "leaves", "0.250", "0.500", "−1.000", "0.500", "2.000", "0.250", "0.750", "“a” +0.10"],
        ["2", "enters", "–", "–", "–", "–", "–", "–", "–", "–"],
        ["2", "leaves", "−0.500", "–", "–", "0.250", "–", "–", "–", "–"],
        ["neutral sentences", "enters", "0.500 (0.250 to 0.750)", "–", "–", "–", "–", "–", "–", "–"],
        ["neutral sentences", "leaves", "–", "0.000", "0.250", "–", "–", "–", "–", "–"],
        ["◆ river", "the end", "–", "2.000", "3.000", "–", "–", "–", "–", "–"],
        ["◆ money", "the end", "–", "–", "–", "–", "–", "–", "–", "–"],
        ["2", "no shares: why not", "–", "–", "–", "–", "–", "–", "–", "–"],
    ]  # fmt: skip
    assert "<p>n</p>\n<p>One.</p>\n<p>Two.</p>" in "".join(plain_tables([panel], readable))
