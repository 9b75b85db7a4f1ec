"""Find the built page: the programs and style sheets that `make page` makes of web/, carried by every release.

A file carries the program that has its views, and not much more.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from regard.errors import RegardError
from regard.files import read_regular

if TYPE_CHECKING:
    from regard.web.page import Page

BUILT = Path(__file__).parent / "built"
BUNDLES = {  # what each program of a page in a file can show, the smallest first: web/src/bundles
    "panels": {"numbers"},
    "weights": {"numbers", "weights", "texts", "image"},
    "paths": {"paths", "weights", "texts"},
    "page": {"numbers", "paths", "weights", "texts", "image", "pair", "writing"},
}
ENDINGS = ("js", "css")


@dataclass(frozen=True)
class Shell:
    """The common parts of pages of a kind: the program and the style sheet."""

    script: str
    style: str = ""


def bundle_of(page: "Page") -> str:
    """Name the smallest bundle that shows all that a page has."""
    shown = {"paths" if panel["kind"] == "paths" else "numbers" for panel in page.panels}
    shown |= {"weights"} if page.calls or any(panel.get("over") for panel in page.panels) else set()  # with the slider
    shown |= {str(page.overview["kind"])} if page.overview else set()
    return next(name for name, has in BUNDLES.items() if shown <= has)


def built_shell(page: "Page") -> Shell:
    """Read what shows a page in a file. Raises RegardError if it isn't built."""
    return built_program(bundle_of(page))


def built_program(name: str) -> Shell:
    """Read a program: one of BUNDLES, "widget" for a notebook or "live" for `regard serve`. Raises if none is."""
    check_page_built((name,))
    script, style = (read_regular(BUILT / f"{name}.{ending}").decode() for ending in ENDINGS)
    return Shell(script, style)


def check_page_built(programs: Iterable[str] = BUNDLES) -> None:
    """Raise RegardError if one of some programs isn't built."""
    files = (f"{name}.{ending}" for name in programs for ending in ENDINGS)
    missing = next((name for name in files if not (BUILT / name).is_file()), None)
    if missing:
        raise RegardError(
            f"the page is not built: run make page ({missing} is not there; a release has it, in a checkout it "
            "is made once, with a Node of Python's package index)"
        )
