"""Provide the building blocks of terminal output: tables, bars, sentences, warnings and last lines."""

import io
from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from regard.text.quoting import quoted, short, some_of, visible
from regard.trace.status import Status, exactness, note_sentences

MAX_NAMED_PIECES = 3  # unknown pieces, and texts with such pieces, that a warning lists
SET_IN = 2  # cells by which a section's parts are indented
APART = 3  # cells between two columns: a blank of each column and a blank of the box
PARTS = " ▏▎▍▌▋▊▉█"  # cells filled by eighths
HEIGHTS = " ▁▂▃▄▅▆▇█"


def print_terminal_parts(parts: Iterable[RenderableType], console: Console) -> None:
    """Print parts to a console. Outside a terminal, trailing blanks are removed."""
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    text = captured.get()
    if not console.is_terminal:
        text = "".join(f"{line.rstrip()}\n" for line in text.splitlines())
    console.file.write(text)


def plain_lines_of_parts(parts: Iterable[RenderableType], width: int) -> list[str]:
    """Return the plain lines of parts, as they are printed outside a terminal."""
    options: Any = {"highlight": False, "color_system": None, "force_terminal": False, "force_jupyter": False}
    text = io.StringIO()
    print_terminal_parts(parts, Console(width=width, file=text, **options))
    return text.getvalue().splitlines()


def plain_text_of_parts(parts: Iterable[RenderableType], width: int = 80) -> str:
    """Return the plain text of parts, as they are printed outside a terminal."""
    return "\n".join(plain_lines_of_parts(parts, width)).rstrip()


def columns(*columns: str | tuple[str, str]) -> Table:
    """Return an empty table with columns. columns: a heading for each, or a heading and its alignment."""
    table = Table(box=SIMPLE_HEAD, padding=(0, (APART - 1) // 2), pad_edge=False, show_edge=False, header_style="dim")
    for column in columns:
        heading, justify = column if isinstance(column, tuple) else (column, "left")
        table.add_column(heading, justify=justify, overflow="fold")  # type: ignore[arg-type]
    return table


def unknown_tokens_line(texts: Sequence[tuple[str, Status, int]]) -> list[Text]:
    """Return a list with a warning about tokens that the tokenizer doesn't know, empty if there are none.

    texts: the name, status and number of tokens of each text.
    """
    affected = [text for text in texts if text[1].unknown]
    if not affected:
        return []
    counts = [f"{len(status.unknown)} of {tokens} tokens" + (f" of {name}" if len(texts) > 1 else "")
              for name, status, tokens in affected]  # fmt: skip
    pieces = list(dict.fromkeys(piece for _, status, _ in affected for piece in status.unknown))
    warning = some_of(counts, MAX_NAMED_PIECES) + f" are unknown to the tokenizer of {affected[0][1].model}: "
    warning += some_of([quoted(short(piece, 12)) for piece in pieces], MAX_NAMED_PIECES)
    warning += ". The model can't tell them apart. Choose a model for this language or script with --model."
    return [Text(warning, style="yellow"), Text()]


def sentences(texts: Sequence[str]) -> RenderableType:
    """Return sentences as a bullet list, wrapped and indented."""
    table = Table.grid(padding=(0, 1))
    table.add_column()
    table.add_column(overflow="fold")
    for sentence in texts:
        table.add_row(Text("•", style="dim"), Text(visible(sentence)))
    shown: Any = Padding(table, (0, 0, 1, 0), expand=False)
    shown._repr_html_ = lambda: f"<ul>{''.join(f'<li>{escape(visible(text))}</li>' for text in texts)}</ul>"
    return shown


def terminal_bar(value: float, full: float, signed: bool, room: int) -> Text:
    """Return a bar of at most `room` cells, whose length is the value as a fraction of `full`.

    signed: for numbers of both signs, the bar is red above 0, and blue and lighter below 0.
    """
    if room < 1 or not full > 0 or not abs(value) > 0:
        return Text()
    eighths = round(min(1.0, abs(value) / full) * room * 8)
    bar = Text("█" * (eighths // 8) + PARTS[eighths % 8].strip(), style="cyan")
    if signed and value < 0:  # also distinct without colours
        bar = Text("▒" * bar.cell_len)
    bar.stylize("red" if signed and value >= 0 else "cyan")
    return bar


def terminal_height_characters(values: Sequence[float], full: float) -> str:
    """Return one block character per value, whose height is the value as a fraction of `full`."""
    top = len(HEIGHTS) - 1
    return "".join(HEIGHTS[round(min(1.0, max(0.0, value / full if full > 0 else 0.0)) * top)] for value in values)


def resampled_for_terminal(values: Sequence[float], count: int) -> list[float]:
    """Split values into `count` equal parts, and return the maximum of each. Shorter lists are returned unchanged."""
    size = len(values)
    if size <= count:
        return list(values)
    edges = [n * size // count for n in range(count + 1)]
    return [max(values[start:stop]) for start, stop in pairwise(edges)]


def ending_lines_in_terminal(statuses: Sequence[Status], more: str, took: float, notes: Sequence[str]) -> Group:
    """Return the last lines of an answer: exactness, model, kernels, time, notes, and options that show more.

    statuses: the traces' statuses, whose notes are included. took: the duration in seconds.
    """
    lines = []
    if statuses:
        kernels = dict.fromkeys(kernel for status in statuses for kernel in status.kernels)
        lines = [exactness(statuses), ", ".join([f"Model: {statuses[0].model}", *kernels, f"{took:.1f} s"])]
    lines += [f"Note: {note}" for note in dict.fromkeys([*note_sentences(statuses), *notes])]
    return Group(*(Text(line, style="dim") for line in [*lines, f"More: {more}"]))
