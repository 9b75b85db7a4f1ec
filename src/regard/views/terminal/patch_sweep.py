"""A sweep of patches in a terminal: sentences, then the shares, a row for each layer and a column for each patch."""

import math
from collections.abc import Sequence

from rich.console import Console, RenderableType
from rich.text import Text

from regard.explain.causes.patch_sweep import PatchSweep
from regard.explain.findings.patch_sweep import patch_findings
from regard.views.terminal.layout import columns, put, section, spelled
from regard.views.terminal.one_screen import ending, sentences

WIDE = 6  # of a column, with the blanks beside it
STRONG = 0.25  # shares from which on they are coloured


def show_patches(sweep: PatchSweep, console: Console, took: float | None = None) -> None:
    """Print a sweep on one screen."""
    more = "--figure FILE, --json FILE"
    put([*render(sweep, console.width), ending([sweep.status], more, took)], console)


def render(sweep: PatchSweep, width: int) -> list[RenderableType]:
    """The parts of what is printed: where not all columns have room, those with the largest shares."""
    room = max(1, (width - 8) // (WIDE + 2))
    shown = _columns(sweep, room)
    table = columns(("layer", "right"), *((_name(sweep.columns[n]), "right") for n in shown))
    for layer, row in zip(sweep.layers, sweep.shares, strict=True):
        table.add_row(str(layer), *(_share(row[n]) for n in shown))
    left = len(sweep.columns) - len(shown)
    legend = "share of the way from the run's outcome (0) to the source's (1)"
    legend += f"; {left} more with smaller ones, left out here, in --json" if left else ""
    return [sentences(patch_findings(sweep)), section("Shares", table, Text(legend, style="dim"))]


def _columns(sweep: PatchSweep, room: int) -> Sequence[int]:
    """The columns that there is room for, in their order."""
    every = range(len(sweep.columns))
    if len(every) <= room:
        return every
    far = [max(abs(row[n] - sweep.run) for row in sweep.outcomes) for n in every]
    return sorted(sorted(every, key=lambda n: -far[n])[:room])


def _name(column: str) -> str:
    return spelled(column.removeprefix("head "), WIDE + 4)


def _share(share: float) -> Text:
    if math.isnan(share):
        return Text("–", style="dim")
    style = "" if abs(share) < STRONG else "bold green" if share > 0 else "bold red"
    return Text(f"{share:z.2f}", style=style or "dim")
