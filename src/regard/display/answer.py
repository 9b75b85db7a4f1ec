"""Show an answer to a question in every medium: terminal, figure, page, JSON and data frame.

An answer has a title, findings in sentences, rows and panels, which all media use. If its JSON has more than its rows,
it overrides `data`. Matplotlib and the page are imported only when needed.

The page's data has the same field names as a panel: `web/src/data/format.ts`.
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
from regard.files import JSON_VERSION, plain_json_values, write_json
from regard.lazy import from_above
from regard.shown import Tabular
from regard.trace.status import Status

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import RenderableType

    from regard.explain.weights.alignment import Alignment
    from regard.trace.trace import PairTrace, Trace
    from regard.web.assemble import Choice
    from regard.web.page import Page

IN_PYTHON = ".rows() and .to_json()"
MAX_TITLE = 60  # characters of a text in a title
# panel fields used only in terminals and figures
ELSEWHERE = (
    "screen", "brief", "picture", "group", "upwards", "full", "marked",
    "label", "joined", "running", "written", "strong", "before",
)  # fmt: skip
MAX_PARTS = 300  # bars on a page: an answer can have as many parts as heads times tokens


def panel_data(panel: Panel) -> Data:
    """Return a panel's data for a page: its fields, without those for terminals and figures."""
    more: Data = {}
    if isinstance(panel, Bars):  # keep the first parts, and the number and sum of the others
        rest = [number for _, number in panel.parts[MAX_PARTS:]]
        panel = replace(panel, parts=panel.parts[:MAX_PARTS])
        more = {"others": [len(rest), sum(rest)] if rest else None}
    elif isinstance(panel, Table):  # convert cells of named numbers to text
        rows = [[shares_text(cell) if isinstance(cell, Shares) else cell for cell in row] for row in panel.rows]
        panel = replace(panel, rows=rows)
    elif isinstance(panel, Strip):  # the value of the darkest colour
        more = {"largest": panel.full}
    elif isinstance(panel, Heat) and panel.under == panel.name:  # an image under other heat maps has no heat
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
    """The texts that an answer is about, each with its target or None, and the statuses of their traces.

    sides: a name, status and token count for each text and target.
    """

    texts: tuple[tuple[str, str | None], ...] = ()
    statuses: tuple[Status, ...] = ()
    sides: tuple[tuple[str, Status, int], ...] = ()

    @staticmethod
    def of(*traces: "Trace | PairTrace") -> "Read":
        """Return the texts and statuses of traces. The status of a pair is that of its target."""
        texts = [[side.text for side in trace.sides] for trace in traces]
        pairs = tuple((text[0], text[1] if len(text) > 1 else None) for text in texts)
        sides = tuple(
            (f"{kind} {n}", side.status, len(side.tokens))
            for n, trace in enumerate(traces, 1)
            for kind, side in zip(("text", "target"), trace.sides, strict=False)
        )
        return Read(pairs, tuple(trace.sides[-1].status for trace in traces), sides)


