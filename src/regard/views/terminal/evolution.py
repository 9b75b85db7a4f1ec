"""How attention formed, in a terminal: a row a step."""

import math
from itertools import pairwise

from rich.console import Console, RenderableType
from rich.text import Text

from regard.explain.evolution import Evolution
from regard.explain.findings.evolution import evolution_findings, free_queries, repeats, strongest
from regard.views.terminal.layout import columns, put, section, spelled
from regard.views.terminal.one_screen import bar, ending, sentences

MOST_ROWS = 12  # of the table on the first screen


def show_evolution_shortly(found: Evolution, console: Console) -> None:
    """Print what was found on one screen: sentences, then a row a step, of many steps some of them."""
    shown = _some(len(found.steps))
    head = _formed(found)
    room = max(4, min(24, (console.width - (56 if head is None else 72)) // 2))
    named = [] if head is None else [(f"induction {head[0]}.{head[1]}", "right")]
    rows = columns(
        ("step", "right"), ("spread over", "right"), ("change", "right"), "", "strongest link", ("weight", "right"),
        *named,
    )  # fmt: skip
    scores = [] if head is None else found.induction_of(*head)
    spread = [math.exp(entropy) for entropy in found.entropy]
    changes = [sum(found.change[last + 1 : n + 1]) for last, n in pairwise([-1, *shown])]
    for n, change in zip(shown, changes, strict=True):
        value, (i, j) = strongest(found, n)
        pair = f"{spelled(found.queries[i], 12)} ({i}) → {spelled(found.keys[j], 12)} ({j})"
        step = str(found.steps[n])
        rows.add_row(
            step, f"{spread[n]:.1f}", f"{change:.4f}", bar(change, max(changes), room), pair, f"{value:.2f}",
            *([f"{scores[n]:.2f}"] if scores else []),
        )  # fmt: skip
    left = len(found.steps) - len(shown)
    note = "spread over: tokens that equal weights would go to (e to the entropy); change: mean absolute difference "
    note += "of the weights, added up since the row above"
    note += _aside(found)
    notes = [f"{left} of {len(found.steps)} steps are left out here"] if left > 0 else []
    last = ending([], "--all (every step), --figure FILE (.png, .svg, .gif), --json FILE")
    heading = Text(found.title[:1].upper() + found.title[1:], style="bold")
    dim = [Text(each, style="dim") for each in [note, *notes]]
    put([sentences(evolution_findings(found)), heading, rows, *dim, Text(), last], console)


def _aside(found: Evolution) -> str:
    """What the strongest links leave out, where there is something."""
    alone = len(free_queries(found)) < len(found.queries)
    return "; strongest: of tokens that may look at more than one" if alone else ""


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
    note += _aside(found)
    parts: list[RenderableType] = [section(found.title, rows, Text(note, style="dim"))]
    if found.induction:
        parts += _induction_of_heads(found, console.width)
    put(parts, console)


def _formed(found: Evolution) -> tuple[int, int] | None:
    """The head whose induction is worth a column: it formed, or the text is there to show it."""
    best = found.induction_head()
    if best is None or (found.formed(*best) is None and not repeats(found.queries)):
        return None
    return best


def _induction_of_heads(found: Evolution, width: int) -> list[RenderableType]:
    """Every head's induction at every step, in tables as wide as the screen."""
    first = found.induction[0]
    heads = [(i, j) for i, row in enumerate(first) for j, score in enumerate(row) if not math.isnan(score)]
    across = max(1, (width - 8) // 7)
    parts = []
    for start in range(0, len(heads), across):
        some = heads[start : start + across]
        rows = columns(("step", "right"), *((f"{i}.{j}", "right") for i, j in some))
        for n, step in enumerate(found.steps):
            rows.add_row(str(step), *(f"{found.induction[n][i][j]:.3f}" for i, j in some))
        parts.append(rows)
    note = "what a token that occurred before gives to those behind its earlier occurrences; layer.head, from 0"
    return [section("induction of every head", *parts, Text(note, style="dim"))]
