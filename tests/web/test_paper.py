"""The page on paper, in a system's own few colours, and with heat maps as large as their box, in a real browser."""

import re
from pathlib import Path
from typing import Any

import pytest

from regard.display.panels import Curve, Curves, Heat, Point, Scatter
from tests.web.panels import open_panels

pytestmark = pytest.mark.browser
PAPER = 718  # pixels across A4 with a browser's margins
HAND = "[role=tablist], .controls, .save, select, input, summary, button:not(table button)"
MARKS = "svg, canvas, .cells, .columns span, .numbers span, svg text, svg path, svg circle"


@pytest.fixture
def panels(page_of: Any, tmp_path: Path) -> Any:
    """A page without attention: a heat map of rows × columns, lines and points. width: of the window."""

    def make(rows: int = 4, columns: int = 8, width: int = 1000) -> Any:
        values: list[list[float | None]] = [
            [((r * columns + c) % 7 - 3) / 3.3 for c in range(columns)] for r in range(rows)
        ]
        names = [[f"{kind} {n}" for n in range(count)] for kind, count in (("row", rows), ("column", columns))]
        points = [Point(float(n % 5), n / 10, f"point number {n}", f"group {n % 3}") for n in range(20)]
        grid = Heat(
            name="Grid", title="Grid", rows=names[0], columns=names[1], values=values, signed=True, unit="step",
            axes=("row", "column"),
        )  # fmt: skip
        drawn = [
            grid,
            Scatter(name="Places", title="Places", x="across", y="up", points=points),
            Curves(name="Lines", title="Lines", x="step", y="loss", series=[Curve("one", [0, 9, 99], [3.0, 2.0, 1.0])]),
        ]
        return open_panels(page_of, tmp_path / "panels.html", *drawn, width=width)

    return make


def to_paper(page: Any) -> None:
    """Lay the page out for paper as printing does: of its own script, only what waits for printing runs."""
    page.tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.tab.context.new_cdp_session(page.tab).send("Emulation.setScriptExecutionDisabled", {"value": True})
    page.tab.emulate_media(media="print")
    page.tab.set_viewport_size({"width": PAPER, "height": 1047})


def outside(page: Any) -> list[str]:
    """The drawn things that the paper cuts off."""
    found: list[str] = page.tab.evaluate(
        f"""[...document.querySelectorAll({MARKS!r})].filter(e => {{
            const box = e.getBoundingClientRect();
            return box.width && (box.left < -4 || box.right > {PAPER} + 1);
        }}).map(e => e.outerHTML.slice(0, 120))"""
    )
    return found


@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize("view", ["Grid", "Places", "Lines"])
def test_what_a_panel_draws_is_whole_on_paper(panels: Any, view: str, width: int) -> None:
    page = panels(width=width, columns=20)
    page.open_view(view)
    page.tab.wait_for_timeout(200)
    to_paper(page)
    assert outside(page) == []
    assert page.tab.evaluate("document.documentElement.scrollWidth") <= PAPER
    assert page.tab.is_visible(f"h2:has-text('{view}')")


def test_the_map_is_whole_on_paper_and_keeps_its_shape(page_of: Any, bank: Any) -> None:
    page = page_of(bank[0], width=1400)
    page.tab.set_viewport_size({"width": 1400, "height": 1200})
    page.open_view("Matrix")
    page.tab.wait_for_selector("[data-state=exact]")
    before = page.tab.locator(".map canvas").bounding_box()
    to_paper(page)
    after = page.tab.locator(".map canvas").bounding_box()
    assert outside(page) == []
    assert before["width"] > PAPER >= after["width"]
    assert after["width"] / after["height"] == pytest.approx(before["width"] / before["height"], rel=0.01)


