"""The way of one query through one head, in a terminal: every number follows from the ones before."""

from collections.abc import Collection, Sequence

from jaxtyping import Float
from rich.console import Console
from rich.text import Text
from torch import Tensor

from regard.explain.findings.head_steps import head_steps_findings, shares
from regard.text.quoting import quoted
from regard.text.tokens import Token
from regard.textbook import HeadSteps
from regard.trace.trace import Trace
from regard.views.terminal.layout import columns, put, section, sink_name, spelled
from regard.views.terminal.one_screen import bar, ending, sentences

MOST_ROWS = 14  # of the table on the first screen
COMPONENTS = 3  # of each vector that are printed; --json has all


def show_head_steps_shortly(
    found: Sequence[tuple[int, HeadSteps]],
    trace: Trace,
    layer: int,
    head: int,
    console: Console,
    sinks: Collection[int] = (),
) -> None:
    """Print on one screen: sentences, then for the last query each key's score, weight and part in the output.

    found: the record of each query, with its token's number.
    """
    tokens = trace.tokens
    query, record = found[-1]  # of a causal model the one that sees most
    parts = [sentences(head_steps_findings(found, tokens, layer, head, sinks))]
    order = record.weights.sort(descending=True, stable=True).indices.tolist()
    seen = [n for n in order if not record.scores[n].isinf()]
    places = sorted(seen[:MOST_ROWS])
    given = shares(record)
    room = max(0, min(24, console.width - 66))
    title = (
        f"{quoted(spelled(tokens[query].text))} (token {query}) in layer {layer}, head {head}: from scores to weights"
    )
    rows = columns(
        "", "key", ("q · k", "right"), ("score", "right"), ("exp(s-max)", "right"), ("weight", "right"), "",
        ("of output", "right"),
    )  # fmt: skip
    full = float(record.weights.max())
    for n in places:
        name = sink_name(n, tokens[n].text, 8) if n in sinks else spelled(tokens[n].text, 14)
        numbers = (record.products[n], record.scores[n])
        cells = [f"{float(each):z.2f}" for each in numbers] + [f"{float(record.exponentials[n]):.3f}"]
        weight, part = float(record.weights[n]), f"{float(given[n]):.0%}".replace("-0%", "0%")
        rows.add_row(str(n), name, *cells, f"{weight:.3f}", bar(weight, full, room), part)
    notes = [
        f"score: q · k × {record.scale:.4g}, with what else the model does to it; weight: exp(s-max) / "
        f"{record.total:.4f}; of output: the part that its value has in the context vector"
    ]
    left = len(seen) - len(places)
    if left > 0:
        rest = 1 - sum(float(record.weights[n]) for n in places)
        notes.append(f"{left} more tokens share {max(0.0, rest):.3f} of the weight")
    if len(order) > len(seen):
        notes.append(f"{len(order) - len(seen)} tokens that it may not look at are left out")
    notes.append(_exact(record.error))
    more = ending([], "--all (the vectors, every token of the word), --json FILE")
    put([*parts, Text(title, style="bold"), rows, *(Text(note, style="dim") for note in notes), more], console)


def show_head_steps(
    found: HeadSteps, tokens: Sequence[Token], token: Token, place: str, console: Console, sinks: Collection[int] = ()
) -> None:
    """Print a record. tokens: the keys, in their order; token: the query. place: which layer and head.

    sinks: the numbers of the tokens that are attention sinks.
    """
    width = len(found.query)
    head = Text(
        f"query of {quoted(spelled(token.text))}: ({_some(found.query)}) of {width} components\n"
        f"of vectors the first {COMPONENTS} components are shown, --json has all\n"
        f"scale {found.scale:.6g}" + (f" = 1/√{width}" if abs(found.scale - width**-0.5) < 1e-9 else "")
    )
    with_cap, with_bias = found.softcap is not None, bool((found.bias != 0).any())
    names = ["", "key token", "q · k", "× scale"]
    names += [f"capped at {found.softcap:g}"] if with_cap else []
    names += ["+ bias"] if with_bias else []
    names += ["exp(s-max)", "weight", "weight × value"]
    rows = columns(*((name, "left" if name == "key token" else "right") for name in names))
    for n, key in enumerate(tokens):
        hidden = bool(found.scores[n].isinf())
        cells = [f"{float(found.products[n]):z.4f}", f"{float(found.scaled[n]):z.4f}"]
        cells += [f"{float(found.capped[n]):z.4f}"] if with_cap else []
        cells += [f"{float(found.capped[n] + found.bias[n]):z.4f}"] if with_bias else []
        cells += ["may not look" if hidden else f"{float(found.exponentials[n]):.4f}"]
        cells += [f"{float(found.weights[n]):.4f}", _some(found.weighted[n])]
        rows.add_row(str(n), sink_name(n, key.text) if n in sinks else spelled(key.text), *cells)
    sink = "" if found.sink is None else f", a sink's score of {found.sink:z.4f} among it"
    end = Text(
        f"sum of exp: {found.total:.6f}{sink}; weight = exp / sum\n"
        f"context = sum of the last column: ({_some(found.context)}) of {len(found.context)} components\n"
        f"{_exact(found.error)}"
    )
    put([section(f"{quoted(spelled(token.text))} in {place}, step by step", head, Text(), rows, Text(), end)], console)


def _exact(error: float) -> str:
    """How far the weights of a record are from those of the trace."""
    return f"within {error:.1e} of the weights that the model's pass gave"


def _some(vector: Float[Tensor, " D"]) -> str:
    more = " …" if len(vector) > COMPONENTS else ""
    return " ".join(f"{x:z.4f}" for x in vector[:COMPONENTS].tolist()) + more
