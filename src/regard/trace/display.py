"""Let a trace, and what is made of one, show itself: printed in a terminal, in a notebook, as a picture.

The one module below the views that imports them, and only when something is shown. HTML is what a terminal would show,
escaped, in one element that needs nothing from outside; a map's is its picture.
"""

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from regard.errors import RegardError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame
    from rich.console import Console, ConsoleOptions, RenderableType

    from regard.explain.causes.why import Why
    from regard.explain.texts.summary import Summary
    from regard.trace.labelled_map import LabelledMap
    from regard.trace.trace import PairTrace, Trace

WIDTH = 80  # columns of what a notebook shows
NAMED = 48  # tokens up to which a map is drawn cell by cell, with their names
CELLS = 256  # cells a side of the picture of a larger map, each the mean of what it stands for
MOST_ROWS = 40  # of a table that shows itself
LONG = 512  # tokens from which on a trace that shows itself does not look for what is worth a look
PRE = "white-space:pre;overflow-x:auto;line-height:1.3;font-family:Menlo,Consolas,'DejaVu Sans Mono',monospace"


class Shown:
    """Shows itself: rich prints it in a terminal, a notebook shows it as HTML."""

    def shown(self, width: int) -> "Sequence[RenderableType]":
        """The parts to show, for a terminal of so many columns."""
        raise NotImplementedError

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> Any:
        yield from self.shown(options.max_width)

    def _repr_html_(self) -> str:
        return html(self.shown(WIDTH))


@dataclass(eq=False)
class SummaryView(Shown):
    """What `see` found: the summary as plain numbers, and the traces that it is of. It shows itself."""

    summary: "Summary"
    traces: "Sequence[Any]"

    @property
    def findings(self) -> list[str]:
        """What was found, in sentences."""
        from regard.explain.findings import findings

        return findings(self.summary)

    def shown(self, width: int) -> "Sequence[RenderableType]":
        """What `regard see` prints."""
        from regard.views.terminal.brief import render

        return render(self.summary, width, more=".plot() draws it, .summary has every number")

    def plot(self, *, layer: int | None = None, head: int | None = None) -> "Figure":
        """Draw what `regard see --figure` draws. layer, head: show these."""
        from regard.views.figures.summary import paint

        return paint(self.summary, self.traces, layer=layer, head=head)

    def to_frame(self) -> "DataFrame":
        """Make a `pandas.DataFrame` of where each occurrence looks, layer by layer.

        Raises:
            RegardError: pandas is not installed, or no word is followed.
        """
        from regard.explain.frames import to_frame

        if not self.summary.occurrences:
            raise RegardError("to_frame: no word is followed, there is no table: see(word) has one")
        return to_frame(self.summary.occurrences)

    def __str__(self) -> str:
        return plain(self.shown(80))

    def __repr__(self) -> str:
        return str(self)


def see(
    traces: "Sequence[Trace | PairTrace]",
    word: str | None = None,
    *,
    references: "Trace | Sequence[Trace]" = (),
    layer: int | None = None,
    head: int | None = None,
    top: int = 5,
) -> SummaryView:
    """Look at traces as `regard see` does: at one word in them, or at what is most worth a look.

    The arguments and errors are those of `regard.explain.texts.summary.summarise`; references may be one trace.
    """
    from regard.explain.texts.summary import summarise
    from regard.trace.trace import Trace

    references = [references] if isinstance(references, Trace) else list(references)
    for each in references:
        if not isinstance(each, Trace):
            raise RegardError(
                f"references: given {type(each).__name__}, needs traces of the words: model.trace(['river', 'money'])"
            )
    if isinstance(top, bool) or not isinstance(top, int) or top < 1:
        raise RegardError(f"top: given {top!r}, needs a number from 1 on")

    given: Any = traces  # of one kind, which `summarise` checks
    return SummaryView(summarise(given, word, references=references, layer=layer, head=head, top=top), traces)


def shown_trace(trace: "Trace | PairTrace", width: int) -> "Sequence[RenderableType]":
    """The parts of a trace that shows itself: what is most worth a look, of a long one its size and status alone."""
    from rich.text import Text

    from regard.views.terminal.layout import status

    if max(len(side.tokens) for side in trace.sides) > LONG or not trace.sides[0].tokens:
        return [Text(repr(trace)), Text(), status([trace.status])]
    try:
        return see([trace]).shown(width)
    except RegardError:  # a trace that holds no attention
        return [Text(repr(trace)), Text(), status([trace.status])]


def shown_generated(text: str, new: str, trace: "Trace | PairTrace", width: int) -> "Sequence[RenderableType]":
    """The parts of a text that a model wrote: all of it, what was written in bold, then its trace."""
    from rich.text import Text

    from regard.views.terminal.layout import visible

    begins = text[: -len(new)] if new and text.endswith(new) else text if not new else ""
    written = Text.assemble(visible(begins), (visible(text[len(begins) :]), "bold"))
    return [written, Text(), *shown_trace(trace, width)]


def shown_why(why: "Why", width: int) -> "list[RenderableType]":
    """The parts of a ranking of causes: what was found in sentences, then the ranking of tokens and that of heads."""
    from regard.views.terminal.why import render_shortly

    return render_shortly([("1", why)], 10, width)


