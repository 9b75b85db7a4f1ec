"""Pictures that the page saves of its views: they hold its numbers, and alone they look as the view does."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.web import saved
from tests.web.panels import four_panels, open_panels
from tests.web.saved import MARGIN, Saved, apart, bare, drawn_alone, save, stands_alone, view_alone

pytestmark = pytest.mark.browser
TEXTS = ["שלום עולם, 123 (טוב) Berlin!", "我們喜歡河。 日本語 and rivers", "🎉 naïve café <b>&amp; \x1b[31m 👩‍👩‍👧"]
WORDS = ["<b>bold</b>", "河岸", "\x1b[31mred", "שלום", "a bank whose name is far too long for any label of a grid"]
ALIKE = (5, 0.013)  # mean difference of 0 to 255, share of pixels that differ much: letters' edges, cells' edges
STRIPS = (12, 0.05)  # with strips of numbers thinner than a pixel


def check(page: Any, within: tuple[float, float] = ALIKE) -> Saved:
    """Save the view as SVG; check that it has all of its text and cells, and that alone it looks like the view."""
    picture = save(page)
    stands_alone(picture)
    seen, text = view_alone(page, picture)
    assert bare("".join(picture.texts)) == bare(text)
    grids = saved.cells_of(picture)
    canvases = saved.canvas_cells(page)
    assert len(grids) == len(canvases)
    for grid, canvas in zip(grids, canvases, strict=True):
        rows = sorted({y for _, y in grid})
        drawn = [[colour for (_, y), colour in sorted(grid.items()) if y == row] for row in rows]
        full = [[colour for colour in row if colour] for row in canvas]
        assert drawn == [row for row in full if row]
    shown = drawn_alone(page, picture)
    assert shown.shape == (picture.size[1], picture.size[0], 3)
    mean, much = apart(shown[MARGIN:, MARGIN:], seen)
    assert mean <= within[0]
    assert much <= within[1]
    return picture


def looked_at(page: Any, view: str) -> None:
    """Open a view at head 3 of layer 0."""
    page.open_view(view)
    if view != "Compare":
        page.choose_head("0", "3")
    page.tab.wait_for_timeout(400)
    page.tab.get_by_text("Still coarse").first.wait_for(state="hidden")
    if view == "Matrix":
        page.tab.wait_for_selector("[data-state=exact]")


@pytest.mark.parametrize("view", ["Numbers", "Matrix", "Compare", "Steps"])
def test_alone_it_looks_like_the_view_and_says_what_it_is(page_of: Any, bank: Any, view: str) -> None:
    page = page_of(bank[0], word="bank", steps=True)
    looked_at(page, view)
    picture = check(page, STRIPS if view == "Steps" else ALIKE)
    assert picture.texts[0] == bank[0].text
    line = {
        "Numbers": "Numbers · layer 0, head 3 · What “bank” looks at",
        "Matrix": "Matrix · layer 0, head 3",
        "Compare": "Matrix · text 1, layer 0, head 4 and text 1, layer 0, head 5",
        "Steps": "Steps · layer 0, head 3 · the path of “bank”",
    }[view]
    assert picture.texts[1] == line
    assert picture.root.findtext(f"{saved.SVG}title") == f"{bank[0].text} · {line}"
    assert picture.name == {
        "Matrix": "regard-matrix-layer-0-head-3.svg",
        "Compare": "regard-matrix-text-1-layer-0-head-4-and-text-1-layer-0-head-5.svg",
    }.get(view, f"regard-{view.lower()}-layer-0-head-3-bank.svg")
    assert len(picture.all("image")) == (1 if view == "Matrix" else 0)


def test_bars_and_shades_are_the_weights(page_of: Any, bank: Any) -> None:
    page = page_of(bank[0], word="bank")
    looked_at(page, "Numbers")
    picture = save(page)
    weights = bank[0].attention[0][3, 11]
    bars = [float(each.get("width")) for each in picture.all("rect") if each.get("fill") == "#0b6ca6"]
    largest = weights.sort(descending=True).values[: len(bars)]
    assert len(bars) == 8
    np.testing.assert_allclose(np.array(bars) / bars[0], (largest / largest[0]).numpy(), atol=2e-3)
    for n, token in enumerate(bank[0].tokens):
        shown = page.tab.eval_on_selector(f".tokens [data-unit='{n}']", "each => each.style.backgroundColor")
        colour = "#" + "".join(f"{int(part):02x}" for part in re.findall(r"\d+", shown))
        at = next(m for m, text in enumerate(picture.texts) if m > 1 + n and bare(text).lower() == token.text.lower())
        text = picture.all("text")[at]
        under = [
            each.get("fill")
            for each in picture.all("rect")[1:]
            if float(each.get("x")) <= float(text.get("x")) <= float(each.get("x")) + float(each.get("width"))
            and float(each.get("y")) <= float(text.get("y")) <= float(each.get("y")) + float(each.get("height"))
            and each.get("rx")
        ]
        assert colour in under


@pytest.mark.parametrize("text", range(3))
def test_every_script_stands_as_on_the_page(page_of: Any, minilm: Any, text: int) -> None:
    page = page_of(minilm.trace(TEXTS))
    page.choose("text", str(text))
    page.tab.click(".tokens [data-unit='1']")
    page.tab.wait_for_timeout(400)
    picture = check(page)
    turned = [each for each in picture.all("text") if each.get("direction") == "rtl"]
    assert "שלום עולם," in {"".join(each.itertext()) for each in turned}  # of the title
    page.open_view("Compare")
    page.tab.wait_for_timeout(400)
    check(page)


@pytest.mark.parametrize("width", [390, 1000])
def test_panels_are_drawn_in_vectors(page_of: Any, tmp_path: Path, width: int) -> None:
    page = open_panels(page_of, tmp_path / "panels.html", *four_panels(WORDS, WORDS[4]), width=width)
    for view in ("Grid", "Places", "Line"):
        page.open_view(view)
        picture = save(page)
        stands_alone(picture)
        seen, text = view_alone(page, picture)
        # labels are cut as on the page, those that lie on a white edge are drawn twice
        found, expected = bare("".join(picture.texts)), bare(text)
        assert found == expected or view in ("Grid", "Places")
        if view != "Grid" or width == 1000:  # all of what is scrolled there
            mean, much = apart(drawn_alone(page, picture)[MARGIN:, MARGIN:], seen)
            assert mean <= ALIKE[0]
            assert much <= ALIKE[1]
        assert picture.all("image") == []
        assert picture.name == f"regard-{view.lower()}.svg"
        if view == "Grid":
            (cells,) = saved.cells_of(picture)
            assert len(cells) == 10
            assert any(each.startswith("a bank") and each.endswith("…") for each in picture.texts)
        if view == "Places":
            marks = [each for each in picture.all("path") if "scale(" in (each.get("transform") or "")]
            assert len({each.get("transform") for each in marks}) == 20
            assert {f"group {n}" for n in range(3)} <= set(picture.texts)


@pytest.mark.parametrize("width", [390, 1000])
def test_it_is_for_everyone_and_for_a_phone(page_of: Any, bank: Any, width: int) -> None:
    page = page_of(bank[0], word="bank", width=width)
    save(page)
    page.tab.focus("[data-save=svg]")
    with page.tab.expect_download():
        page.tab.keyboard.press("Enter")
    page.suits_everyone(width)
