"""Tell an answer: write the files that were asked for, and print it."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.status import Status

from regard.checks import megabytes
from regard.cli import start
from regard.cli.outputs import FILES, Outputs
from regard.files import STANDARD_OUTPUT

if TYPE_CHECKING:
    from rich.console import RenderableType

    from regard.display.answer import Answer

MORE = ("json", "csv", "parquet", "figure", "html", "save")
NAMED = 3  # tables from which on --full only counts them
EVERY = 1_000_000  # parts or rows that are named where all are


def consoles(json_file: Path | None = None) -> tuple[Console, Console]:
    """(for what is shown, for progress and errors). With `--json -`, standard output is for JSON alone.

    If NO_COLOR is set, no escape codes are written (https://no-color.org).
    """
    options: dict[str, Any] = {"highlight": False}
    if os.environ.get("NO_COLOR"):
        options |= {"color_system": None, "force_terminal": False}
    return Console(quiet=json_file == STANDARD_OUTPUT, **options), Console(stderr=True, **options)


def waiting(outputs: Outputs, text: str) -> Status:
    """Show on standard error, while a model is loaded and asked, that it takes long."""
    return consoles(outputs.json)[1].status(text)


def say_written_files(out: Console, errors: Console, files: Sequence[Path | None], notes: Sequence[str] = ()) -> None:
    """Print notes on a plot and the names of written files."""
    console = errors if out.quiet else out
    for note in notes:
        console.print(f"Plot: {note}", style="dim", markup=False)
    for file in files:
        if file is not None and file != STANDARD_OUTPUT:
            size = (
                f" ({megabytes(file.stat().st_size)}). Open it in a browser." if file.suffix.lower() == ".html" else ""
            )
            console.print(f"Wrote {file}{size}", style="dim", markup=False)


def tell(
    found: "Answer",
    outputs: Outputs,
    top: int | None = None,
    first: "Sequence[RenderableType]" = (),
    *,
    everything: bool | None = None,
    traces: Any = None,
) -> None:
    """Write the files of an answer, print it, and say which files were written."""
    from regard.display.terminal_parts import ending_lines_in_terminal, print_terminal_parts

    left_out: list[str] = []
    if any(outputs.files):
        left_out = outputs.write(
            traces=traces, rows=found.rows, draw=found.draw, data=found.to_json,
            page=lambda html: found.page(html.choice()),
        )  # fmt: skip
    console, errors = consoles(outputs.json)
    statuses = [each for each in found.about.statuses if each.model]
    more = more_of(found, top, outputs.offered, everything)
    last = ending_lines_in_terminal(statuses, more, time.perf_counter() - start.began[0], found.exactness())
    parts = found.shown(console.width, EVERY if top is None else top, "--json", everything=bool(everything))
    print_terminal_parts([*first, *parts, last], console)
    if any(outputs.files):
        say_written_files(console, errors, outputs.files, left_out)


def more_of(found: "Answer", top: int | None, files: Sequence[str] = FILES[:-1], everything: bool | None = None) -> str:
    """Which options show more of an answer: --top where its screen names as many parts as that says, --full, files.

    top: how many were named, None for all. files: that the verb writes.
    """
    from regard.display.panels import Table

    panels = found.panels()
    ranked = ["--top K"] if top is not None and any(panel.ranked for panel in panels if panel.screen) else []
    rest = [panel.name for panel in panels if not panel.screen]
    offered = [f"--{file}" for file in MORE if file in files]
    details = any(column.detail for panel in panels if isinstance(panel, Table) for column in panel.columns)
    named = rest if len(rest) < NAMED else [f"{len(rest)} more tables"]
    named = [*named, *["all columns"] * (details and not rest)]
    every = [f"--full ({', '.join(named)})"] if everything is False and named else []
    written = [f"{' or '.join([', '.join(offered[:-1]), offered[-1]][-len(offered) :])} FILE"] if offered else []
    return ", ".join([*ranked, *every, *written])
