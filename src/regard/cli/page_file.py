"""The page that a verb writes (--html): one offline file to hover over."""

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from regard.cli.options import whole_numbers
from regard.errors import RegardError
from regard.files import check_output_file

if TYPE_CHECKING:
    from regard.web.assemble import Choice
    from regard.web.page import Page


@dataclass(frozen=True)
class PageFile:
    """A file for a page (--html), and what of the traces goes into it (--html-with).

    numbers: how queries and keys are written. layers: whose attention it has, None for all. steps: whether values,
    hidden states and projections go with them.
    """

    file: Path | None = None
    numbers: Literal["int16", "float32"] = "int16"
    layers: Sequence[int] | None = None
    steps: bool = False

    @staticmethod
    def of(file: Path | None, given: Sequence[str]) -> "PageFile":
        """Read what --html-with was given, once or several times: "steps,float32,layers=0,3-5"."""
        if given and file is None:
            raise RegardError("--html-with needs --html: it chooses what goes into that file")
        parts = [part.strip() for each in given for part in re.split(r",(?!\s*\d)", each)]
        layers = None
        for part in parts:
            name, _, numbers = part.partition("=")
            try:
                if name == "layers":
                    layers = whole_numbers(numbers)
                elif part not in ("steps", "float32"):
                    raise RegardError(f"--html-with: given {part!r}, needs steps, float32 or layers=0,3-5")
            except typer.BadParameter as error:
                raise RegardError(f"--html-with layers: {error.message}") from error
        return PageFile(file, "float32" if "float32" in parts else "int16", layers, "steps" in parts)

    def check(self) -> None:
        """Refuse a page that cannot be written, before a model is loaded."""
        if self.file is not None:
            from regard.web.built_page import check_page_built

            check_output_file(self.file, (".html",), "--html")
            check_page_built()

    def choice(self) -> "Choice":
        """What of the traces goes into the page."""
        from regard.web.assemble import Choice

        return Choice(self.layers, numbers=self.numbers, steps=self.steps)

    def assemble(self, page: "Callable[[PageFile], Page] | None") -> "Page | None":
        """Let a function put the page together, where a file was asked for."""
        return None if self.file is None or page is None else page(self)

    def write(self, page: "Page | None") -> None:
        """Write a page that was put together, where there is one; before it what its optional parts take is said."""
        if self.file is not None and page is not None:
            if page.optional:
                print(page.optional, file=sys.stderr)
            from regard.web.save_page import write_page

            write_page(page, self.file)


NO_PAGE = PageFile()
