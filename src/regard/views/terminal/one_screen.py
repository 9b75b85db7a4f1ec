"""What every verb's first screen is put together from: sentences, bars, and the last lines: how exact, what more."""

from collections.abc import Sequence
from itertools import pairwise

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from regard.trace.status import Status, exactness
from regard.views.terminal.layout import visible

PARTS = " ▏▎▍▌▋▊▉█"  # a cell filled by eighths
HEIGHTS = " ▁▂▃▄▅▆▇█"


def sentences(found: Sequence[str]) -> RenderableType:
    """Sentences one below the other, each wrapped and set in under its mark."""
    table = Table.grid(padding=(0, 1))
    table.add_column()
    table.add_column(overflow="fold")
    for sentence in found:
        table.add_row(Text("•", style="dim"), Text(visible(sentence)))
    return Padding(table, (0, 0, 1, 0), expand=False)


def bar(value: float, full: float, room: int) -> Text:
    """A bar of at most so many cells, as long as the value is of what fills it."""
    if room < 1 or not full > 0 or not value > 0:
        return Text()
    eighths = round(min(1.0, value / full) * room * 8)
    return Text("█" * (eighths // 8) + PARTS[eighths % 8].strip(), style="cyan")


def heights(values: Sequence[float], full: float) -> str:
    """A character a value, as high as the value is of what fills it."""
    top = len(HEIGHTS) - 1
    return "".join(HEIGHTS[round(min(1.0, max(0.0, value / full if full > 0 else 0.0)) * top)] for value in values)


def resampled(values: Sequence[float], count: int) -> list[float]:
    """The largest of each of count equal parts of a row of values; the row itself where it is no longer."""
    size = len(values)
    if size <= count:
        return list(values)
    edges = [n * size // count for n in range(count + 1)]
    return [max(values[start:stop]) for start, stop in pairwise(edges)]


def model_line(statuses: Sequence[Status], took: float | None = None) -> str:
    """In one line the model, its kernels, how far its weights are from its own attention's, and how long it took."""
    seconds = "" if took is None else f"; {took:.1f} s in all"
    kernels = ", ".join(dict.fromkeys(kernel for each in statuses for kernel in each.kernels))
    return f"{statuses[0].model}{f' ({kernels})' if kernels else ''}: {exactness(statuses)}{seconds}"


def ending(statuses: Sequence[Status], more: str, took: float | None = None, notes: Sequence[str] = ()) -> Group:
    """The last lines: how exact it is, the notes of the traces and others, and which options show more."""
    lines = [model_line(statuses, took)] if statuses else []
    lines += [f"note: {note}" for note in dict.fromkeys([*(n for s in statuses for n in s.notes), *notes])]
    return Group(*(Text(line, style="dim") for line in [*lines, f"more: {more}"]))
