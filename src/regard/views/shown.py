"""Show traces and written texts: what a notebook and a terminal show of them, and a trace's plot."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from rich.text import Text

from regard.display.shown import LONG
from regard.display.terminal_parts import trust_lines_in_terminal
from regard.errors import RegardError
from regard.generation.generator import Generated
from regard.questions.generate.answer import generated
from regard.questions.see.see import see
from regard.text.quoting import visible
from regard.trace.trace import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import RenderableType


def plot_trace(
    trace: Any, word: str | None, layer: int | None, head: int | None, shape: Literal["slide", "column"]
) -> "Figure":
    """Draw what `see` finds. Arguments are those of `Trace.plot`."""
    return see(trace, word, layer=layer, head=head).plot(layer=layer, head=head, shape=shape)


def trace_parts(trace: Any, width: int) -> "Sequence[RenderableType]":
    """The parts of a trace that shows itself: what is most worth a look, of a long one its size and status alone."""
    if max(len(side.tokens) for side in trace.sides) > LONG or not trace.sides[0].tokens:
        return [Text(repr(trace)), Text(), trust_lines_in_terminal([trace.status])]
    try:
        return see(trace).shown(width)
    except RegardError:  # a trace that holds no attention
        return [Text(repr(trace)), Text(), trust_lines_in_terminal([trace.status])]


def generated_parts(done: Generated, width: int) -> "Sequence[RenderableType]":
    """The parts of a text that a model wrote: how it was written, of a long or translated one the text; its trace."""
    trace = done.trace
    if isinstance(trace, Trace) and trace.logits is not None and len(trace.tokens) <= LONG:
        return [*generated(done).shown(width), *trace_parts(trace, width)]
    written = Text.assemble(visible(done.text.removesuffix(done.new)), (visible(done.new), "bold"))
    return [written, Text(), *trace_parts(trace, width)]
