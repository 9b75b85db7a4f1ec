"""Tell an answer: write the files that were asked for, and print it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from regard.cli import clock
from regard.cli.store_outputs import StoreOutputs

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from regard.display.answer import Answer

FILES = ("--json", "--csv", "--figure", "--html")
EVERY = 1_000_000  # parts or rows that are named where all are


def tell(
    found: "Answer",
    outputs: StoreOutputs,
    consoles: "tuple[Console, Console]",
    top: int | None,
    first: "Sequence[RenderableType]" = (),
) -> None:
    """Write the files of an answer, print it, and say which files were written.

    consoles: for what is shown, and for errors. top: how many parts or rows are named, None for all.
    first: what is said before all.
    """
    from regard.cli.console import finish
    from regard.views.terminal.layout import put
    from regard.views.terminal.one_screen import ending

    notes: list[str] = []

    def draw(file: Path) -> None:
        from regard.display.picture import draw  # matplotlib, for those who asked for a picture

        notes.extend(draw(found.chosen(), found.title(), file))

    outputs.write(found.rows, found.to_json, draw, found.page)
    console, errors = consoles
    statuses = [each for each in found.about.statuses if each.model]
    last = ending(statuses, more_of(found, top), clock.seconds(), found.exactness())
    put([*first, *found.shown(console.width, EVERY if top is None else top, "in --json"), last], console)
    finish(console, errors, outputs.files, notes)


def more_of(found: "Answer", top: int | None, without: Sequence[str] = ()) -> str:
    """Which options show more of an answer: --top where its screen names as many parts as that says.

    top: how many were named, None for all. without: the files that a verb cannot write.
    """
    screen = [panel for panel in found.panels() if panel.screen]
    ranked = ["--top K"] if top is not None and any(panel.ranked for panel in screen) else []
    return ", ".join([*ranked, *(f"{file} FILE" for file in FILES if file not in without)])
