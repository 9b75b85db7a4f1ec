"""What a model wrote, in a terminal."""

from typing import Any

from rich.console import Console, Group, RenderableType
from rich.text import Text

from regard.explain.findings.writing import writing_findings
from regard.explain.logits.predictions import names_of
from regard.explain.logits.written_tokens import Writing, writing
from regard.trace.trace import Trace
from regard.views.terminal.layout import columns, put, section, spelled, visible
from regard.views.terminal.one_screen import bar, ending, heights, sentences
from regard.views.terminal.unknown_tokens import of_traces, unknown_first

MOST_ROWS = 8  # of the table on the first screen
MOST_LINES = 6  # of the text there, each with its bars
ENDED = {"end": "it ended", "stop": "a stop string", "length": "as many tokens as were asked for"}


def show_writing(done: Any, console: Console, took: float | None = None) -> None:
    """Print on one screen what was written with how likely each token was, sentences, and the places of most doubt.

    done: a `Generated` of a causal model.
    """
    trace = done.trace
    found = writing(trace, done.start, done.ended, names_of(trace))
    parts: list[RenderableType] = [*unknown_first(of_traces([trace]))]
    parts += _text_with_bars(trace, found, console.width)
    parts.append(sentences(writing_findings(found, trace.tokens)))
    if found.tokens:
        parts.append(_doubts(found, console.width))
    put([*parts, ending([trace.status], "--all (the whole status), --save FILE for regard see --open", took)], console)


def _text_with_bars(trace: Trace, found: Writing, width: int) -> list[RenderableType]:
    """The text, its prompt dim; under what was written how likely each token was."""
    chance = dict.fromkeys(range(len(trace.text)), 0.0)
    first = len(trace.text)
    for each in found.tokens:
        token = trace.tokens[each.token]
        first = min(first, token.start) if token.end > token.start else first
        chance |= dict.fromkeys(range(token.start, token.end), each.probability)
    lines = _lines_of(trace.text, width)
    parts: list[RenderableType] = []
    for start, stop in lines[:MOST_LINES]:
        line = Text()
        for n in range(start, stop):
            line.append(visible(trace.text[n]) if trace.text[n] != "\n" else " ", style="dim" if n < first else "")
        parts.append(line)
        if stop > first:
            bars = heights([chance[n] if not trace.text[n].isspace() else 0.0 for n in range(start, stop)], 1.0)
            parts.append(Text(bars.rstrip(), style="cyan"))
    left = len(lines) - MOST_LINES
    note = "a bar: how likely the model found the token; full at 1"
    note += f"; {left} more lines with --all" if left > 0 else ""
    return [*parts, Text(note if found.tokens else "", style="dim"), Text()]


def _lines_of(text: str, width: int) -> list[tuple[int, int]]:
    """Where the lines of a text start and stop that is wrapped at blanks and at its own line ends."""
    lines, start = [], 0
    while start < len(text):
        own = text.find("\n", start, start + width)
        if own >= 0:
            stop = own + 1
        elif len(text) - start <= width:
            stop = len(text)
        else:
            blank = text.rfind(" ", start + 1, start + width)
            stop = blank + 1 if blank > start else start + width
        lines.append((start, stop))
        start = stop
    return lines


def _doubts(found: Writing, width: int) -> RenderableType:
    """The written tokens that the model found least likely, in order, and what it found likely beside them."""
    least = sorted(found.tokens, key=lambda each: each.probability)[:MOST_ROWS]
    table = columns(("token", "right"), "written", ("probability", "right"), "", "other likely tokens there")
    for each in sorted(least, key=lambda each: each.token):
        # the written token stands in its own column
        others = [c for c in each.likeliest if not (c.text == each.text and c.probability == each.probability)]
        line, used, room = Text(), 0, width - 56
        for other in others[:3]:
            name = spelled(other.text, 14)
            if used and used + len(name) + 7 > room:
                break
            line.append(("  " if used else "") + name)
            line.append(f" {other.probability:.2f}", style="dim")
            used += len(name) + 7
        chance = bar(each.probability, 1.0, 8)
        table.add_row(str(each.token), spelled(each.text, 14), f"{each.probability:.2f}", chance, line)
    left = len(found.tokens) - len(least)
    note = f"the {len(least)} least likely of {len(found.tokens)}" if left > 0 else "every token that was written"
    return Group(table, Text(f"{note}; probabilities as the model gives them, temperature aside", style="dim"), Text())


def written(done: Any) -> list[RenderableType]:
    """The text of a `Generated`, its prompt dim; and how many tokens it has."""
    start = len(done.text) - len(done.new) if done.text.endswith(done.new) else 0
    text = Text(_lines(done.text[:start]), style="dim") + Text(_lines(done.text[start:]), style="not dim")
    summary_line = f"{len(done.ids) - done.start} tokens written, {done.start} given; ended by: {ENDED[done.ended]}"
    return [section("Written", text, Text(), Text(summary_line, style="dim"))]


def translated(text: str, target: str) -> Group:
    """A text and its translation."""
    return section(visible(text), Text(_lines(target), style="bold"))


def _lines(text: str) -> str:
    """A text with its line ends kept and everything else that cannot be printed written out."""
    return "\n".join(visible(line) for line in text.split("\n"))
