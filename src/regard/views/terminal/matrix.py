"""A layer's whole attention matrix in a terminal."""

import re
from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.text import Text

from regard.explain.findings.matrix import matrix_findings
from regard.explain.matrices.matrix import AROUND, HeadFigures, Matrix, Pair, Place, Receiver
from regard.views.terminal.layout import columns, put, section, short, shown, spelled, status, visible
from regard.views.terminal.one_screen import bar, ending, heights, resampled, sentences
from regard.views.terminal.unknown_tokens import of_matrix, unknown_first

MOST_ROWS = 8  # of the table on the first screen


def show_matrix_shortly(matrix: Matrix, name: str, console: Console, took: float | None = None) -> None:
    """Print what was found on one screen: sentences, what the text's parts receive as bars, the far pairs."""
    parts: list[RenderableType] = [*unknown_first(of_matrix(matrix)), sentences(matrix_findings(matrix))]
    parts += _along(matrix, name, console.width)
    parts.append(_far(matrix, console.width) if matrix.pairs else _received(matrix.receivers[:MOST_ROWS]))
    more = "--all (each head, who receives most), --figure FILE, --json FILE"
    put([*parts, ending([matrix.status], more, took)], console)


def _along(matrix: Matrix, name: str, width: int) -> list[RenderableType]:
    """A line of bars along the text: what its parts receive, cut where half of the parts would be flat beside it."""
    room = width - 4
    bars = resampled(matrix.received, room)
    full = max(2.0, sorted(bars)[int(0.98 * (len(bars) - 1))])  # one special token would make all others flat
    each = max(1, round(matrix.tokens / len(bars)))
    what = "a token" if each == 1 else f"about {each} tokens, the largest of them"
    title = f"Where {short(name, 30)} is looked at, from its first of {matrix.tokens} tokens to its last"
    note = f"a bar: {what}; full at {full:.1f} times what tokens receive on average"
    return [Text(title, style="bold"), Text(f"  {heights(bars, full)}", style="cyan"), Text(note, style="dim"), Text()]


def _far(matrix: Matrix, width: int) -> RenderableType:
    """The far pairs, one a line, each token in the text that is around it."""
    several = len({pair.head for pair in matrix.pairs}) > 1
    table = columns(("weight", "right"), "", *([("head", "right")] * several), ("apart", "right"), "looks", "at")
    room = max(12, (width - 36) // 2)
    for pair in matrix.pairs[:MOST_ROWS]:
        head = [str(pair.head)] * several
        inside = (_inside(pair.query, room), _inside(pair.key, room))
        table.add_row(f"{pair.weight:.2f}", bar(pair.weight, 1.0, 6), *head, str(pair.distance), *inside)
    left = len(matrix.pairs) - MOST_ROWS
    notes = [f"tokens more than {matrix.far} apart, special ones and sinks aside"]
    notes += [f"{left} more pairs with --all"] if left > 0 else []
    return Group(table, Text("; ".join(notes), style="dim"), Text())


def _inside(place: Place, room: int) -> Text:
    """A token between ‹ and › in as much of the text around it as there is room for."""
    if place.start == place.end:  # a special token: it stands for no characters
        return Text.assemble("‹", (spelled(place.text, 12), "bold"), "›")
    at = place.start - max(0, place.start - AROUND)
    own = place.end - place.start
    before, after = (_one_line(part) for part in (place.around[:at], place.around[at + own :]))
    name = spelled(place.text, 12)
    spare = max(0, room - len(name) - 2)
    left = min(len(before), max(spare // 2, spare - len(after)))
    return Text.assemble(
        (before[len(before) - left :], "dim"), "‹", (name, "bold"), "›", (after[: max(0, spare - left)], "dim")
    )


def _one_line(text: str) -> str:
    """A text with each of its stretches of blanks as one."""
    return visible(re.sub(r"\s+", " ", text))


def show_matrix(matrix: Matrix, name: str, console: Console, took: float | None = None) -> None:
    """Print what a person reads of a matrix, then its status. name: the text's. took: seconds for everything."""
    heads = f"head {matrix.head}" if matrix.head is not None else f"mean of {len(matrix.heads)} heads"
    title = f"{short(name, 40)}: {matrix.tokens} tokens, layer {matrix.layer}, {heads}"
    put(
        [
            *unknown_first(of_matrix(matrix)),
            section(title, _means(matrix.heads)),
            _received(matrix.receivers),
            _pairs(matrix.pairs, matrix.far),
            status([matrix.status], took=took),
        ],
        console,
    )


def _means(heads: Sequence[HeadFigures]) -> Group:
    """One line a head: means over all queries."""
    sinks, tokens = any(each.sink > 0 for each in heads), any(each.sink_tokens > 0 for each in heads)
    last = ([("to sink tokens", "right")] if tokens else []) + ([("to its sink", "right")] if sinks else [])
    rows = columns(
        ("head", "right"), ("entropy", "right"), ("distance", "right"), ("to special tokens", "right"), *last
    )
    for each in heads:
        figures = [f"{each.entropy:.2f}", f"{each.distance:.1f}", f"{each.special:.1%}"]
        figures += ([f"{each.sink_tokens:.1%}"] if tokens else []) + ([f"{each.sink:.1%}"] if sinks else [])
        rows.add_row(str(each.head), *figures)
    return Group(rows, Text("means over all queries; entropy in nats, distance in tokens", style="dim"))


def _received(receivers: Sequence[Receiver]) -> Group:
    rows = columns("token", ("number", "right"), ("received", "right"), ("of all", "right"), "around it")
    for each in receivers:
        kind = " (special)" if each.special else " (sink)" if each.sink else ""
        name = f"{spelled(each.place.text, 16)}{kind}"
        rows.add_row(name, str(each.place.token), shown(each.received, ".1f"), f"{each.share:.2%}", _around(each.place))
    legend = "received: the weights on it, summed over all queries; 1 is what tokens get on average"
    legend += "\nsink: it receives far more than its share in most heads, whatever it means" * any(
        e.sink for e in receivers
    )
    return section("Tokens that receive most", rows, Text(legend, style="dim"))


def _pairs(pairs: Sequence[Pair], far: int) -> Group:
    title = f"Largest weights between tokens more than {far} apart, special tokens and sinks aside"
    if not pairs:
        return section(title, Text("none: no token attends so far"))
    rows = columns(("weight", "right"), ("head", "right"), ("apart", "right"), "from (query) and to (key)")
    for each in pairs:
        pair = f"{_named(each.query)}\n{_named(each.key)}"
        rows.add_row(f"{each.weight:.3f}", str(each.head), str(each.distance), pair)
    return section(title, rows)


def _named(place: Place) -> str:
    return f"{spelled(place.text, 12)} ({place.token})  {_around(place)}"


def _around(place: Place, most: int = 30) -> str:
    """The text around a token, on one line; nothing for a token that stands for no characters."""
    if place.start == place.end:
        return ""
    line = visible(" ".join(place.around.split()))
    spare = max(0, len(line) - most)
    return line[spare // 2 : len(line) - (spare - spare // 2)]
