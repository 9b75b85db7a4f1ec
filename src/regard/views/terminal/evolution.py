"""How attention formed, in a terminal: a row a step."""

from rich.console import Console
from rich.text import Text

from regard.explain.evolution import Evolution
from regard.views.terminal.layout import columns, put, section, spelled


def show_evolution(found: Evolution, console: Console) -> None:
    """Print for each step how spread attention is, how much it changed, and its strongest pair."""
    rows = columns(("step", "right"), ("entropy", "right"), ("change", "right"), "strongest pair", ("weight", "right"))
    every = range(len(found.queries))  # a query that may look at one key alone always gives it all
    free = [i for i in every if any(sum(w > 0 for w in weights[i]) > 1 for weights in found.weights)] or list(every)
    for n, step in enumerate(found.steps):
        weights = found.weights[n]
        value, i, j = max((w, i, j) for i in free for j, w in enumerate(weights[i]))
        pair = f"{spelled(found.queries[i], 14)} ({i}) → {spelled(found.keys[j], 14)} ({j})"
        rows.add_row(str(step), f"{found.entropy[n]:.3f}", f"{found.change[n]:.4f}", pair, f"{value:.3f}")
    note = "entropy: mean over the queries, in nats; change: mean absolute difference from the step before"
    put([section(found.title, rows, Text(note, style="dim"))], console)
