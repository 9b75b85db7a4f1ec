"""Panels: tables, heat maps, scatters and strips of numbers that a page brings, each a view of its own."""

import random
from pathlib import Path
from typing import Any

import pytest

from regard.display.panels import Column, Curve, Curves, Table
from tests.web.panels import four_panels, open_panels
from tests.web.tables import open_twin, read_number, rows_of

pytestmark = pytest.mark.browser
WORDS = ["<b>bold</b>", "河岸", "\x1b[31mred", "שלום", "bank"]


@pytest.fixture
def opened(page_of: Any, tmp_path: Path) -> Any:
    """A page without attention that has one panel of each kind. width: of the window."""

    def make(width: int = 1000) -> Any:
        return open_panels(page_of, tmp_path / "panels.html", *four_panels(WORDS, "three"), width=width)

    return make


def test_each_panel_has_a_tab_of_its_title(opened: Any) -> None:
    page = opened()
    assert page.tab.locator("[role=tab]").all_inner_texts() == ["Words", "Grid", "Places", "Line"]
    assert page.tab.inner_text("[role=tab][aria-selected=true]") == "Words"
    assert page.tab.locator(".controls").count() == 0  # there is no attention to choose
    page.tab.focus("role=tab[name=Words]")
    page.tab.keyboard.press("End")
    page.tab.wait_for_selector("[role=listbox][aria-label=Line]")


def test_a_table_is_sorted_by_the_column_that_one_chooses(opened: Any) -> None:
    page = opened()
    assert page.tab.locator("tbody tr").count() == 25
    rows = rows_of(page.tab, "Words")
    assert [row[2] for row in rows] == [str(n * n) for n in range(140)]
    page.tab.click("th >> button:has-text('score')")
    assert page.tab.get_attribute("th:has-text('score')", "aria-sort") == "descending"
    numbers = [row[1] for row in rows_of(page.tab, "Words")]
    assert numbers[-20:] == ["–"] * 20
    assert [read_number(each) for each in numbers[:-20]] == sorted(
        (read_number(each) for each in numbers[:-20]), reverse=True
    )
    page.tab.focus("th >> button:has-text('score')")
    page.tab.keyboard.press("Enter")
    numbers = [row[1] for row in rows_of(page.tab, "Words")]
    assert numbers[0] == "−4.90"
    assert numbers[-20:] == ["–"] * 20


def test_text_is_text_in_every_panel(opened: Any) -> None:
    page = opened()
    for name in ("Words", "Grid", "Places", "Line"):
        page.open_view(name)
        assert page.tab.locator("[role=tabpanel] b").count() == 0
    page.open_view("Line")
    assert page.tab.inner_text("[data-token='0']") == "<b>bold</b>"


def test_a_heat_map_names_its_cells_and_has_them_all_in_a_table(opened: Any) -> None:
    page = opened()
    page.open_view("Grid")
    canvas = page.tab.wait_for_selector("[role=tabpanel] canvas")
    assert canvas.evaluate("c => [c.width, c.height]") == [3, 5]
    alpha = canvas.evaluate("c => c.getContext('2d').getImageData(1, 0, 1, 1).data[3]")
    assert alpha == 0  # no number, no colour
    box = canvas.bounding_box()
    page.tab.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + box["height"] * 0.1)
    assert page.tab.inner_text("[data-says]") == "<b>bold</b> · three: step 0.00"
    page.tab.focus("[role=application]")
    for key in ("ArrowDown", "ArrowDown", "Home"):
        page.tab.keyboard.press(key)
    said = page.tab.inner_text("[data-says]")
    assert "[31mred · one: step −1.00" in said
    open_twin(page.tab)
    rows = rows_of(page.tab, "Grid")
    assert [row[1:] for row in rows[3:6]] == [["one", "−3.00"], ["two", "–"], ["three", "+1.50"]]


