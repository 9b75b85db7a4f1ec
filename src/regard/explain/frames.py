"""Give what was found as data frames of pandas (extra `pandas`): a row for each item, a column for each figure.

What has a table is a `Tabular`: the scores of heads, a ranking of causes, contributions, layer updates, the logit lens,
and where an occurrence looks. `found.to_frame()` is the frame of one, `to_frame(many)` of several, one below the other:
of the layers that `layer_updates` lists, or of all occurrences in a summary.
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
    DataFrame = object  # pandas is not imported before it is needed

Row = dict[str, str | int | float | bool | None]


class Tabular(Shown):
    """Data that has a table, as which it shows itself."""

    def rows(self) -> list[Row]:
        """List the rows, each a figure or name by its column, in plain Python; all have the same columns."""
        raise NotImplementedError

    def shown(self, width: int) -> "list[RenderableType]":
        """The rows as a table; of many, the first ones."""
        return from_above("rows_parts")(self.rows())

    def __str__(self) -> str:
        return from_above("plain_text_of_parts")(self.shown(80))

    def __repr__(self) -> str:
        """The representation, unless a dataclass makes its own, as components of others do."""
        return str(self)

    def to_frame(self) -> DataFrame:
        """Make the `pandas.DataFrame` of the table."""
        return to_frame(self)


def to_frame(tables: Tabular | Iterable[Tabular]) -> DataFrame:
    """Make a `pandas.DataFrame` of one table, or of several of one kind, one below the other."""
    given = list(tables) if isinstance(tables, Iterable) else [tables]
    for each in given:
        if not isinstance(each, Tabular):
            raise RegardError(f"to_frame: got {type(each).__name__}, expected a result of regard.explain")
    try:
        import pandas
    except ImportError:
        raise RegardError("to_frame needs pandas, which is not installed: pip install 'regard[pandas]'") from None
    return pandas.DataFrame([row for each in given for row in each.rows()])
