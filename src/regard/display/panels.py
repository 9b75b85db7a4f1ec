"""Define panels, the data that an answer shows: tables, bars, heat maps, token strips, scatters and curves.

A panel has numbers and names, but no tensors, traces or colours. `terminal`, `figure` and `page` draw every kind, and
round its numbers. The page's data has fields of the same names: `web/src/data/format.ts`.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal


@dataclass(frozen=True)
class InContext:
    """A word with the text to its left and right, for a concordance (KWIC)."""

    left: str
    form: str
    right: str


@dataclass(frozen=True)
class Shares:
    """A table cell with several named numbers, in order. apart: how many names at the start are dimmed, such as sinks.

    mark: text after the last number. one_line: a terminal shows only as many numbers as fit on one line.
    """

    parts: Sequence[tuple[str, float]]
    apart: int = 0
    mark: str = ""
    digits: int = 2
    signed: bool = False
    one_line: bool = False


Cell = str | int | float | None | InContext | Shares
Number = float | None  # None or NaN for a missing number
Data = dict[str, Any]  # a panel as page data


@dataclass(frozen=True, kw_only=True)
class Panel:
    """The fields of all panels. name: the page's tab, and the argument of `plot`. note: how to read the panel.

    caption: a sentence below the title, for figures, which have no notes. A page shows it unless its title or note
    contains the same words.
    screen: show the panel on a terminal's first screen. brief: show it only there, because other panels have all its
    numbers. picture: `plot` draws it if no panel is named.
    group: a name for panels shown side by side: heat maps in a figure, tables on a terminal's first screen.
    tab: the page's tab, if several panels share it.
    unbounded: numbers are not fractions, as in `Column`.
    """

    ranked: ClassVar[bool] = True  # a terminal shows the largest or first parts, up to a requested number

    name: str
    title: str
    note: str = ""
    caption: str = ""
    screen: bool = False
    brief: bool = False
    picture: bool = False
    group: str = ""
    tab: str = ""
    unbounded: bool = False


@dataclass(frozen=True)
class Later:
    """A panel that is computed only when needed. First screens and figures don't have it. make: makes it by name."""

    screen = brief = picture = ranked = False

    name: str
    make: Callable[[str], Panel]


def numbered(count: int) -> list[str]:
    """Return names of rows or columns: their numbers, counted from 0."""
    return [str(n) for n in range(count)]


def made(panels: Iterable[Panel | Later]) -> list[Panel]:
    """Return panels with each `Later` replaced by the panel that it makes."""
    return [panel.make(panel.name) if isinstance(panel, Later) else panel for panel in panels]


def decimals(values: Iterable[Any], digits: int = 2) -> int:
    """Return the number of decimals for a panel: two, or for small numbers enough to print two digits of the largest.

    digits: the panel's decimals. If they aren't two, they are returned unchanged.
    """
    sizes = (abs(value) for value in values if isinstance(value, int | float) and math.isfinite(value))
    largest = max(sizes, default=0.0)
    return min(6, 1 - math.floor(math.log10(largest))) if digits == 2 and 0 < largest < 0.0995 else digits


def untold(panel: Panel, *texts: str) -> str:
    """Return a panel's caption, or "" if one of the texts shown with the panel contains it."""
    caption = panel.caption.removesuffix(".").lower()
    return "" if any(caption in text.lower() for text in texts) else panel.caption


@dataclass(frozen=True)
class Column:
    """A column of a table. digits: decimals of its numbers, None for text. bar: also draw its numbers as bars.

    signed: its numbers have a sign, as differences do.
    unbounded: its numbers, such as scores, are not fractions, so that 0.997 is printed as 1.00 instead of >0.99.
    detail: a terminal's first screen omits it.
    """

    name: str
    digits: int | None = None
    bar: bool = False
    signed: bool = False
    detail: bool = False
    unbounded: bool = False


@dataclass(frozen=True, kw_only=True)
class Table(Panel):
    """A table of rows in a meaningful order, such as largest first. total: a last row, which is always shown."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    total: Sequence[Cell] | None = None

    def __post_init__(self) -> None:
        fitted = [
            replace(column, digits=decimals((row[n] for row in self.rows), column.digits)) if column.digits else column
            for n, column in enumerate(self.columns)
        ]
        object.__setattr__(self, "columns", fitted)

    def signed(self, column: int) -> bool:
        """Return whether a column's bars are red above 0 and blue below."""
        cells = (row[column] for row in self.rows)
        return self.columns[column].signed or any(isinstance(cell, (int, float)) and cell < 0 for cell in cells)


@dataclass(frozen=True, kw_only=True)
class Bars(Panel):
    """A bar chart of named numbers, in the order of parts, usually the largest absolute numbers first.

    part: the type of the parts, such as "token". unit: the quantity. whole: the sum of all numbers, if it is
    meaningful. Views then show the sum of the parts they omit. signed: numbers have a sign, and a colour for each sign.
    """

    parts: Sequence[tuple[str, float]]
    part: str = "part"
    unit: str
    whole: float | None = None
    signed: bool = True
    digits: int = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "digits", decimals((value for _, value in self.parts), self.digits))


