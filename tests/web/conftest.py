"""A real browser for the tests of the page: Debian's Chromium, driven by playwright's client."""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import regard
from tests.web.tables import read_number

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "src" / "regard" / "web" / "built" / "page.js"
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
INSIDE = {"Compare": ("Matrix", "text=two side by side"), "Movement": ("Numbers", "[data-paths][aria-expanded=false]")}
FULL = "[data-head] [style]"  # a cell of the first view, once weights are there
PICTURES = os.environ.get("REGARD_SCREENSHOTS")  # a folder: each test leaves there what it saw last


@dataclass
class Opened:
    """A page in the browser: tab drives it, errors are what its console complained of."""

    tab: Any
    file: Path
    errors: list[str] = field(default_factory=list)

    def choose(self, what: str, value: str) -> None:
        """Choose a text or head by the value of its option, a layer by its name."""
        by = {"label": value} if what == "layer" else {"value": value}
        self.tab.select_option(f"[data-choose={what}]", **by)

    def choose_head(self, layer: str, head: str) -> None:
        self.choose("layer", layer)
        self.choose("head", head)

    def open_view(self, name: str) -> None:
        """Open a view by its tab, as a hand would."""
        tab, inside = INSIDE.get(name, (name, None))
        self.tab.click(f"role=tab[name='{tab}']")
        if inside is not None:
            self.tab.click(inside)

    def open_grid(self, name: str, tab: str = "Heat maps") -> None:
        """Open one of several panels of a tab."""
        self.open_view(tab)
        self.tab.click(f"[data-grid='{name}']")

    def number(self, selector: str) -> float:
        """Read the number that an element shows, once it is there."""
        return read_number(self.tab.wait_for_selector(selector).inner_text())

    def violations(self) -> list[str]:
        """What axe-core finds wrong for people who cannot see, point or tell colours apart, light and dark."""
        found = []
        for scheme in ("light", "dark"):
            self.tab.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            self.tab.wait_for_timeout(100)
            for each in self.tab.evaluate("axe.run()")["violations"]:
                found += [f"{scheme}: {each['id']}: {node['html'][:200]}" for node in each["nodes"]]
        self.tab.emulate_media(color_scheme="light")
        return found

    def suits_everyone(self, width: int) -> None:
        """Check that axe-core finds nothing, and that nothing is wider than the window."""
        assert self.violations() == []
        assert self.tab.evaluate("document.documentElement.scrollWidth") <= width

    def suits_paper(self) -> None:
        """Print on a page as wide as A4: nothing is wider, and arcs are drawn."""
        self.tab.evaluate("dispatchEvent(new Event('beforeprint'))")
        self.tab.emulate_media(media="print")
        self.tab.set_viewport_size({"width": 718, "height": 1000})
        assert self.tab.evaluate("document.documentElement.scrollWidth") <= 718
        assert self.tab.is_visible(".arcs path >> nth=0")


@pytest.fixture
def first_view(page_of: Any) -> Callable[..., Opened]:
    """Open the first view of an answer, and wait for its weights; without motion unless it is wanted."""

    def show(answer: Any, motion: bool = False, width: int = 1300) -> Opened:
        page: Opened = page_of(answer, overview=True, width=width)
        page.tab.set_viewport_size({"width": width, "height": 850})
        page.tab.emulate_media(reduced_motion="no-preference" if motion else "reduce")
        page.tab.reload()
        page.tab.wait_for_selector(FULL)
        page.tab.wait_for_timeout(100)
        return page

    return show


@pytest.fixture
def page_of(chromium: Any, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., Opened]]:
    """Write the page of some traces and open it: page_of(traces, **arguments of regard.save_page).

    width: of the window. overview: stay at the first view of a short text or a followed word. A page whose console
    complained fails its test.
    """
    opened: list[Opened] = []

    def show(
        traces: Any, *, width: int = 1000, file: Path | None = None, overview: bool = False, **arguments: Any
    ) -> Opened:
        file = file or tmp_path / f"page{len(opened)}.html"
        if traces is not None:
            regard.save_page(traces, file, **arguments)
        context = chromium.new_context(viewport={"width": width, "height": 900}, offline=True)
        if AXE.exists():
            context.add_init_script(path=AXE)
        tab = context.new_page()
        page = Opened(tab, file)
        tab.on("console", lambda line: page.errors.append(line.text) if line.type in ("error", "warning") else None)
        tab.on("pageerror", lambda error: page.errors.append(str(error)))
        tab.goto(file.as_uri())
        opened.append(page)
        if not overview and tab.locator("[data-more]").count():  # the first view has tests of its own
            tab.click("[data-more]")
            if tab.locator("[role=tab][aria-selected=true]:text('Overview') ~ [role=tab]:text('Numbers')").count():
                page.open_view("Numbers")
        return page

    yield show
    for number, page in enumerate(opened):
        if PICTURES:
            name = re.sub(r"[^\w.\[\]-]+", "-", request.node.name)[:120]
            page.tab.screenshot(path=Path(PICTURES) / f"{name}-{number}.png", full_page=True)
        page.tab.context.close()
        assert page.errors == []
