"""Show tables, recorded calls and maps as a terminal and a notebook show them.

HTML is a text's tokens, shaded, and what a terminal would show. It loads nothing.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from regard.attention.attention_map import AttentionMap
from regard.attention.recording import Call, Calls
from regard.display.notebook import parts_html, tokens_html
from regard.display.terminal_parts import columns
from regard.errors import RegardError
from regard.text.quoting import visible
from regard.trace.any_attention import labelled, named_maps
from regard.trace.labelled_map import Labels

if TYPE_CHECKING:
    from rich.console import RenderableType

MOST_ROWS = 40  # of a table that shows itself
LONG = 512  # tokens from which on a trace that shows itself does not look for what is worth a look


def rows_parts(rows: Sequence[Mapping[str, Any]]) -> "list[RenderableType]":
    """A table of rows with the same columns; of more than 40, the first ones, and how many are left out."""
    if not rows:
        return [Text("no rows")]
    names = [name for name in rows[0] if any(row[name] is not None for row in rows)]
    numeric = [all(isinstance(row[name], (int, float, type(None))) for row in rows) for name in names]
    table = columns(*((name, "right" if number else "left") for name, number in zip(names, numeric, strict=True)))
    for row in rows[:MOST_ROWS]:
        table.add_row(*(Text(_trace_table_cell(row[name])) for name in names))
    left = len(rows) - MOST_ROWS
    note = [Text(f"… and {left} more rows: .rows() has them all, .to_frame() as a data frame", style="dim")]
    return [table, *(note if left > 0 else [])]


def calls_html(calls: Calls) -> str:
    """Make the HTML of recorded calls: a table of the first ones, and the lines below it."""
    rows = [
        {"path": call.path, "call": call.nth, "how": call.how, "weights": str(tuple(call.source.shape)),
         "line": call.where.replace("\\", "/").rpartition("/")[2] or None}
        for call in list(calls.values())[:MOST_ROWS]
    ]  # fmt: skip
    lines = [f"… and {len(calls) - MOST_ROWS} more"] * (len(calls) > MOST_ROWS) + calls.lines_below()
    return parts_html([*rows_parts(rows), *map(Text, lines)])


def attention_html(attention: AttentionMap | Call) -> str | None:
    """Make the HTML of a part of the weights, None if they can't be read any more."""
    try:
        shown = labelled(named_maps(attention)[0])
        return map_html([shown.weights], shown.labels[1], f"in {shown.name or 'this map'}{shown.item}")
    except RegardError:
        return None


def map_html(maps: Sequence[AttentionMap], label: Labels | None, what: str) -> str | None:
    """Make the HTML of the first keys of maps, shaded by what they receive. None if their tokens are not known."""
    if label is None or any(each.shape[2] != len(label.tokens) for each in maps):
        return None
    tokens, got = label.tokens[:LONG], [each[:, :LONG, :LONG].double().mean((0, 1)).cpu() for each in maps]
    part = f", by and from the first {LONG} tokens" if max(max(each.shape[1:]) for each in maps) > LONG else ""
    said = f"Mean attention received {what}{part}"
    apart = [n for n, token in enumerate(tokens) if token.special]
    return tokens_html([token.text for token in tokens], (sum(got[1:], got[0]) / len(got)).tolist(), said, apart)


def _trace_table_cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:z.3f}" if isinstance(value, float) else visible(str(value))
