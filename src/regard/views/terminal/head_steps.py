"""The way of one query through one head, in a terminal: every number follows from the ones before."""

from collections.abc import Collection, Sequence

from jaxtyping import Float
from rich.console import Console
from rich.text import Text
from torch import Tensor

from regard.text.tokens import Token
from regard.textbook import HeadSteps
from regard.views.terminal.layout import columns, put, section, sink_name, spelled

COMPONENTS = 3  # of each vector that are printed; --json has all


def show_head_steps(
    found: HeadSteps, tokens: Sequence[Token], token: Token, place: str, console: Console, sinks: Collection[int] = ()
) -> None:
    """Print a record. tokens: the keys, in their order; token: the query. place: which layer and head.

    sinks: the numbers of the tokens that are attention sinks.
    """
    width = len(found.query)
    head = Text(
        f"query of “{spelled(token.text)}”: ({_some(found.query)}) of {width} components\n"
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
        cells = [f"{float(found.products[n]):.4f}", f"{float(found.scaled[n]):.4f}"]
        cells += [f"{float(found.capped[n]):.4f}"] if with_cap else []
        cells += [f"{float(found.capped[n] + found.bias[n]):.4f}"] if with_bias else []
        cells += ["may not look" if hidden else f"{float(found.exponentials[n]):.4f}"]
        cells += [f"{float(found.weights[n]):.4f}", _some(found.weighted[n])]
        rows.add_row(str(n), sink_name(n, key.text) if n in sinks else spelled(key.text), *cells)
    sink = "" if found.sink is None else f", a sink's score of {found.sink:.4f} among it"
    end = Text(
        f"sum of exp: {found.total:.6f}{sink}; weight = exp / sum\n"
        f"context = sum of the last column: ({_some(found.context)}) of {len(found.context)} components\n"
        f"within {found.error:.1e} of the weights that the model's pass gave"
    )
    put([section(f"“{spelled(token.text)}” in {place}, step by step", head, Text(), rows, Text(), end)], console)


def _some(vector: Float[Tensor, " D"]) -> str:
    more = " …" if len(vector) > COMPONENTS else ""
    return " ".join(f"{x:.4f}" for x in vector[:COMPONENTS].tolist()) + more
