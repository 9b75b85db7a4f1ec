"""Let traces, answers and tables show themselves, by functions of higher modules: see `regard.lazy.ABOVE`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from regard.lazy import from_above

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

WIDTH = 80  # columns of what a notebook shows


class Shown:
    """Shows itself: rich prints it in a terminal, a notebook shows it as HTML."""

    def shown(self, width: int) -> "Sequence[RenderableType]":
        """The parts to show, for a terminal of so many columns."""
        raise NotImplementedError

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> Any:
        yield from self.shown(options.max_width)

    def _repr_html_(self) -> str:
        return from_above("parts_html")(self.shown(WIDTH))
