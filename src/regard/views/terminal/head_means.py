"""What heads do in texts, in tests or over a whole corpus, in a terminal: for each score the heads with most of it."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from rich.console import Console, RenderableType
from rich.text import Text

from regard.explain.weights.head_means import HeadMeans
from regard.views.terminal.layout import columns, put, section

# What a head looks at that has much of a score, for somebody who meets the name here.
MEANINGS = {
    "previous": "the token before",
    "next": "the token after",
    "same": "the token itself",
    "special": "special tokens",
    "first": "the first token",
    "sinks": "attention sinks",
    "duplicate": "the same token earlier",
    "induction": "behind the same token",
    "entropy": "many tokens, in nats",
    "distance": "far away, in tokens",
    "position": "a place, any token",
    "content": "a token, any place",
    "written": "source of what is next",
    "read": "source of the token",
    "successor": "behind that source",
}
LOOKED = 0.1  # how much a head has to look at tokens that were exchanged, to be named for how it follows them
HEADS = "heads are numbered layer.head, from 0"


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
    table = columns("score", "looks at …", "most: layer.head, mean", ("of all", "right"))
    for name in (each for each in MEANINGS if each in found.scores):
        values = found.scores[name]
        if not (values == values).any():
            table.add_row(name, MEANINGS[name], "– (no token could)", "–")
            continue
        best = [f"{layer}.{head} {score:.2f}" for layer, head, score in found.best(name, by=_ranked(found, name))]
        most = ", ".join(each for each in best if not each.endswith(" 0.00")) or "– (no head does)"
        table.add_row(name, MEANINGS[name], most, f"{values[values == values].mean():.2f}")
    return table


def _ranked(found: HeadMeans, name: str) -> Float[np.ndarray, "layers H"] | None:
    """By what heads are ranked: those that follow position, by how much more than content, and the other way round; a
    head that looks everywhere evenly follows neither, though it does both."""
    other = {"position": "content", "content": "position"}.get(name)
    if other is None:
        return None
    return np.where(found.scores["looked"] >= LOOKED, found.scores[name] - found.scores[other], np.nan)