def test_paper_has_the_title_the_findings_and_one_view_without_what_is_for_hands(page_of: Any, bank: Any) -> None:
    page = page_of(bank, width=1000)
    page.choose_head("3", "5")
    assert not page.tab.is_visible("p.printed")
    for view in ("Numbers", "Matrix", "Compare"):
        page.open_view(view)
        page.tab.wait_for_timeout(300)
        page.tab.emulate_media(media="print")
        assert page.tab.locator(f":is({HAND}):not([data-head], [data-layer], [data-told]):visible").count() == 0
        assert page.tab.is_visible("h1")
        assert page.tab.is_visible(".findings h1")
        said = page.tab.get_attribute("p.printed", "data-said")
        assert page.tab.is_visible("p.printed")
        assert said.startswith("Numbers" if view == "Numbers" else "Matrix")
        if view != "Compare":
            assert "layer 3, head 5" in said  # where the controls said it
        colours = "getComputedStyle(document.querySelector('[role=tabpanel] *')).printColorAdjust"
        assert page.tab.evaluate(colours) == "exact"
        page.tab.emulate_media(media="screen")
    assert not page.tab.is_visible("p.printed")


def test_a_dark_page_is_printed_light_and_is_dark_again(page_of: Any, bank: Any) -> None:
    page = page_of(bank[0])
    page.tab.emulate_media(color_scheme="dark")
    page.tab.wait_for_selector(".regard.dark")
    page.open_view("Matrix")
    page.tab.wait_for_selector("[data-state=exact]")
    page.tab.evaluate(  # after all that waits for printing
        """addEventListener('beforeprint', () => {
            const canvas = document.querySelector('.map canvas');
            const [r] = canvas.getContext('2d').getImageData(2, 2, 1, 1).data;
            window.printed = [document.querySelectorAll('.regard.dark').length, r, canvas.width / canvas.clientWidth];
        })"""
    )
    document = page.tab.pdf()
    dark, red, fine = page.tab.evaluate("window.printed")
    assert (dark, red) == (0, 251)  # the ground of a light page
    assert fine >= 2.9  # dots for each pixel of the screen
    assert 1 <= len(re.findall(rb"/Type /Page\b", document)) <= 2
    page.tab.wait_for_selector(".regard.dark")


FINGERS = {"width": 390, "height": 844}


def test_a_finger_scrolls_the_page_over_a_whole_map_and_moves_one_that_is_zoomed_in(
    page_of: Any, bank: Any, chromium: Any
) -> None:
    file = page_of(bank[0]).file
    context = chromium.new_context(viewport=FINGERS, has_touch=True)
    try:
        tab = context.new_page()
        tab.goto(file.as_uri())
        tab.click("role=tab[name=Matrix]")
        tab.wait_for_selector("[data-state=exact]")
        canvas = tab.locator(".map canvas")
        canvas.scroll_into_view_if_needed()
        session = context.new_cdp_session(tab)

        def touch(*ways: tuple[float, float, float, float]) -> float:
            """Move fingers, each by its way from a place in the middle of the map; how far the page went."""
            tab.evaluate("document.querySelector('.map canvas').scrollIntoView({ block: 'center' })")
            box = canvas.bounding_box()
            x, y = box["x"] + 0.6 * box["width"], box["y"] + 0.6 * box["height"]
            before = tab.evaluate("scrollY")
            for step in range(11):
                points = [
                    {"x": x + a + step / 10 * right, "y": y + b + step / 10 * down, "id": n}
                    for n, (a, b, right, down) in enumerate(ways)
                ]
                kind = "touchMove" if step else "touchStart"
                session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
                tab.wait_for_timeout(20)
            session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
            tab.wait_for_timeout(700)  # what is in sight is kept at rest
            return float(tab.evaluate("scrollY") - before)

        def sight() -> list[float]:
            return [float(n) for n in tab.get_attribute(".map", "data-sight").split()]

        drag = (0, 0, 0, -100)
        assert touch(drag) > 50
        whole = sight()
        assert touch((-10, 0, -60, 0), (10, 0, 60, 0)) == 0  # two fingers apart: the map is zoomed, not the page
        near = sight()
        assert near[2] < 0.5 * whole[2]
        assert tab.evaluate("visualViewport.scale") == 1
        assert touch(drag) == 0
        assert sight()[0] > near[0]
        touch((-90, 0, 85, 0), (90, 0, -85, 0))
        assert sight() == pytest.approx(whole)
        assert touch(drag) > 50
    finally:
        context.close()
