"""What every kind of trace can do: be drawn, and show itself in notebooks and terminals."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from regard.lazy import from_above
from regard.shown import Shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import RenderableType


class ShownTrace(Shown):
    """A trace that shows itself. windowed: whether its text was read in windows."""

    windowed: ClassVar[bool] = False

    def plot(
        self,
        word: str | None = None,
        *,
        layer: int | None = None,
        head: int | None = None,
        shape: Literal["slide", "column"] = "slide",
    ) -> "Figure":
        """Draw what `regard.see` finds, as `regard see --figure` does; of a pair its alignment.

        layer, head: show these. shape: a "slide" (16:9), or a "column" of a paper, 85 mm wide.
        """
        return from_above("plot_trace")(self, word, layer, head, shape)

    def shown(self, width: int) -> "Sequence[RenderableType]":
        """What a notebook shows of it."""
        return from_above("trace_parts")(self, width)