@dataclass(frozen=True, eq=False, repr=False)
class Answer(Tabular):
    """An answer to a question. about: its texts. format: its JSON format. one_line: write JSON on a single line."""

    format: ClassVar[str]
    one_line: ClassVar[bool] = False
    about: Read = field(default=Read(), kw_only=True)

    def title(self) -> str:
        """Return a one-line title that names the question and its texts."""
        raise NotImplementedError

    def findings(self) -> list[str]:
        """Return the findings in sentences."""
        raise NotImplementedError

    def panels(self) -> Sequence[Panel | Later]:
        """Return the panels in the order of the page's tabs. A panel that is slow to compute can be a `Later`."""
        raise NotImplementedError

    @cached_property
    def listed_panels(self) -> Sequence[Panel | Later]:
        """The result of `panels`, computed once for all media."""
        return self.panels()

    def data(self) -> dict[str, object]:
        """Return the JSON fields in addition to findings, texts and statuses. Default: the rows."""
        return {"rows": self.rows()}

    def for_page(self) -> "Answer":
        """Return the answer that a page shows: this answer, with additional data for pages."""
        return self

    def exactness(self) -> list[str]:
        """Return lines on the exactness of numbers that aren't weights."""
        return []

    def shown(
        self, width: int, top: int = 10, more: str = IN_PYTHON, *, everything: bool = False
    ) -> "list[RenderableType]":
        """Return the parts to print in a terminal: unknown tokens, the panels of the first screen, the findings."""
        if everything:
            panels = [panel for panel in made(self.listed_panels) if not panel.brief]
        else:
            panels = [_without_details(panel) for panel in made(p for p in self.listed_panels if p.screen)]
        parts: list[RenderableType] = [*unknown_tokens_line(self.about.sides)]
        for side_by_side, group in groupby(panels, lambda panel: isinstance(panel, Table) and panel.group):
            if side_by_side and not everything:
                tables = [panel for panel in group if isinstance(panel, Table)]
                parts.append(tables_side_by_side(tables, width, top, more))
            else:
                parts += [drawn(panel, width, top, more) for panel in group]
        return [*parts, sentences(self.findings())]

    def plot(self, *names: str) -> "Figure":
        """Draw the panels of the answer's figure, or the panels with these names."""
        return self._figure(names) if names else self.painted()[0]

    def painted(self) -> "tuple[Figure, list[str]]":
        """Return the answer's figure, and notes on what it can't show. Subclasses can return a different figure."""
        return self._figure(), []

    def _figure(self, names: Sequence[str] = ()) -> "Figure":
        from regard.display.figure import paint

        return paint(self.chosen(names), self.title())

    def draw(self, file: Path) -> list[str]:
        """Write the figure as PNG, SVG or PDF, depending on the extension. Returns notes on what it can't show."""
        from regard.display.canvas import write_figure

        figure, notes = self.painted()
        return [*notes, *write_figure(figure, file)]

    def to_json(self, file: str | Path | None = None) -> dict[str, object]:
        """Return the answer as JSON types, in the format of `--json`. file: also write it to this file."""
        texts, targets = [text for text, _ in self.about.texts], [target for _, target in self.about.texts]
        fields = {"format": self.format, "version": JSON_VERSION, "findings": self.findings()}
        fields |= {"texts": texts, "targets": targets} | self.data()
        statuses = [asdict(status) for status in self.about.statuses]
        data: dict[str, object] = plain_json_values(fields | {"statuses": statuses})
        if file is not None:
            write_json(data, Path(file), indent=None if self.one_line else 1)
        return data

    def page(self, choice: "Choice | None" = None) -> "Page":
        """Build the answer's page, with a tab for every panel. choice: the parts of traces, if any."""
        from regard.web import page as web

        statuses = [status for status in self.about.statuses if status.model]
        page = web.Page(self.title(), self.findings(), model=web.model_name(statuses))
        page.status = [*(web.status_lines(statuses, page) if statuses else []), *self.exactness()]
        page.panels = [panel_data(panel) for panel in made(self.for_page().listed_panels)]
        page.opening["view"] = "panel 0"
        return page

    def save_page(self, file: str | Path) -> int:
        """Write the page with `regard.save_page` to one offline HTML file. Returns its size in bytes."""
        size: int = from_above("save_page")(self, file)
        return size

    def chosen(self, names: Sequence[str] = ()) -> list[Panel]:
        """Return the panels with these names. Default: the panels of the answer's figure."""
        panels = {panel.name: panel for panel in self.listed_panels}
        for name in names:
            if name not in panels:
                raise RegardError(f"plot: got {name!r}, expected one of {', '.join(map(repr, panels))}")
        return made([panels[name] for name in names] or [panel for panel in panels.values() if panel.picture])


@dataclass(frozen=True, eq=False, repr=False)
class TracesAnswer(Answer):
    """An answer whose page shows the attention in its texts, with its panels as further tabs.

    traces: the traces on the page. Without them, the page has only the panels. names: the names of the texts on the
    page. Default: "text 1", "text 2" and so on.
    """

    traces: Sequence[Any] = field(default=(), kw_only=True)
    names: Sequence[str] | None = field(default=None, kw_only=True)

    def opening(self) -> dict[str, str | int | None]:
        """Return the selection the page opens with: fields of `regard.web.assemble.Opening`, such as view and layer.

        The optional key "title" is the title of the page. Default: a title from its texts.
        """
        return {}

    def tabs(self) -> Sequence[Panel | Data]:
        """Return the panels for the page's tabs. Panels that are only for a terminal's first screen are left out.

        Panels that the page draws with separate components are returned as page data.
        """
        return made(panel for panel in self.listed_panels if not panel.brief)

    def layers(self) -> list[int] | None:
        """Return the layers that the page has by default, None for all layers."""
        return None

    def steps_of(self) -> list[int]:
        """Return the layers whose values, hidden states and projections the page has by default."""
        return []

    def alignments(self) -> "Sequence[Alignment]":
        """Return the alignments of encoder-decoders' texts that the page opens with. Default: the page chooses."""
        return []

    def overview(self, page: "Page") -> Data | None:
        """Return the data of the page's first view, or None if its texts have no such view."""
        return page.overview_of(self.traces)

    def page(self, choice: "Choice | None" = None) -> "Page":
        """Build the page of the traces, with the answer's panels as tabs. choice: the parts of traces to include."""
        from regard.web import assemble

        if not self.traces:
            return super().page(choice)
        choice = choice or assemble.Choice()
        layers = self.layers() if choice.layers is None else choice.layers
        choice = replace(choice, layers=layers, steps=choice.steps or self.steps_of() or False)
        selection: dict[str, Any] = dict(self.opening())
        title, opening = selection.pop("title", None), assemble.Opening(**selection)
        page = assemble.page_of(
            self.traces, choice, opening, title=title, names=self.names, findings=self.findings(),
            alignments=self.alignments(),
        )  # fmt: skip
        page.status += self.exactness()
        page.panels += [panel if isinstance(panel, dict) else panel_data(panel) for panel in self.tabs()]
        page.overview = self.overview(page)
        return page


def _without_details(panel: Panel) -> Panel:
    """Return a panel without the columns that only `--full` shows."""
    if not isinstance(panel, Table) or not any(column.detail for column in panel.columns):
        return panel
    kept = [n for n, column in enumerate(panel.columns) if not column.detail]
    rows = [[row[n] for n in kept] for row in panel.rows]
    total = None if panel.total is None else [panel.total[n] for n in kept]
    return replace(panel, columns=[panel.columns[n] for n in kept], rows=rows, total=total)
