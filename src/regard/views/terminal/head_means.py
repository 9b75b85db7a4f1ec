"""What heads do over a whole corpus, in a terminal: for each score the heads that have most of it."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from regard.corpus.asking.head_means import HeadMeans
from regard.views.terminal.layout import columns, put, section

# What a score says, for somebody who meets its name here.
MEANINGS = {
    "previous": "looks at the token before",
    "next": "looks at the token after",
    "same": "looks at the token itself",
    "special": "looks at special tokens",
    "first": "looks at the first token",
    "duplicate": "looks at earlier tokens of the same id",
    "induction": "looks behind earlier tokens of the same id",
    "entropy": "spreads its attention, in nats",
    "distance": "looks far away, in tokens",
}


def show_head_means(found: HeadMeans, console: Console, notes: Sequence[str] = ()) -> None:
    """Print the three heads with the largest mean of each score, and the mean of all heads."""
    table = columns("score", ("layer.head", "right"), ("mean", "right"), "and", ("all heads", "right"), "the head …")
    for name, meaning in MEANINGS.items():
        best = [(f"{layer}.{head}", f"{score:.2f}") for layer, head, score in found.best(name)]
        if not best:
            table.add_row(name, "–", "–", "", "–", "no token has one")
            continue
        values = found.scores[name]
        mean = f"{values[values == values].mean():.2f}"
        others = ", ".join(f"{head} {score}" for head, score in best[1:])
        table.add_row(name, *best[0], others, mean, meaning)
    counted = f"{found.counts['queries']:,} tokens, {found.counts['duplicates']:,} of them with an earlier one alike"
    heads = "means over all of the corpus that was read; heads are numbered layer.head, from 0"
    put([section(counted, table), Text(heads, style="dim"), *(Text(note, style="yellow") for note in notes)], console)