@dataclass(frozen=True, kw_only=True)
class Sums:
    """The sums of a heat map's rows and columns, and its total.

    across, down: names for the sum of a row and for the sum of a column. name: the name of the total.
    """

    rows: Sequence[float]
    columns: Sequence[float]
    all: float
    across: str
    down: str
    name: str


@dataclass(frozen=True)
class TokenText:
    """The tokens of a text to which a heat map's cells refer. direction: the text's reading direction."""

    tokens: Sequence[str]
    direction: Literal["ltr", "rtl"]


@dataclass(frozen=True, kw_only=True)
class Behind:
    """The components of each cell of a heat map, one per token of a text.

    of: for each row, the index of its text. values: [row][column][token], None for cells without components.
    """

    note: str
    texts: Sequence[TokenText]
    of: Sequence[int]
    values: Sequence[Sequence[Sequence[float] | None]]


@dataclass(frozen=True)
class Over:
    """The titles and numbers of a heat map along a third axis, such as training steps. A page shows a slider for it.

    The last entries belong to the heat map itself, which terminals and figures show.
    """

    titles: Sequence[str]
    values: Sequence[Sequence[Sequence[Number]]]


@dataclass(frozen=True, kw_only=True)
class Heat(Panel):
    """A heat map. axes: the names of the two axes. values: [row][column]. signed: a colour for each sign.

    largest: the value of the darkest colour, None for the largest value. said: a sentence for each cell, if row, column
    and number are not enough. sums: the sums of rows and columns. behind: the components of each cell.
    upwards: a figure has the first row at the bottom.
    written: names that a figure prints in cells instead of numbers. strong: cells with bold names.
    grey: cells (row, column) in grey, which the note explains. under: the name of the heat map (of ink, 0 to 1) that a
    page shows as an image under this one. If it is this panel's name, this panel is that image.
    """

    ranked: ClassVar[bool] = False  # a terminal shows all rows and as many columns as fit

    rows: Sequence[str]
    columns: Sequence[str]
    values: Sequence[Sequence[Number]]
    axes: tuple[str, str]
    unit: str
    signed: bool = False
    largest: float | None = None
    digits: int = 2
    said: Sequence[Sequence[str]] | None = None
    sums: Sums | None = None
    behind: Behind | None = None
    over: Over | None = None
    upwards: bool = False
    written: Sequence[Sequence[str]] | None = None
    strong: Sequence[tuple[int, int]] = ()
    grey: Sequence[tuple[int, int]] = ()
    under: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "digits", decimals((value for row in self.values for value in row), self.digits))


@dataclass(frozen=True, kw_only=True)
class Strip(Panel):
    """A strip of a text's tokens with one number per token.

    full: the number of a full bar. If given, a terminal shows the text with a bar under each token. Of a long text, it
    shows the lines around the first marked token. marked: the highlighted tokens. special: the special tokens.
    label: text that a terminal prints before the first line. joined: the next strip shares this strip's title.
    running: a terminal prints the tokens without gaps, like text. Tokens without a number are dim.
    before: the text between the previous token and each token. If given, a terminal prints the whole text with a
    background colour for each token.
    """

    tokens: Sequence[str]
    values: Sequence[Number]
    unit: str
    signed: bool = False
    digits: int = 2
    full: float | None = None
    marked: Sequence[int] = ()
    special: Sequence[int] = ()
    label: str = ""
    joined: bool = False
    running: bool = False
    before: Sequence[str] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "digits", decimals(self.values, self.digits))


@dataclass(frozen=True)
class Point:
    """A point of a scatter plot. group: points of a group share a colour. after: the index of the point it moved from.

    context: the word in its text, if the point represents a word of a text.
    """

    x: float
    y: float
    label: str
    group: str
    after: int | None = None
    context: InContext | None = None


@dataclass(frozen=True)
class Called:
    """The names of a scatter plot's labels, groups and contexts."""

    label: str = "label"
    group: str = "group"
    context: str = "text"


@dataclass(frozen=True, kw_only=True)
class Scatter(Panel):
    """A scatter plot of points in groups, with arrows between points that moved. x, y: the names of the axes.

    Both axes have the same scale, so that distances can be compared.
    """

    x: str
    y: str
    points: Sequence[Point]
    called: Called = Called()


@dataclass(frozen=True)
class Curve:
    """A line with increasing x. since, low, high: if points are means, the first x and the range of averaged values."""

    name: str
    x: Sequence[int]
    y: Sequence[Number]
    since: Sequence[int] | None = None
    low: Sequence[Number] | None = None
    high: Sequence[Number] | None = None


@dataclass(frozen=True, kw_only=True)
class Curves(Panel):
    """A plot of lines over one axis. x, y: the names of the axes. digits: decimals of y.

    full: for a single line, the y of a full bar. If given, a terminal draws bars across its whole width.
    """

    x: str
    y: str
    series: Sequence[Curve]
    digits: int = 2
    full: float | None = None
