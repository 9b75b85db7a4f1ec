"""Find the built page: the program and style sheet that `make page` makes of web/, carried by every release."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.errors import RegardError
from regard.files import read_regular

BUILT = Path(__file__).parent / "built"
PARTS = ("page.js", "page.css")
WIDGET = ("widget.js", "widget.css")
LIVE = ("live.js", "live.css")  # what `regard serve` gives to a browser


@dataclass(frozen=True)
class Shell:
    """What every page has in common: the program that shows it, and its style sheet."""

    script: str
    style: str = ""


def built_shell() -> Shell:
    """Read the built page.

    Raises:
        RegardError: it is not built.
    """
    check_page_built()
    script, style = (read_regular(BUILT / name).decode() for name in PARTS)
    return Shell(script, style)


def built_widget() -> Shell:
    """Read the built widget, the same page as a notebook loads it.

    Raises:
        RegardError: it is not built.
    """
    check_page_built(WIDGET)
    script, style = (read_regular(BUILT / name).decode() for name in WIDGET)
    return Shell(script, style)


def built_live() -> Shell:
    """Read the built program of `regard serve`, the same page with texts typed into it.

    Raises:
        RegardError: it is not built.
    """
    check_page_built(LIVE)
    script, style = (read_regular(BUILT / name).decode() for name in LIVE)
    return Shell(script, style)


def check_page_built(parts: Sequence[str] = PARTS) -> None:
    """Raise RegardError where the page is not built."""
    missing = [name for name in parts if not (BUILT / name).is_file()]
    if missing:
        raise RegardError(
            f"the page is not built: run make page ({missing[0]} is not there; a release has it, in a checkout it "
            "is made once, with a Node of Python's package index)"
        )
