"""Tokens in a terminal: the text coloured token by token, then each with its id."""

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from regard.text.tokens import Token
from regard.views.terminal.layout import columns, put, section, spelled, visible

# Backgrounds under black letters, distinct to colour-blind eyes; two that stand side by side differ in lightness.
COLOURS = ("#e69f00", "#9fd4f2", "#3fb28f", "#f0e442", "#e8a9c8", "#d9d9d9")


def show_tokens(found: Sequence[tuple[str, Sequence[Token]]], name: str, console: Console) -> None:
    """Print texts with their tokens coloured, one colour a token, blanks kept; ids and counts below."""
    parts = []
    for number, (text, tokens) in enumerate(found, 1):
        line, at = Text(), 0
        for nth, token in enumerate(tokens):
            if token.start > at:
                line.append(_visible(text[at : token.start]))  # blanks that belong to no token
            own = token.start >= at and token.end > token.start and not token.text.startswith("\\x")
            shown = _visible(text[token.start : token.end] if own else token.text)
            line.append(shown, style=f"black on {COLOURS[nth % len(COLOURS)]}")
            at = max(at, token.end)
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


def _visible(text: str) -> str:
    """A text with its blanks kept and everything else that cannot be printed written out."""
    return "".join(c if c in " \xa0" else visible(c) for c in text)
