"""Answer a question in every medium: printed, drawn, as a page, as JSON, as a data frame.

A question's own answer has a title, findings in sentences, rows and panels, and data where its JSON has more than its
rows; whoever shows it takes these. Matplotlib and the page are imported when something is shown.

A page has a panel's fields by their own names, as `web/src/data/format.ts` says.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from regard.display.panels import Bars, Curves, Data, Heat, Later, Panel, Scatter, Shares, Strip, Table, made, untold
from regard.display.sentences import shares_text
from regard.display.terminal import drawn, tables_side_by_side
from regard.display.terminal_parts import sentences, unknown_tokens_line
from regard.errors import RegardError
from regard.explain.frames import Tabular
from regard.files import JSON_VERSION, plain_json_values, write_json
from regard.lazy import from_above
from regard.trace.status import Status

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import RenderableType

    from regard.trace.trace import PairTrace, Trace
    from regard.web.assemble import Choice
    from regard.web.page import Page

IN_PYTHON = ".rows() and .to_json()"
MAX_TITLE = 60  # characters of a text in a title
# of a terminal and pictures: the page shows all panels
ELSEWHERE = (
    "screen", "brief", "picture", "group", "upwards", "others", "full", "marked",
    "label", "joined", "running", "written", "strong", "before",
)  # fmt: skip
MAX_PARTS = 300  # that a page has by themselves: each is a row, and a text has as many as heads times tokens


def panel_data(panel: Panel) -> Data:
    """Write a panel as the page's data: its fields, what it shares with terminal and pictures alone left out."""
    more: Data = {}
    if isinstance(panel, Bars):  # the first parts, and how many others there are and what they sum to
        rest = [number for _, number in panel.parts[MAX_PARTS:]]
        panel = replace(panel, parts=panel.parts[:MAX_PARTS])
        more = {"others": [len(rest), sum(rest)] if rest else None}
    elif isinstance(panel, Table):  # named numbers are text
        rows = [[shares_text(cell) if isinstance(cell, Shares) else cell for cell in row] for row in panel.rows]
        panel = replace(panel, rows=rows)
    elif isinstance(panel, Strip):  # the number of the darkest color, if that is not the largest
        more = {"largest": panel.full}
    elif isinstance(panel, Heat) and panel.under == panel.name:  # an image that others are laid over has no heat
        more = {"largest": 0.0}
    elif not isinstance(panel, Curves | Heat | Scatter):
        raise NotImplementedError(type(panel).__name__)
    fields = {
        name: value
        for name, value in asdict(panel).items()
        if name not in ELSEWHERE and (name not in ("tab", "unbounded") or value)
    }
    if not untold(panel, panel.title, panel.note):
        del fields["caption"]
    return {"kind": type(panel).__name__.lower(), **plain_json_values(fields | more)}


@dataclass(frozen=True)
class Read:
    """The texts of an answer, each with its target or None, and its exactness.

    sides: of each text and target what it is called, its status, and how many tokens it has.
    """

    texts: tuple[tuple[str, str | None], ...] = ()
    statuses: tuple[Status, ...] = ()
    sides: tuple[tuple[str, Status, int], ...] = ()

    @staticmethod
    def of(*traces: "Trace | PairTrace") -> "Read":
        """Return the texts of traces; of a pair the status is its target's."""
        texts = [[side.text for side in trace.sides] for trace in traces]
        both = tuple((text[0], text[1] if len(text) > 1 else None) for text in texts)
        sides = tuple(
            (f"{called} {n}", side.status, len(side.tokens))
            for n, trace in enumerate(traces, 1)
            for called, side in zip(("text", "target"), trace.sides, strict=False)
        )
        return Read(both, tuple(trace.sides[-1].status for trace in traces), sides)


