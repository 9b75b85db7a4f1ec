"""Tokens in a terminal: the text coloured token by token, then each with its id."""

from collections import Counter
from collections.abc import Sequence

from rich.console import Console, RenderableType
from rich.text import Text

from regard.explain.findings.tokens import tokens_findings
from regard.text.tokens import Token
from regard.views.terminal.layout import columns, put, section, spelled, visible
from regard.views.terminal.one_screen import ending, sentences

MOST_ROWS = 16  # of the table on the first screen, over all texts
MOST_TEXTS = 3
MOST_COLOURED = 120  # tokens of a text there
# Backgrounds under black letters, distinct to colour-blind eyes; two that stand side by side differ in lightness.
COLOURS = ("#e69f00", "#9fd4f2", "#3fb28f", "#f0e442", "#e8a9c8", "#d9d9d9")


def show_tokens_shortly(found: Sequence[tuple[str, Sequence[Token]]], name: str, console: Console) -> None:
    """Print on one screen: of each text its coloured tokens and sentences, then one table of the first tokens."""
    parts: list[RenderableType] = []
    rows = columns(
        *(["text"] if len(found) > 1 else []), ("", "right"), "token", ("id", "right"), ("characters", "right")
    )
    several = min(len(found), MOST_TEXTS)
    each, most, left = (MOST_ROWS if several == 1 else 9) // several, MOST_COLOURED // several, 0
    for number, (text, tokens) in enumerate(found[:MOST_TEXTS], 1):
        label = f"Text {number}: t" if len(found) > 1 else "T"
        said = tokens_findings(text, tokens)
        parts += [Text(f"{label}okens of {name}", style="bold"), _coloured(text, tokens[:most])]
        if len(tokens) > most:
            parts.append(Text(f"… and {len(tokens) - most} more tokens", style="dim"))
        parts.append(sentences(said if several == 1 else said[: 4 // several]))
        for nth, token in enumerate(tokens[:each]):
            place = "special" if token.special and token.start == token.end else f"{token.start}–{token.end}"
            own = [str(number)] if len(found) > 1 else []
            rows.add_row(*own, str(nth), spelled(token.text, 30), str(token.id), place)
        left += max(0, len(tokens) - each)
    notes = [f"{left} more tokens with --all"] if left else []
    notes += [f"{len(found) - MOST_TEXTS} more texts with --all"] if len(found) > MOST_TEXTS else []
    parts += [rows, *([Text("; ".join(notes), style="dim")] if notes else []), Text()]
    put([*parts, ending([], "--all (every token, its count, all ids in a row)")], console)


def show_tokens(found: Sequence[tuple[str, Sequence[Token]]], name: str, console: Console) -> None:
    """Print texts with their tokens coloured, one colour a token, blanks kept; ids and counts below."""
    parts = []
    for number, (text, tokens) in enumerate(found, 1):
        line = _coloured(text, tokens)
        ids = Text(" ".join(str(token.id) for token in tokens))
        kinds = len({token.id for token in tokens})
        counts_line = f"{len(tokens)} tokens, {kinds} different; {len(text)} characters, {len(text.encode())} bytes"
        rows = columns(("", "right"), "token", ("id", "right"), ("characters", "right"), ("times", "right"))
        times = Counter(token.id for token in tokens)
        for nth, token in enumerate(tokens):
            place = "special" if token.special and token.start == token.end else f"{token.start}–{token.end}"
            rows.add_row(str(nth), spelled(token.text, 1000), str(token.id), place, str(times[token.id]))
        title = f"Text {number}, tokens of {name}" if len(found) > 1 else f"Tokens of {name}"
        parts.append(section(title, line, Text(counts_line, style="dim"), Text(), rows, Text(), ids))
    put(parts, console)


def _coloured(text: str, tokens: Sequence[Token]) -> Text:
    """The text, each of its tokens on a colour, blanks that belong to none as they are."""
    line, at = Text(), 0
    for nth, token in enumerate(tokens):
        if token.start > at:
            line.append(_visible(text[at : token.start]))
        own = token.start >= at and token.end > token.start and not token.text.startswith("\\x")
        shown = _visible(text[token.start : token.end] if own else token.text)
        line.append(shown, style=f"black on {COLOURS[nth % len(COLOURS)]}")
        at = max(at, token.end)
    return line


def _visible(text: str) -> str:
    """A text with its blanks kept and everything else that cannot be printed written out."""
    return "".join(c if c in " \xa0" else visible(c) for c in text)
