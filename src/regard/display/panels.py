"""Define panels, the data that an answer shows: tables, bars, heat maps, token strips, scatters and curves.

A panel holds numbers and names, no tensor, trace or colour. `terminal`, `figure` and `page` draw every kind, and round
its numbers. The page has a panel's fields by the same names: `web/src/data/format.ts`.
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
    """A table cell with several named numbers, in order. apart: the number of first names that are dimmed, as sinks.

    mark: text after the last number. one_line: a terminal shows only as many as fit one line, else all.
    """

    parts: Sequence[tuple[str, float]]
    apart: int = 0
    mark: str = ""
    digits: int = 2
    signed: bool = False
    one_line: bool = False


Cell = str | int | float | None | InContext | Shares
Number = float | None  # None or NaN for a missing number
Data = dict[str, Any]  # a panel as a page has it


@dataclass(frozen=True, kw_only=True)
class Panel:
    """The fields of all panels. name: of the page's tab, and for `plot`. note: how to read the panel, in sentences.

    caption: a sentence that a reader of a figure needs, because figures have no notes. It is below the title. A page
    has it if neither title nor note has the same words.
    screen: show the panel on a terminal's first screen. brief: only there, because other panels have all its numbers.
    picture: `plot` draws it if no panel is named.
    group: the name of panels that belong together: heat maps are side by side under this name in a figure, tables on a
    terminal's first screen. tab: of the page, shared with other panels of this tab.
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
    """A panel that is computed when it is needed, on no first screen and in no figure. make: from the name."""

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
    """Return the number of decimals to print numbers with: two, or for small numbers two digits of the largest.

    digits: the panel's decimals, returned if they aren't two.
    """
    sizes = (abs(value) for value in values if isinstance(value, int | float) and math.isfinite(value))
    largest = max(sizes, default=0.0)
    return min(6, 1 - math.floor(math.log10(largest))) if digits == 2 and 0 < largest < 0.0995 else digits


def untold(panel: Panel, *texts: str) -> str:
    """Return a panel's caption, or "" if one of the texts shown with it contains the caption."""
    said = panel.caption.removesuffix(".").lower()
    return "" if any(said in text.lower() for text in texts) else panel.caption


@dataclass(frozen=True)
class Column:
    """A column of a table. digits: decimals of its numbers, None for text. bar: also draw its numbers as bars.

    signed: its numbers have a sign, as differences do.
    unbounded: its numbers, such as scores, are not fractions: 0.997 is then 1.00 and not >0.99.
    detail: it is not on a terminal's first screen.
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

    part: what a name is, such as "token". unit: what a number is. whole: the sum of all numbers, if it means something:
    the numbers that a view leaves out are then summed. signed: numbers have a sign, and a colour for each sign.
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

    across, down: what the sum of a row and of a column is called. name: what the total is.
    """

    rows: Sequence[float]
    columns: Sequence[float]
    all: float
    across: str
    down: str
    name: str


@dataclass(frozen=True)
class TokenText:
    """The tokens of a text that a heat map's cells are about. direction: the reading direction of its script."""

    tokens: Sequence[str]
    direction: Literal["ltr", "rtl"]


@dataclass(frozen=True, kw_only=True)
class Behind:
    """The components of each cell of a heat map: a number for each token of a text.

    of: which of texts a row is about. values: [row][column][token], None if there is no such cell.
    """

    note: str
    texts: Sequence[TokenText]
    of: Sequence[int]
    values: Sequence[Sequence[Sequence[float] | None]]


@dataclass(frozen=True)
class Over:
    """The titles and numbers of a heat map along one more axis, such as the steps of a training.

    The last are the heat map's own, which terminals and figures show. A page has a slider.
    """

    titles: Sequence[str]
    values: Sequence[Sequence[Sequence[Number]]]


@dataclass(frozen=True, kw_only=True)
class Heat(Panel):
    """A heat map. axes: what rows and columns are. values: [row][column]. signed: a colour for each sign.

    largest: the value of the darkest colour, None for the largest value. said: a sentence for each cell, if row, column
    and number are not enough. sums: of rows and columns; a figure then joins the smallest rows and columns. behind: the
    components of each cell. others: how many rows and columns are already joined in the last, 0 for none. upwards: a
    figure has the first row at the bottom.
    written: names that a figure writes into cells instead of numbers. strong: the cells of names in bold.
    grey: cells (row, column) in grey, which the note explains. under: the name of a heat map of ink, 0 to 1, that a
    page shows as an image under this one. If it is the panel's own name, the panel is that image.
    """

    ranked: ClassVar[bool] = False  # a terminal shows all rows, and as many columns as fit

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
    others: tuple[int, int] = (0, 0)
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

    full: the number from which on a bar is full. A terminal then shows the text with a bar under each token, for a long
    text the lines around the first marked token. marked: the tokens that are followed. special: the special tokens.
    label: text that a terminal prints before the first line. joined: the next strip shares this strip's title.
    running: a terminal prints the tokens without gaps, as a text reads, dim if they have no number.
    before: the text before each token that belongs to no token. A terminal then prints the text itself, each token on
    a different colour.
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
    """A point of a scatter. group: its points share a colour. after: the number of the point that it moved from.

    context: the word in its text, if the point is a word of a text.
    """

    x: float
    y: float
    label: str
    group: str
    after: int | None = None
    context: InContext | None = None


@dataclass(frozen=True)
class Called:
    """The names of a scatter's labels, groups and contexts."""

    label: str = "label"
    group: str = "group"
    context: str = "text"


@dataclass(frozen=True, kw_only=True)
class Scatter(Panel):
    """A scatter plot of points, with arrows between points that moved. x, y: what the axes are.

    drawn: show each point's label next to it, or each group's name next to its first point (in a figure: in a legend).
    equal: use one scale on both axes, so that distances can be compared.
    """

    x: str
    y: str
    points: Sequence[Point]
    called: Called = Called()
    drawn: Literal["labels", "groups"] = "labels"
    equal: bool = False


@dataclass(frozen=True)
class Curve:
    """A line with rising x. since, low, high: of points that are means, the first x and the range."""

    name: str
    x: Sequence[int]
    y: Sequence[Number]
    since: Sequence[int] | None = None
    low: Sequence[Number] | None = None
    high: Sequence[Number] | None = None


@dataclass(frozen=True, kw_only=True)
class Curves(Panel):
    """A plot of lines over one axis. x, y: what the axes are. digits: decimals of y.

    full: for a single line, the y from which on a bar is full. A terminal then draws bars over its whole width.
    """

    x: str
    y: str
    series: Sequence[Curve]
    digits: int = 2
    full: float | None = None
