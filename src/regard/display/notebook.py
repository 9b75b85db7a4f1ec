"""Convert terminal output to HTML for notebooks: tables as tables, the rest as escaped text. It loads no files."""

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from html import escape
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from regard.attention.attention_map import AttentionMap
from regard.attention.recording import Call, Calls
from regard.display.terminal_parts import columns
from regard.errors import RegardError
from regard.text.quoting import visible
from regard.trace.any_attention import labelled, named_maps

LETTERS = "white-space:pre;overflow-x:auto;line-height:1.3;font-family:Menlo,Consolas,'DejaVu Sans Mono',monospace"
FONT = "font:14px/2 system-ui,sans-serif;overflow-wrap:anywhere"
DRAWN = re.compile(r"\S {2}|[\u2580-\u259f]")  # aligned columns and bars need a monospaced font
MOST_ROWS = 40  # rows of a table in a notebook
LONG = 512  # tokens: longer traces are displayed without the results of `see`


def parts_html(parts: Iterable[RenderableType]) -> str:
    """Convert parts of terminal output to HTML, with a part's `_repr_html_` method if it has one."""
    return "".join(getattr(part, "_repr_html_", partial(_part_html, part))() for part in parts)


def tokens_html(
    tokens: Sequence[str], values: Sequence[float | None], title: str, special: Sequence[int] = (), full: float = 0.0
) -> str:
    """Return the HTML of a text. Each token's background is as strong as its number, which a tooltip shows.

    special: tokens shown in grey. full: the number of the strongest colour, 0 for the largest of other tokens.
    """
    full = full or max((value or 0.0 for n, value in enumerate(values) if n not in special), default=0.0) or 1.0
    spans = []
    for n, (token, value) in enumerate(zip(tokens, values, strict=True)):
        percent = round(65 * min(1.0, max(0.0, (value or 0.0) / full)))
        shade = f"color-mix(in srgb,{'#888' if n in special else '#2b7bba'} {percent}%,transparent)"
        number = "" if value is None else f' title="{value:.2f}"'
        spans.append(f'<span style="background:{shade};padding:.1em .2em"{number}>{escape(visible(token))}</span>')
    if "full bar" not in title and any(value is not None for value in values):
        title += f" (strongest color: {full:.2f})"
    label = escape(visible(title.replace("full bar", "strongest color")))
    return f'<div style="{FONT}"><div style="opacity:.75">{label}</div><div dir="auto">{" ".join(spans)}</div></div>'


def _part_html(part: RenderableType) -> str:
    """Convert a part of terminal output without a `_repr_html_` method to HTML."""
    if isinstance(part, Group):
        return parts_html(part.renderables)
    if isinstance(part, Padding):
        return f'<div style="padding-left:{part.left / 2:g}em">{parts_html([part.renderable])}</div>'
    if isinstance(part, Table) and part.box:
        return _table_html(part)
    if isinstance(part, Table):  # tables are side by side if there is room
        cells = "".join(
            f'<div style="flex:1 1 20em">{parts_html([cell])}</div>' for column in part.columns for cell in column.cells
        )
        return f'<div style="display:flex;flex-wrap:wrap;gap:0 2em">{cells}</div>'
    text = _text_html(part)
    style = LETTERS if DRAWN.search(text) else "white-space:pre-wrap"
    return f'<div style="{style}">{text}</div>' if text.strip() else ""


def _table_html(table: Table) -> str:
    """Convert a terminal's table to an HTML table. No cell is cut or wrapped."""
    sides = ["right" if column.justify == "right" else "left" for column in table.columns]

    def row(cells: Iterable[RenderableType], kind: str, style: str) -> str:
        css = f"font-weight:{style or 'normal'};padding:.1em .6em;vertical-align:top;text-align"
        sided = zip(sides, map(_text_html, cells), strict=True)
        tags = [f'<{kind} style="{css}:{side}">{cell.strip()}</{kind}>' for side, cell in sided]
        return f"<tr>{''.join(tags)}</tr>"

    lines = zip(*(column.cells for column in table.columns), strict=True)
    body = [row(cells, "td", str(table_row.style or "")) for table_row, cells in zip(table.rows, lines, strict=True)]
    head = row([column.header for column in table.columns], "th", "")
    return f'<table style="border-collapse:collapse">{head}{"".join(body)}</table>'


def _text_html(text: RenderableType) -> str:
    """Convert styled terminal text to HTML spans. Red and blue become tones that are also readable on dark."""
    console = Console(file=io.StringIO(), highlight=False)
    styled = console.render_str(text) if isinstance(text, str) else text
    assert isinstance(styled, Text)
    styled = styled.copy()
    styled.stylize_before(styled.style)
    spans = []
    for letters, style, _ in styled.render(console):
        css = style.get_html_style().replace("#800000", "#d0453a").replace("#008080", "#2b7bba") if style else ""
        spans.append(f'<span style="{css}">{escape(letters)}</span>' if css else escape(letters))
    return "".join(spans)


def rows_parts(rows: Sequence[Mapping[str, Any]]) -> "list[RenderableType]":
    """Return rows with the same columns as a terminal table of at most 40 rows, and the number of omitted rows."""
    if not rows:
        return [Text("no rows")]
    names = [name for name in rows[0] if any(row[name] is not None for row in rows)]
    numeric = [all(isinstance(row[name], (int, float, type(None))) for row in rows) for name in names]
    table = columns(*((name, "right" if number else "left") for name, number in zip(names, numeric, strict=True)))
    for row in rows[:MOST_ROWS]:
        values = ["–" if (value := row[name]) is None else value for name in names]
        cells = [f"{value:z.3f}" if isinstance(value, float) else visible(str(value)) for value in values]
        table.add_row(*map(Text, cells))
    hidden = len(rows) - MOST_ROWS
    note = [Text(f"… and {hidden} more rows: .rows() has them all, .to_frame() as a data frame", style="dim")]
    return [table, *(note if hidden > 0 else [])]


def calls_html(calls: Calls) -> str:
    """Return the HTML of recorded calls: a table of the first calls, with notes below."""
    rows = [
        {"path": call.path, "call": call.nth, "how": call.how, "weights": str(tuple(call.source.shape)),
         "line": call.where.replace("\\", "/").rpartition("/")[2] or None}
        for call in list(calls.values())[:MOST_ROWS]
    ]  # fmt: skip
    lines = [f"… and {len(calls) - MOST_ROWS} more"] * (len(calls) > MOST_ROWS) + calls.lines_below()
    return parts_html([*rows_parts(rows), *map(Text, lines)])


def attention_html(attention: AttentionMap | Call) -> str | None:
    """Return the HTML of a map's first tokens, shaded by received attention. None if its weights are unavailable."""
    try:
        shown = labelled(named_maps(attention)[0])
        received = shown.weights[:, :LONG, :LONG].double().mean((0, 1)).tolist()
    except RegardError:
        return None
    tokens = shown.labels[1].tokens[:LONG]
    part = f", by and from the first {LONG} tokens" if max(shown.weights.shape[1:]) > LONG else ""
    title = f"Mean attention received in {shown.name or 'this map'}{shown.item}{part}"
    special = [n for n, token in enumerate(tokens) if token.special]
    return tokens_html([token.text for token in tokens], received, title, special)
