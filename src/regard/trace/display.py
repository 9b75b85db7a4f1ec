"""Let a trace, and what is made of one, show itself: printed in a terminal, in a notebook, as a picture.

The one module below `display` that imports it, and only when something is shown. HTML is a text's tokens, shaded, and
what a terminal would show; it needs nothing from outside.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

from regard.errors import RegardError
from regard.text.quoting import visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console, ConsoleOptions, RenderableType

    from regard.attention.attention_map import AttentionMap
    from regard.attention.recording import Calls
    from regard.generation.generator import Generated
    from regard.questions.generate.answer import Generation
    from regard.questions.see.answer import Seen
    from regard.questions.see.picture.whole import Shape
    from regard.trace.labelled_map import Labels
    from regard.trace.trace import Trace

WIDTH = 80  # columns of what a notebook shows
MOST_ROWS = 40  # of a table that shows itself
LONG = 512  # tokens from which on a trace that shows itself does not look for what is worth a look
FONT = "font:14px/2 system-ui,sans-serif;overflow-wrap:anywhere"


class Shown:
    """Shows itself: rich prints it in a terminal, a notebook shows it as HTML."""

    def shown(self, width: int) -> "Sequence[RenderableType]":
        """The parts to show, for a terminal of so many columns."""
        raise NotImplementedError

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> Any:
        yield from self.shown(options.max_width)

    def _repr_html_(self) -> str:
        return html(self.shown(WIDTH))


class ShownTrace(Shown):
    """What every kind of trace can do: be looked at, and drawn. windowed: whether its text was read in windows."""

    windowed: ClassVar[bool] = False

    def see(
        self,
        word: str | None = None,
        *,
        references: "Trace | Sequence[Trace]" = (),
        control: "Sequence[Trace] | None" = None,
        layer: int | None = None,
        head: int | None = None,
        top: int = 5,
    ) -> "Seen":
        """Look at a word, or without one at what is most worth a look: what `regard see` prints.

        Of a text that was read in windows each window is shown as a text of its own, those alone that have the word.

        references: traces of words to compare it with, each a text of its own: `model.trace(["money", "river"])`.
        control: traces of neutral sentences with the word, `model.trace(regard.neutral_sentences("bank"))`: what this
            text does to it beside the references is told against these, and without them not at all.
        layer, head: single heads to show beside the mean of heads. top: how many tokens to name.

        Returns a `Seen`, which shows itself, and has the numbers as `.summary` and the sentences as `.findings()`.
        """
        return see([self], word, references=references, control=control, layer=layer, head=head, top=top)

    def plot(
        self, word: str | None = None, *, layer: int | None = None, head: int | None = None, shape: "Shape" = "slide"
    ) -> "Figure":
        """Draw what `see` finds, as `regard see --figure` does; of a pair its alignment.

        layer, head: show these. shape: a "slide" (16:9), or a "column" of a paper, 85 mm wide.
        """
        return self.see(word, layer=layer, head=head).plot(layer=layer, head=head, shape=shape)

    def shown(self, width: int) -> "Sequence[RenderableType]":
        """What a notebook shows of it."""
        return shown_trace(self, width)


def see(
    traces: Sequence[ShownTrace],
    word: str | None = None,
    *,
    references: "Trace | Sequence[Trace]" = (),
    control: "Sequence[Trace] | None" = None,
    layer: int | None = None,
    head: int | None = None,
    top: int = 5,
) -> "Seen":
    """Look at traces of one kind as `regard see` does: at one word in them, or at what is most worth a look.

    Errors are those of `regard.explain.texts.summary.summarise`.
    """
    from regard.questions.see.answer import seen

    references, control = listed_references(references), listed_control(control)
    if isinstance(top, bool) or not isinstance(top, int) or top < 1:
        raise RegardError(f"top: given {top!r}, needs a number from 1 on")
    given: Any = traces  # of one kind, which `seen` checks
    return seen(given, word, references=references, control=control, layer=layer, head=head, top=top)


def seen_on_a_page(traces: Sequence[Any], word: str | None, **how: Any) -> "Seen | Generation | list[str]":
    """Look at traces for a page, or say why not: `regard.questions.see.answer.on_a_page`, its arguments and errors."""
    from regard.questions.see.answer import on_a_page

    return on_a_page(traces, word, **how)


def listed_references(references: "Trace | Sequence[Trace]") -> "list[Trace]":
    """Return reference words as a list, one as a list of itself. Raises RegardError for what is no trace."""
    return _traces_as_list("references", references, "needs traces of the words: model.trace(['river', 'money'])")


def listed_control(control: "Sequence[Trace] | None") -> "list[Trace] | None":
    """Return traces of neutral sentences as a list. Raises RegardError for what is no trace."""
    needs = "needs traces of neutral sentences: model.trace(regard.neutral_sentences('bank'))"
    return None if control is None else _traces_as_list("control", control, needs)


def _traces_as_list(what: str, given: "Trace | Sequence[Trace]", needs: str) -> "list[Trace]":
    from regard.trace.trace import Trace

    if not isinstance(given, (Trace, Iterable)):
        raise RegardError(f"{what}: given {type(given).__name__}, {needs}")
    listed = [given] if isinstance(given, Trace) else list(given)
    for each in listed:
        if not isinstance(each, Trace):
            raise RegardError(f"{what}: given {type(each).__name__}, {needs}")
    return listed


def shown_trace(trace: ShownTrace, width: int) -> "Sequence[RenderableType]":
    """The parts of a trace that shows itself: what is most worth a look, of a long one its size and status alone."""
    from rich.text import Text

    from regard.display.terminal_parts import trust_lines_in_terminal

    kept: Any = trace
    if max(len(side.tokens) for side in kept.sides) > LONG or not kept.sides[0].tokens:
        return [Text(repr(trace)), Text(), trust_lines_in_terminal([kept.status])]
    try:
        return trace.see().shown(width)
    except RegardError:  # a trace that holds no attention
        return [Text(repr(trace)), Text(), trust_lines_in_terminal([kept.status])]


def shown_generated(done: "Generated", width: int) -> "Sequence[RenderableType]":
    """The parts of a text that a model wrote: how it was written, of a long or translated one the text; its trace."""
    from rich.text import Text

    from regard.trace.trace import Trace

    trace = done.trace
    if isinstance(trace, Trace) and trace.logits is not None and len(trace.tokens) <= LONG:
        from regard.questions.generate.answer import generation

        return [*generation(done).shown(width), *shown_trace(trace, width)]
    written = Text.assemble(visible(done.text.removesuffix(done.new)), (visible(done.new), "bold"))
    return [written, Text(), *shown_trace(trace, width)]


def shown_rows(rows: "Sequence[Mapping[str, Any]]") -> "list[RenderableType]":
    """A table of rows with the same columns; of more than 40, the first ones, and how many are left out."""
    from rich.text import Text

    from regard.display.terminal_parts import columns

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


def calls_html(calls: "Calls") -> str:
    """Make the HTML of recorded calls: a table of the first ones, and the lines below it."""
    from rich.text import Text

    rows = [
        {"path": call.path, "call": call.nth, "how": call.how, "weights": str(tuple(call.source.shape)),
         "line": call.where.replace("\\", "/").rpartition("/")[2] or None}
        for call in list(calls.values())[:MOST_ROWS]
    ]  # fmt: skip
    lines = [f"… and {len(calls) - MOST_ROWS} more"] * (len(calls) > MOST_ROWS) + calls.lines_below()
    return html([*shown_rows(rows), *map(Text, lines)])


def map_html(maps: "Sequence[AttentionMap]", label: "Labels | None", what: str) -> str | None:
    """Make the HTML of the first keys of maps, shaded by what they receive. None if their tokens are not known."""
    if label is None or any(each.shape[2] != len(label.tokens) for each in maps):
        return None
    tokens, got = label.tokens[:LONG], [each[:, :LONG, :LONG].double().mean((0, 1)).cpu() for each in maps]
    part = f", by and from the first {LONG} tokens" if max(max(each.shape[1:]) for each in maps) > LONG else ""
    said = f"Mean attention received {what}{part}"
    apart = [n for n, token in enumerate(tokens) if token.special]
    return tokens_html([token.text for token in tokens], (sum(got[1:], got[0]) / len(got)).tolist(), said, apart)


def tokens_html(
    tokens: Sequence[str], values: Sequence[float | None], said: str, apart: Sequence[int] = (), full: float = 0.0
) -> str:
    """Make the HTML of a text: each token on a colour that is as strong as its number is, which a pointer shows.

    apart: the special ones, which are grey. full: the number of the strongest colour, 0 for the largest of others.
    """
    full = full or max((value or 0.0 for n, value in enumerate(values) if n not in apart), default=0.0) or 1.0
    spans = []
    for n, (token, value) in enumerate(zip(tokens, values, strict=True)):
        part = round(65 * min(1.0, max(0.0, (value or 0.0) / full)))
        shade = f"color-mix(in srgb,{'#888' if n in apart else '#2b7bba'} {part}%,transparent)"
        number = "" if value is None else f' title="{value:.2f}"'
        spans.append(f'<span style="background:{shade};padding:.1em .2em"{number}>{escape(visible(token))}</span>')
    if "full bar" not in said and any(value is not None for value in values):
        said += f" (strongest color: {full:.2f})"
    told = escape(visible(said.replace("full bar", "strongest color")))
    return f'<div style="{FONT}"><div style="opacity:.75">{told}</div><div dir="auto">{" ".join(spans)}</div></div>'


def html(parts: "Sequence[RenderableType]") -> str:
    """Make HTML of parts, escaped, that loads nothing."""
    from regard.display.notebook import parts_html

    return parts_html(parts)


def plain_text_of_display(parts: "Sequence[RenderableType]", width: int = 80) -> str:
    """Make the plain text of what a terminal would show."""
    from regard.display.terminal_parts import plain_lines_of_parts

    return "\n".join(plain_lines_of_parts(parts, width)).rstrip()


def _trace_table_cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:z.3f}" if isinstance(value, float) else visible(str(value))
