"""Where the command writes: what is shown to standard output, progress and errors to standard error.

With `--json -` standard output is for JSON alone: nothing is shown, and notes go to standard error. With NO_COLOR set
no escape codes are written at all, neither colours nor bold type nor those that redraw a line (https://no-color.org).
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from regard.checks import megabytes
from regard.files import STANDARD_OUTPUT


def consoles(json_file: Path | None = None) -> tuple[Console, Console]:
    """(for what is shown, for progress and errors)."""
    options: dict[str, Any] = {"highlight": False}
    if os.environ.get("NO_COLOR"):
        options |= {"color_system": None, "force_terminal": False}
    return Console(quiet=json_file == STANDARD_OUTPUT, **options), Console(stderr=True, **options)


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