def test_a_scatter_has_arrows_marks_and_labels_apart(opened: Any) -> None:
    page = opened()
    page.open_view("Places")
    assert page.tab.locator("[data-point]").count() == 20
    assert page.tab.locator("[data-arrow]").count() == 15
    marks = page.tab.evaluate(
        "[...document.querySelectorAll('[data-point]')].slice(0, 3)"
        ".map(each => each.getAttribute('d') + each.getAttribute('fill'))"
    )
    assert len(set(marks)) == 3
    boxes = page.tab.evaluate(
        "[...document.querySelectorAll('[data-label]')].map(each => each.getBBox())"
        ".map(box => [box.x, box.y, box.width, box.height])"
    )
    assert len(boxes) == 3  # one of each group
    for n, (x, y, width, height) in enumerate(boxes):
        for left, top, wide, high in boxes[:n]:
            assert x >= left + wide - 2 or left >= x + width - 2 or y >= top + high - 4 or top >= y + height - 4
    page.tab.focus("[role=application]")
    for key in ("Home", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight"):
        page.tab.keyboard.press(key)
    assert page.tab.inner_text("[data-says]").strip() == "p5 (group 2): across 0.000, up 0.100, from “p0”"
    open_twin(page.tab)
    assert rows_of(page.tab, "Places")[7] == ["p7", "group 1", "2.000", "0.100", "p2"]


def test_a_strip_colours_tokens_by_their_numbers(opened: Any) -> None:
    page = opened()
    page.open_view("Line")
    page.tab.click("[data-token='4']")
    assert page.tab.inner_text("[role=tabpanel] .says") == "4 “bank”: nats 1.25"
    page.tab.keyboard.press("Home")
    assert page.tab.evaluate("document.activeElement.dataset.token") == "0"
    colours = page.tab.evaluate("[...document.querySelectorAll('[data-token]')].map(each => each.style.background)")
    assert colours[1] == ""  # no number
    assert colours[2] == "rgb(8, 48, 107)"  # the largest
    assert len({colours[n] for n in (0, 2, 3, 4)}) == 4
    open_twin(page.tab)
    assert [row[2] for row in rows_of(page.tab, "Line")] == ["0.50", "–", "2.00", "0.00", "1.25"]


def test_signed_bars_are_red_above_a_line_of_0_and_blue_below(page_of: Any, tmp_path: Path) -> None:
    """Random columns, of both signs or of one, said to be signed or not: red and blue are the sign's."""
    draw = random.Random(31)
    tables = []
    for n in range(8):
        low, high = draw.choice([(-1, 1), (-1, -0.01), (0.01, 1)])
        column = Column("score", 4, bar=True, signed=draw.random() < 0.5)
        rows: list[list[Any]] = [[f"row {m}", draw.uniform(low, high)] for m in range(7)]
        tables.append(Table(name=f"T{n}", title=f"T{n}", columns=[Column("word"), column], rows=rows))
    page = open_panels(page_of, tmp_path / "tables.html", *tables)
    for n, table in enumerate(tables):
        page.open_view(f"T{n}")
        values = [row[1] for row in table.rows]
        signed = table.columns[1].signed or min(values) < 0
        bars = page.tab.evaluate(
            """[...document.querySelectorAll('tbody .bar')].map(bar => {
              const [box, own] = [bar.getBoundingClientRect(), bar.firstElementChild.getBoundingClientRect()];
              const zero = getComputedStyle(bar, '::before').position === 'absolute';
              const [left, right] = [own.left, own.right].map(each => (each - box.left) / box.width);
              return [bar.firstElementChild.style.background, left, right, zero];
            })"""
        )
        low = min(0, *values)
        span = max(0, *values) - low
        for value, (colour, left, right, zero) in zip(values, bars, strict=True):
            assert zero == signed
            assert colour == f"var(--{'weight' if not signed else 'less' if value < 0 else 'more'})"
            start, end = -low / span, (value - low) / span
            assert (left, right) == pytest.approx((min(start, end), max(start, end)), abs=0.02)


@pytest.mark.parametrize("width", [390, 1000])
def test_curves_say_what_stands_at_a_place(page_of: Any, tmp_path: Path, width: int) -> None:
    steps = list(range(4, 101, 4))
    means = [None if step == 40 else 100 / step for step in steps]
    low, high = ([each and each + far for each in means] for far in (-0.5, 1))
    lines = [
        Curve("training", steps, means, since=[step - 3 for step in steps], low=low, high=high),
        Curve("held out", [30, 60, 90], [5.0, 2.5, 1.5]),
    ]
    curves = Curves(name="Loss", title="Loss", x="step", y="nats", series=lines, digits=2)
    opened = open_panels(page_of, tmp_path / "curves.html", curves, width=width)
    opened.tab.focus("[role=application]")
    opened.tab.keyboard.press("Home")
    assert opened.tab.inner_text("[data-says]") == "steps 1 to 4: training 25.00 (24.50 to 26.00)"
    opened.tab.keyboard.press("End")
    both = "steps 97 to 100: training 1.00 (0.50 to 2.00); step 90: held out 1.50"
    assert opened.tab.inner_text("[data-says]") == both
    box = opened.tab.locator("[role=application] svg").bounding_box()
    opened.tab.mouse.move(box["x"] + 60 + (box["width"] - 72) * 0.4, box["y"] + 100)
    assert opened.tab.inner_text("[data-says]") == "steps 37 to 40: training no number; step 30: held out 5.00"
    drawn = opened.tab.get_attribute("[data-line=training]", "d")
    assert drawn.count("M") == 2  # it breaks off where there is no number
    assert drawn.count("L") == len(steps) - 3
    open_twin(opened.tab)
    rows = rows_of(opened.tab, "Loss")
    assert rows[1] == ["training", "5", "8", "12.50", "12.00", "13.50"]
    assert rows[9][3:] == ["–", "–", "–"]
    assert rows[-1] == ["held out", "90", "90", "1.50", "1.50", "1.50"]
    opened.suits_everyone(width)


@pytest.mark.parametrize("width", [390, 1000])
def test_panels_are_for_everyone_and_for_a_phone(opened: Any, width: int) -> None:
    page = opened(width)
    for name in ("Words", "Grid", "Places", "Line"):
        page.open_view(name)
        if name != "Words":
            open_twin(page.tab)
        page.suits_everyone(width)


def test_a_word_is_found_in_every_panel(opened: Any) -> None:
    page = opened()
    for view, sought, count, says in [
        ("Words", "bank 139", "1 of 1", "bank 139"),
        ("Grid", "two", "1 of 1", "<b>bold</b> · two: no number"),
        ("Places", "p17", "1 of 1", "p17"),
        ("Line", "BANK", "1 of 1", "4 “bank”: nats 1.25"),
        ("Line", "zebra", "not here", "4 “bank”: nats 1.25"),
    ]:
        page.open_view(view)
        page.tab.keyboard.press("/")
        page.tab.keyboard.type(sought)
        assert page.tab.inner_text("[data-count]") == count
        reached = page.tab.locator("tr.found" if view == "Words" else "[role=tabpanel] .says").first
        assert says in reached.inner_text()
        assert 0 <= reached.bounding_box()["y"] < page.tab.viewport_size["height"]
    page.open_view("Places")
    page.tab.fill("[data-find]", "group 1")
    assert page.tab.inner_text("[data-count]") == "1 of 7"
    page.tab.focus("[data-find]")
    for _ in range(7):
        page.tab.keyboard.press("Enter")
    assert page.tab.inner_text("[data-count]") == "1 of 7"  # round
