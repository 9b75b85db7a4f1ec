"""The page that a verb writes (--html): one offline file to hover over."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from regard.errors import RegardError
from regard.files import check_target

if TYPE_CHECKING:
    from regard.web.assemble import Choice
    from regard.web.page import Page


@dataclass(frozen=True)
class PageFile:
    """A file for a page (--html), and what of the traces goes into it: some layers, numbers of 16 or of 32 bits.

    steps: whether values, hidden states and projections go with them.
    """

    file: Path | None = None
    numbers: str | None = None
    layers: Sequence[int] | None = None
    steps: bool = False

    def check(self) -> None:
        """Refuse options that need --html, and a page that cannot be written, before a model is loaded."""
        chosen = {
            "--html-numbers": self.numbers is not None,
            "--html-layers": self.layers is not None,
            "--html-steps": self.steps,
        }
        for option, given in chosen.items():
            if given and self.file is None:
                raise RegardError(f"{option} needs --html: it says what goes into that file")
        if self.numbers not in (None, "int16", "float32"):
            raise RegardError(f"--html-numbers: given {self.numbers!r}, needs int16 or float32")
        if self.file is not None:
            from regard.web.built_page import check_built

            check_target(self.file, (".html",), "--html")
            check_built()

    def choice(self, *, steps: Sequence[int] | bool = False) -> "Choice":
        """What of the traces goes into the page. steps: the layers that Steps is for, where all were not asked for."""
        from regard.web.assemble import Choice

        return Choice(
            self.layers, numbers="float32" if self.numbers == "float32" else "int16", steps=self.steps or steps
        )

    def assemble(self, page: "Callable[[PageFile], Page] | None") -> "Page | None":
        """Let a function put the page together, where a file was asked for."""
        return None if self.file is None or page is None else page(self)

    def write(self, page: "Page | None") -> None:
        """Write a page that was put together, where there is one; before it what its optional parts take is said."""
        if self.file is not None and page is not None:
            if page.optional:
                print(page.optional, file=sys.stderr)
            from regard.web.built_page import built_shell
            from regard.web.save_page import write_page

            write_page(page, self.file, built_shell())


NO_PAGE = PageFile()
