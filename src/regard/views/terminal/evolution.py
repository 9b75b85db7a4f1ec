"""How attention formed, in a terminal: a row a step."""

import math
from itertools import pairwise

from rich.console import Console
from rich.text import Text

from regard.explain.evolution import Evolution
from regard.explain.findings.evolution import evolution_findings, strongest
from regard.views.terminal.layout import columns, put, section, spelled
from regard.views.terminal.one_screen import bar, ending, sentences

MOST_ROWS = 12  # of the table on the first screen


def show_evolution_shortly(found: Evolution, console: Console) -> None:
    """Print what was found on one screen: sentences, then a row a step, of many steps some of them."""
    shown = _some(len(found.steps))
    room = max(4, min(24, (console.width - 56) // 2))
    rows = columns(
        ("step", "right"), ("spread over", "right"), ("change", "right"), "", "strongest link", ("weight", "right")
    )
    spread = [math.exp(entropy) for entropy in found.entropy]
    changes = [sum(found.change[last + 1 : n + 1]) for last, n in pairwise([-1, *shown])]
    for n, change in zip(shown, changes, strict=True):
        value, (i, j) = strongest(found, n)
        pair = f"{spelled(found.queries[i], 12)} ({i}) → {spelled(found.keys[j], 12)} ({j})"
        step = str(found.steps[n])
        rows.add_row(step, f"{spread[n]:.1f}", f"{change:.4f}", bar(change, max(changes), room), pair, f"{value:.2f}")
    left = len(found.steps) - len(shown)
    note = "spread over: tokens that equal weights would go to (e to the entropy); change: mean absolute difference "
    note += "of the weights, added up since the row above"
    notes = [f"{left} of {len(found.steps)} steps are left out here"] if left > 0 else []
    last = ending([], "--all (every step), --figure FILE (.png, .svg, .gif), --json FILE")
    heading = Text(found.title[:1].upper() + found.title[1:], style="bold")
    dim = [Text(each, style="dim") for each in [note, *notes]]
    put([sentences(evolution_findings(found)), heading, rows, *dim, Text(), last], console)


def _some(count: int) -> list[int]:
    """At most MOST_ROWS of so many numbers, evenly, the first and the last among them."""
    if count <= MOST_ROWS:
        return list(range(count))
    return sorted({round(n * (count - 1) / (MOST_ROWS - 1)) for n in range(MOST_ROWS)})


def show_evolution(found: Evolution, console: Console) -> None:
    """Print for each step how spread attention is, how much it changed, and its strongest pair."""
    rows = columns(("step", "right"), ("entropy", "right"), ("change", "right"), "strongest pair", ("weight", "right"))
    for n, step in enumerate(found.steps):
        value, (i, j) = strongest(found, n)
        pair = f"{spelled(found.queries[i], 14)} ({i}) → {spelled(found.keys[j], 14)} ({j})"
        rows.add_row(str(step), f"{found.entropy[n]:.3f}", f"{found.change[n]:.4f}", pair, f"{value:.3f}")
    note = "entropy: mean over the queries, in nats; change: mean absolute difference from the step before"
    put([section(found.title, rows, Text(note, style="dim"))], console)
