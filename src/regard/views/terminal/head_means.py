"""What heads do in texts, in tests or over a whole corpus, in a terminal: for each score the heads with most of it."""

from collections.abc import Sequence

from rich.console import Console, RenderableType
from rich.text import Text

from regard.explain.findings.head_means import most_of
from regard.explain.weights.head_means import HeadMeans
from regard.explain.weights.score_meanings import MEANINGS
from regard.views.terminal.layout import columns, put, section

HEADS = "heads are numbered layer.head, from 0; all: the mean of all heads; tokens: of how many a score is the mean"


def show_head_means(found: HeadMeans, console: Console, notes: Sequence[str] = ()) -> None:
    """Print a corpus's heads: the three with the largest mean of each score, and the mean of all."""
    counted = f"{found.counts['queries']:,} tokens, {found.counts['duplicates']:,} of them with an earlier one alike"
    show_heads([(counted, found)], console, [f"means over all of the corpus that was read; {HEADS}"], notes)


def show_heads(
    tables: Sequence[tuple[str, HeadMeans]], console: Console, said: Sequence[str] = (HEADS,), notes: Sequence[str] = ()
) -> None:
    """Print several tables, each with a title: the three heads with the largest mean of each score, the mean of all."""
    shown = [section(title, _table(found)) for title, found in tables]
    lines = [Text(line, style="dim") for line in said] + [Text(note, style="yellow") for note in notes]
    put([*shown, *lines], console)


def _table(found: HeadMeans) -> RenderableType:
    """One line a score."""
    table = columns("score", "looks at …", "most: layer.head, mean", ("all", "right"), ("tokens", "right"))
    for name in (each for each, meaning in MEANINGS.items() if meaning.looks_at and each in found.scores):
        values = found.scores[name]
        over = f"{found.count(name):,}"
        if not (values == values).any():
            table.add_row(name, MEANINGS[name].looks_at, "– (no token could)", "–", over)
            continue
        most = ", ".join(f"{head} {score:.2f}" for head, score in most_of(found, name)) or "– (no head does)"
        table.add_row(name, MEANINGS[name].looks_at, most, f"{values[values == values].mean():.2f}", over)
    return table
