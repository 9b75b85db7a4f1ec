"""Store what an answer shows, as data: tables, bars, heat maps, token strips, scatters and curves.

A panel holds numbers and names, no tensor, trace or colour. `terminal`, `figure` and `page` draw every kind, and round
its numbers. The page has a panel's fields by these names: `web/src/data/format.ts`.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal


@dataclass(frozen=True)
class InContext:
    """A word as it is in a text, marked where it is shown."""

    left: str
    form: str
    right: str


@dataclass(frozen=True)
class Shares:
    """Names with a number each, in their order. apart: how many of the first stand apart from the others, as sinks do.

    mark: what stands behind the last. one_line: a terminal shows as many as one line has room for, else all.
    """

    parts: Sequence[tuple[str, float]]
    apart: int = 0
    mark: str = ""
    digits: int = 2
    signed: bool = False
    one_line: bool = False


Cell = str | int | float | None | InContext | Shares
Number = float | None  # None, as NaN, where there is none
Data = dict[str, Any]  # a panel as a page has it


@dataclass(frozen=True, kw_only=True)
class Panel:
    """The fields of all panels. name: of the page's tab, and for `plot`; note: how to read it, in sentences.

    caption: a sentence without which a picture doesn't stand alone: it has no notes, and draws this under its title. A
    page draws it if neither title nor note says it.
    screen: it is on a terminal's first screen. brief: and there alone, for other panels have all of it. picture:
    `plot` draws it if none is named.
    group: what it is part of, where an answer shows the same of several: in a picture heat maps stand side by side
    under this name, on a terminal's first screen tables. tab: of a page, that it shares with the others of this tab.
    unbounded: its numbers are no fractions, as a column's.
    """

    ranked: ClassVar[bool] = True  # a terminal names its largest or first parts, as many as are asked for

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
    """A panel that no first screen and no picture shows: its name, and what makes it, with that name."""

    screen = brief = picture = ranked = False

    name: str
    make: Callable[[str], Panel]


def numbered(count: int) -> list[str]:
    """Name rows or columns by their numbers, counted from 0."""
    return [str(n) for n in range(count)]


def made(panels: Iterable[Panel | Later]) -> list[Panel]:
    """Make the panels that are there by name alone."""
    return [panel.make(panel.name) if isinstance(panel, Later) else panel for panel in panels]


def decimals(values: Iterable[Any], digits: int = 2) -> int:
    """Return the decimals that numbers are written with: two, or as many as give the largest of small ones two digits.

    digits: those of the panel. Others than two stay.
    """
    sizes = (abs(value) for value in values if isinstance(value, int | float) and math.isfinite(value))
    largest = max(sizes, default=0.0)
    return min(6, 1 - math.floor(math.log10(largest))) if digits == 2 and 0 < largest < 0.0995 else digits


def untold(panel: Panel, *texts: str) -> str:
    """Return a panel's caption, nothing where one of the texts beside it says as much."""
    said = panel.caption.removesuffix(".").lower()
    return "" if any(said in text.lower() for text in texts) else panel.caption


@dataclass(frozen=True)
class Column:
    """A column of a table. digits: decimals of its numbers, None for text. bar: its numbers are drawn as well.

    signed: its numbers have a sign, as differences do.
    unbounded: its numbers are no fractions, as scores are none: 0.997 is then 1.00 and not >0.99.
    detail: it is for a page, a terminal's first screen goes without it.
    """

    name: str
    digits: int | None = None
    bar: bool = False
    signed: bool = False
    detail: bool = False
    unbounded: bool = False


@dataclass(frozen=True, kw_only=True)
class Table(Panel):
    """Rows of cells, in an order that says something. total: a last row, of all, which is always shown."""

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
        """Return whether bars of a column are red above 0 and blue below, wherever they are drawn."""
        cells = (row[column] for row in self.rows)
        return self.columns[column].signed or any(isinstance(cell, (int, float)) and cell < 0 for cell in cells)


@dataclass(frozen=True, kw_only=True)
class Bars(Panel):
    """Named numbers, a bar each, in the order of parts: by default the largest absolute ones first.

    part: what a name names. unit: what a number is. whole: what all numbers sum to, where that means something: those
    that a view leaves out are then summed up in one. signed: numbers have a sign, and colours for both.
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

    across, down: what a row's and a column's sum is called; name: what the sum of all is.
    """

    rows: Sequence[float]
    columns: Sequence[float]
    all: float
    across: str
    down: str
    name: str


@dataclass(frozen=True)
class TokenText:
    """The tokens of a text that a heat map's cells are about. direction: in which its script is read."""

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
    """A heat map at each place of one more axis, such as the steps of a training: its title and its numbers there.

    The last are the heat map's own: terminal and picture show these, a page has a slider.
    """

    titles: Sequence[str]
    values: Sequence[Sequence[Sequence[Number]]]


@dataclass(frozen=True, kw_only=True)
class Heat(Panel):
    """A grid of colours. axes: what rows and columns are; values: [row][column]. signed: colours for both signs.

    largest: the value of the darkest colour, None for the largest there is. said: a sentence for each cell, where row,
    column and number don't say it. sums, behind: of its rows and columns, and what each cell is made of: of one with
    sums a picture draws many rows, or columns, that matter least as one. others: how many parts the last row and the
    last column are already, 0 if they are one. upwards: a picture draws the first row at the bottom.
    written: the names that a picture writes into the cells, in the place of numbers; strong: the cells of bold ones.
    grey: cells (row, column) in greys, which the note tells apart. under: the name of a heat map of ink, 0 to 1, whose
    picture a page shows under this one; its own name: it is that picture.
    """

    ranked: ClassVar[bool] = False  # it has as many columns as there is room for, and all rows

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
    """The tokens of a text, a number each.

    full: the number from which on a bar is full. A terminal then shows the text itself, a bar under each token, of a
    long text the lines around the first of marked: those that are followed. special: those that are special. label:
    what a terminal writes before the first line. joined: the next strip has no title of its own, for it has this one's.
    running: a terminal writes the tokens one behind the other, as a text reads, dim where they have no number.
    before: what of the text is before each token and is of none; a terminal then writes the text itself, each token
    on a colour of its own.
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
    """A point. group: those of one share a colour. after: the number of the point that this one moved from.

    context: where the point is a word of a text.
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
    """Points, and arrows between those that moved. x, y: what the axes are.

    drawn: whether each point's label stands beside it, or each group's name beside its first point, in a picture in a
    legend. equal: one scale on both axes, so that distances can be compared.
    """

    x: str
    y: str
    points: Sequence[Point]
    called: Called = Called()
    drawn: Literal["labels", "groups"] = "labels"
    equal: bool = False


@dataclass(frozen=True)
class Curve:
    """A line; x rises. since, low, high: where a point is the mean of several, their first x, least and largest."""

    name: str
    x: Sequence[int]
    y: Sequence[Number]
    since: Sequence[int] | None = None
    low: Sequence[Number] | None = None
    high: Sequence[Number] | None = None


@dataclass(frozen=True, kw_only=True)
class Curves(Panel):
    """Lines over one axis. x, y: what the axes are. digits: decimals of y.

    full: of one line, the y from which on a bar is full: a terminal then draws it as bars as wide as the screen.
    """

    x: str
    y: str
    series: Sequence[Curve]
    digits: int = 2
    full: float | None = None
