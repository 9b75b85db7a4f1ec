"""Return results as pandas data frames (extra `pandas`): one row per item, one column per number.

Results with a table are `Tabular`: head scores, rankings of causes, contributions, layer updates, the logit lens, and
occurrences with the tokens that they attend to. `result.to_frame()` returns the frame of one result.
`to_frame(results)` stacks those of several, such as all layers from `layer_updates` or all occurrences in a summary.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from regard.errors import RegardError
from regard.lazy import from_above
from regard.shown import Shown

if TYPE_CHECKING:
    from pandas import DataFrame
    from rich.console import RenderableType
else:
    DataFrame = object  # pandas is only imported when needed

Row = dict[str, str | int | float | bool | None]


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