def shown_rows(rows: "Sequence[Mapping[str, Any]]", width: int) -> "list[RenderableType]":
    """A table of rows with the same columns; of more than 40, the first ones, and how many are left out."""
    from rich.text import Text

    from regard.views.terminal.layout import columns

    if not rows:
        return [Text("no rows")]
    names = [name for name in rows[0] if any(row[name] is not None for row in rows)]
    numeric = [all(isinstance(row[name], (int, float, type(None))) for row in rows) for name in names]
    table = columns(*((name, "right" if number else "left") for name, number in zip(names, numeric, strict=True)))
    for row in rows[:MOST_ROWS]:
        table.add_row(*(Text(_cell(row[name])) for name in names))
    left = len(rows) - MOST_ROWS
    note = [Text(f"… and {left} more rows: .rows() has them all, .to_frame() as a data frame", style="dim")]
    return [table, *(note if left > 0 else [])]


def plot_map(weights: "LabelledMap", head: int | None = None, axes: "Axes | None" = None) -> "Axes":
    """Draw a map (H, L, S) into axes, by default new ones of pyplot: queries down, keys across, named by their tokens.

    head: None for the mean of all heads. A map of more than 48 tokens a side is drawn as at most 256 × 256 cells, each
    the mean of the weights that it stands for.

    Raises:
        RegardError: there is no such head.
    """
    from regard.checks import from_zero
    from regard.views.figures.elements.heatmap import heatmap

    heads, length, size = weights.shape
    if head is not None and (isinstance(head, bool) or not isinstance(head, int)):
        raise RegardError(f"head: given {head!r}, needs a number, or None for the mean of all")
    if axes is not None and not hasattr(axes, "imshow"):
        raise RegardError(f"axes: given {type(axes).__name__}, needs matplotlib's Axes, or None for new ones")
    if head is not None:
        head = from_zero("head", head, heads, "the map has")
    whose = f"mean of {heads} heads" if head is None else f"head {head}"
    if axes is None:
        import matplotlib.pyplot as plt

        side = [max(3.2, 1.6 + 0.3 * min(count, NAMED)) for count in (length, size)]
        _, axes = plt.subplots(figsize=(side[1] + 0.8, side[0]), layout="constrained")
    rows, columns = (
        None if labels is None or len(labels.tokens) != count else [_name(token.text) for token in labels.tokens]
        for labels, count in ((weights.query_labels, length), (weights.key_labels, size))
    )
    if max(length, size) <= NAMED:
        matrix = weights.dense().mean(0) if head is None else weights[head]
        title = f"attention weights, {whose}"
        heatmap(matrix, rows, columns, title=title, labels=("query", "key"), axes=axes)
        return axes
    pooled = weights.pooled(min(CELLS, length), min(CELLS, size))
    matrix = pooled.mean(0) if head is None else pooled[head]
    title = f"attention weights, {whose}: {length} × {size}, a cell is the mean of its weights"
    heatmap(matrix, title=title, labels=("query", "key"), axes=axes)
    return axes


def plot_loss(log: "Sequence[dict[str, Any]]") -> "Figure":
    """Draw the loss of a training run, of the lines of its log."""
    from regard.views.figures.loss import paint_loss

    return paint_loss(log)


def map_html(weights: "LabelledMap") -> str:
    """Make the HTML of a map: its picture, the mean of its heads, with its size in words."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    heads, length, size = weights.shape
    side = [max(3.2, 1.6 + 0.26 * min(count, NAMED)) for count in (length, size)]
    figure = Figure(figsize=(side[1] + 0.8, side[0]), layout="constrained")
    FigureCanvasAgg(figure)
    plot_map(weights, axes=figure.add_subplot())
    written = io.BytesIO()
    figure.savefig(written, format="png", dpi=90)
    data = base64.b64encode(written.getvalue()).decode("ascii")
    says = f"attention weights of {heads} heads, {length} queries on {size} keys"
    return f'<img alt="{escape(says)}" src="data:image/png;base64,{data}">'


def html(parts: "Sequence[RenderableType]") -> str:
    """Make HTML of what a terminal would show: one element, escaped, that loads nothing."""
    from rich.console import Console

    console = Console(
        file=io.StringIO(),
        record=True,
        width=WIDTH,
        force_terminal=True,
        color_system="truecolor",
        highlight=False,
        force_jupyter=False,
    )
    for part in parts:
        console.print(part)
    return console.export_html(inline_styles=True, code_format=f'<pre style="{PRE}">{{code}}</pre>')


def plain(parts: "Sequence[RenderableType]", width: int = 80) -> str:
    """Make the plain text of what a terminal would show."""
    from rich.console import Console

    console = Console(file=io.StringIO(), width=width, highlight=False, color_system=None, force_jupyter=False)
    for part in parts:
        console.print(part)
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().rstrip().splitlines())


def _cell(value: Any) -> str:
    from regard.views.terminal.layout import visible

    if value is None:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else visible(str(value))


def _name(text: str) -> str:
    from regard.views.terminal.layout import spelled

    return spelled(text, 16)
