"""A layer's whole attention matrix in a terminal."""

from collections.abc import Sequence

from rich.console import Console, Group
from rich.text import Text

from regard.explain.matrix import HeadFigures, Matrix, Pair, Place, Receiver
from regard.views.terminal.layout import columns, put, section, short, shown, spelled, status, visible
from regard.views.terminal.unknown_tokens import of_matrix, unknown_first


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
