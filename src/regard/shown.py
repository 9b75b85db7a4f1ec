"""Provide base classes and a short repr for displaying traces, answers, tables and maps.

Results with a table are `Tabular`: head scores, rankings of causes, contributions, layer updates, the logit lens, and
occurrences with the tokens that they attend to. `result.to_frame()` returns the pandas data frame of one result (extra
`pandas`), with one row per item and one column per number. `to_frame(results)` stacks those of several, such as all
layers from `layer_updates` or all occurrences in a summary.
"""

from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from regard.errors import RegardError
from regard.lazy import from_above

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame
    from rich.console import Console, ConsoleOptions, RenderableType
else:
    DataFrame = object  # pandas is only imported when needed

Row = dict[str, str | int | float | bool | None]

WIDTH = 80  # characters per line in a notebook
MAX_CHARACTERS = 60  # characters of each field's value in `short_repr`


class Shown:
    """An object that rich prints in a terminal and a notebook shows as HTML."""

    def shown(self, width: int) -> "Sequence[RenderableType]":
        """Return the parts to print in a terminal of `width` columns."""
        raise NotImplementedError

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> Any:
        yield from self.shown(options.max_width)

    def _repr_html_(self) -> str:
        return from_above("parts_html")(self.shown(WIDTH))


class Tabular(Shown):
    """A result that is shown as a table."""

    def rows(self) -> list[Row]:
        """Return the table's rows, each a dict of numbers and names by column. All rows have the same columns."""
        raise NotImplementedError

    def shown(self, width: int) -> "list[RenderableType]":
        """Return the table as renderables for a terminal of `width` columns. A long table is cut."""
        return from_above("rows_parts")(self.rows())

    def __str__(self) -> str:
        return from_above("plain_text_of_parts")(self.shown(80))

    def __repr__(self) -> str:
        """Return the table as text. The representation that a dataclass generates overrides this."""
        return str(self)

    def to_frame(self) -> DataFrame:
        """Convert the table of this result to a `pandas.DataFrame`."""
        return to_frame(self)


def to_frame(tables: Tabular | Iterable[Tabular]) -> DataFrame:
    """Convert a table to a `pandas.DataFrame`, or stack several tables of one kind in one frame."""
    results = list(tables) if isinstance(tables, Iterable) else [tables]
    for result in results:
        if not isinstance(result, Tabular):
            raise RegardError(f"to_frame: got {type(result).__name__}, expected a result of regard.explain")
    try:
        import pandas
    except ImportError:
        raise RegardError("to_frame needs pandas, which is not installed: pip install 'regard[pandas]'") from None
    return pandas.DataFrame([row for result in results for row in result.rows()])


def short_repr(value: Any) -> str:
    """Return a short repr of a dataclass: shapes of tensors, lengths of long collections, beginnings of texts.

    Use it in a class as `__repr__ = short_repr`.
    """
    shown = [f"{item.name}={_short_value(getattr(value, item.name))}" for item in fields(value) if item.repr]
    return f"{type(value).__name__}({', '.join(shown)})"


def _short_value(value: Any) -> str:
    kind, shape = type(value).__name__, getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return f"{kind}{tuple(shape)}"
    if isinstance(value, str):
        return repr(value if len(value) <= MAX_CHARACTERS else value[: MAX_CHARACTERS - 1] + "…")
    if isinstance(value, (list, tuple, dict)) and len(value) > 3:
        return f"{kind} of {len(value)}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_short_value, value))}]"
    return f"{kind}(…)" if is_dataclass(value) or len(repr(value)) > MAX_CHARACTERS else repr(value)


class Showable:
    """A base class for attention that can be plotted and shown."""

    def plot(self, head: int | None = None, **options: Any) -> "Axes":
        """Draw the weights with `regard.plot`. options: its arguments, such as `tokens`, `batch` and `axes`."""
        return from_above("plot")(self, head=head, **options)

    def show(self, **options: Any) -> Any:
        """Show the interactive page with `regard.show`. options: its arguments, such as `tokens` and `batch`."""
        return from_above("show")(self, **options)

    def _repr_html_(self) -> str | None:
        """Return HTML for some of the weights, or None if they are no longer available."""
        return from_above("attention_html")(self)
