"""Tell an answer: write the files that were asked for, and print it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from regard.cli import clock
from regard.cli.store_outputs import StoreOutputs

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from regard.display.answer import Answer

MORE = "--top K, --json FILE, --csv FILE, --figure FILE, --html FILE"


def tell(
    found: "Answer",
    outputs: StoreOutputs,
    consoles: "tuple[Console, Console]",
    top: int,
    first: "Sequence[RenderableType]" = (),
) -> None:
    """Write the files of an answer, print it, and say which files were written.

    consoles: for what is shown, and for errors. top: how many parts or rows are named. first: what is said before all.
    """
    from regard.cli.console import finish
    from regard.views.terminal.layout import put
    from regard.views.terminal.one_screen import ending

    notes: list[str] = []

    def draw(file: Path) -> None:
        from regard.display.figure import draw  # matplotlib, for those who asked for a picture

        notes.extend(draw(found.chosen(), found.title(), file))

    outputs.write(found.rows, found.to_json, draw, found.page)
    console, errors = consoles
    statuses = [each for each in found.about.statuses if each.model]
    last = ending(statuses, MORE, clock.seconds(), found.exactness())
    put([*first, *found.shown(console.width, top, "in --json"), last], console)
    finish(console, errors, outputs.files, notes)