@dataclass(frozen=True, eq=False, repr=False)
class Answer(Tabular):
    """A result. about: its texts. format: the name of its JSON. one_line: whether its JSON is on one line."""

    format: ClassVar[str]
    one_line: ClassVar[bool] = False
    about: Read = field(default=Read(), kw_only=True)

    def title(self) -> str:
        """Report in one line what is answered."""
        raise NotImplementedError

    def findings(self) -> list[str]:
        """Report what was found, in sentences."""
        raise NotImplementedError

    def panels(self) -> Sequence[Panel | Later]:
        """List what is shown, in the order of the page's tabs: what takes long and is on no first screen as `Later`."""
        raise NotImplementedError

    @cached_property
    def listed_panels(self) -> Sequence[Panel | Later]:
        """The panels, listed once for all media."""
        return self.panels()

    def data(self) -> dict[str, object]:
        """Make what JSON has beside findings, texts and statuses: by default the rows."""
        return {"rows": self.rows()}

    def for_page(self) -> "Answer":
        """Give what a page shows: this answer, with what a page alone needs of it."""
        return self

    def exactness(self) -> list[str]:
        """Report in a line how exact the numbers are, where the comparison of weights doesn't."""
        return []

    def shown(
        self, width: int, top: int = 10, more: str = IN_PYTHON, *, everything: bool = False
    ) -> "list[RenderableType]":
        """Return what a terminal shows: what a tokenizer did not know, the panels of a first screen, the sentences."""
        if everything:
            panels = [panel for panel in made(self.listed_panels) if not panel.brief]
        else:
            panels = [_of_a_screen(panel) for panel in made(each for each in self.listed_panels if each.screen)]
        parts: list[RenderableType] = [*unknown_tokens_line(self.about.sides)]
        for side_by_side, own in groupby(panels, lambda panel: isinstance(panel, Table) and panel.group):
            if side_by_side and not everything:
                parts.append(tables_side_by_side([each for each in own if isinstance(each, Table)], width, top, more))
            else:
                parts += [drawn(panel, width, top, more) for panel in own]
        return [*parts, sentences(self.findings())]

    def plot(self, *names: str) -> "Figure":
        """Draw the panels that make its picture, or those of these names."""
        return self._figure(names) if names else self.painted()[0]

    def painted(self) -> "tuple[Figure, list[str]]":
        """Draw its picture, and say what it could not show. An answer whose picture is no panels draws it itself."""
        return self._figure(), []

    def _figure(self, names: Sequence[str] = ()) -> "Figure":
        from regard.display.figure import paint

        return paint(self.chosen(names), self.title())

    def draw(self, file: Path) -> list[str]:
        """Write its picture, PNG, SVG or PDF by the file's ending; returns notes on what it could not show."""
        from regard.display.canvas import write_figure

        figure, notes = self.painted()
        return [*notes, *write_figure(figure, file)]

    def to_json(self, file: str | Path | None = None) -> dict[str, object]:
        """Make JSON's own types of all of it, as the command's --json writes it. file: to write it to, whole."""
        texts, targets = [text for text, _ in self.about.texts], [target for _, target in self.about.texts]
        own = {"format": self.format, "version": JSON_VERSION, "findings": self.findings()}
        own |= {"texts": texts, "targets": targets} | self.data()
        statuses = [asdict(status) for status in self.about.statuses]
        data: dict[str, object] = plain_json_values(own | {"statuses": statuses})
        if file is not None:
            write_json(data, Path(file), indent=None if self.one_line else 1)
        return data

    def page(self, choice: "Choice | None" = None) -> "Page":
        """Put together the page: every panel is a tab. choice: what it has of traces, of which this one has none."""
        from regard.web import page as web

        statuses = [status for status in self.about.statuses if status.model]
        page = web.Page(self.title(), self.findings(), model=web.model_name(statuses))
        page.status = [*(web.status_lines(statuses, page) if statuses else []), *self.exactness()]
        page.panels = [panel_data(panel) for panel in made(self.for_page().listed_panels)]
        page.opening["view"] = "panel 0"
        return page

    def save_page(self, file: str | Path) -> int:
        """Write the page with `regard.save_page`, one offline HTML file; returns its size in bytes."""
        size: int = from_above("save_page")(self, file)
        return size

    def chosen(self, names: Sequence[str] = ()) -> list[Panel]:
        """Return the panels of these names, or, if none is named, those that make its picture."""
        panels = {panel.name: panel for panel in self.listed_panels}
        for name in names:
            if name not in panels:
                raise RegardError(f"plot: got {name!r}, expected one of {', '.join(map(repr, panels))}")
        return made([panels[name] for name in names] or [panel for panel in panels.values() if panel.picture])


@dataclass(frozen=True, eq=False, repr=False)
class TracesAnswer(Answer):
    """An answer whose page shows its texts with their attention, and its panels as tabs beside them.

    traces: those of the page; none for an answer that was kept without them, whose page has its panels alone. names:
    what the page calls them, by default "text 1" and the like.
    """

    traces: Sequence[Any] = field(default=(), kw_only=True)
    names: Sequence[str] | None = field(default=None, kw_only=True)

    def opening(self) -> dict[str, str | int | None]:
        """Report where the page opens: fields of `regard.web.assemble.Opening`, such as view, layer, head, word.

        title: of the page, where it is another than that of its texts.
        """
        return {}

    def tabs(self) -> Sequence[Panel | Data]:
        """List the panels that are tabs of its page: all but those for a first screen.

        The data of parts that a page draws with separate components.
        """
        return made(panel for panel in self.listed_panels if not panel.brief)

    def layers(self) -> list[int] | None:
        """Report which layers its page has if none are chosen, None for all."""
        return None

    def steps_of(self) -> list[int]:
        """Say of which layers its page has values, hidden states and projections where not of all."""
        return []

    def overview(self, page: "Page") -> Data | None:
        """Write what the page's first view needs, if there is one for its texts."""
        return page.overview_of(self.traces)

    def page(self, choice: "Choice | None" = None) -> "Page":
        """Put together the page of the traces. choice: what of them it has."""
        from regard.web import assemble

        if not self.traces:
            return super().page(choice)
        choice = choice or assemble.Choice()
        layers = self.layers() if choice.layers is None else choice.layers
        choice = replace(choice, layers=layers, steps=choice.steps or self.steps_of() or False)
        place: dict[str, Any] = dict(self.opening())
        title, opening = place.pop("title", None), assemble.Opening(**place)
        page = assemble.page_of(self.traces, choice, opening, title=title, names=self.names, findings=self.findings())
        page.status += self.exactness()
        page.panels += [panel if isinstance(panel, dict) else panel_data(panel) for panel in self.tabs()]
        page.overview = self.overview(page)
        return page


def _of_a_screen(panel: Panel) -> Panel:
    """A panel without the columns that are details."""
    if not isinstance(panel, Table) or not any(column.detail for column in panel.columns):
        return panel
    kept = [n for n, column in enumerate(panel.columns) if not column.detail]
    rows = [[row[n] for n in kept] for row in panel.rows]
    total = None if panel.total is None else [panel.total[n] for n in kept]
    return replace(panel, columns=[panel.columns[n] for n in kept], rows=rows, total=total)
