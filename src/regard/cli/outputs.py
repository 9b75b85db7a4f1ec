"""Print an answer, and write a verb's files: a plot, a page, a table as CSV or Parquet, JSON, and traces."""

import csv
import functools
import inspect
import os
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console
from rich.status import Status

from regard.checks import check_saving, megabytes
from regard.cli import start
from regard.cli.options import Numbers, option, whole_numbers
from regard.display.panels import Table
from regard.display.terminal_parts import ending_lines_in_terminal, print_terminal_parts
from regard.errors import RegardError
from regard.files import STANDARD_OUTPUT, check_output_file, whole
from regard.lazy import import_from_corpus_extra

if TYPE_CHECKING:
    from rich.console import RenderableType

    from regard.display.answer import Answer

MORE = ("json", "csv", "parquet", "figure", "html", "save")
COUNTED = 3  # with this many further tables or more, the hint about --full counts them instead of naming them
ALL_ROWS = 1_000_000  # rows to print if there is no limit
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
Cell = str | int | float | None
PARAMETER = "outputs"  # the verb's parameter that `writes` replaces by options
GROUPS = {  # by output that a verb can offer: the parameters of its options
    "figure": ("figure",),
    "figure of texts": ("figure", "shape"),
    "html": ("html",),
    "html of traces": ("html", "html_with"),
    "csv": ("csv",),
    "parquet": ("parquet",),
    "json": ("json_file",),
    "save": ("save_file",),
    "save parts": ("save_file", "save_layers", "save_dtype", "save_attention_outputs"),
}
Verb = Callable[..., None]


def escape_formula(cell: Cell) -> Cell:
    """Put an apostrophe before text that a spreadsheet would run as a formula (CWE-1236)."""
    return f"'{cell}" if isinstance(cell, str) and cell.lstrip(" ").startswith(FORMULA) else cell


def write_csv(rows: Sequence[Mapping[str, Cell]], file: Path) -> None:
    """Write rows to a CSV file in UTF-8, with a header."""
    names = column_names(rows)
    with (
        whole(file) as temporary,
        temporary.open("w", encoding="utf-8", newline="", errors="backslashreplace") as opened,
    ):
        writer = csv.writer(opened)
        writer.writerow([escape_formula(name) for name in names])
        writer.writerows([escape_formula(row.get(name)) for name in names] for row in rows)


def write_parquet(rows: Sequence[Mapping[str, Cell]], file: Path) -> None:
    """Write rows to a Parquet file. Columns without values have the type string."""
    pa, pq = import_from_corpus_extra("pyarrow"), import_from_corpus_extra("pyarrow.parquet")
    arrays = {}
    for name in column_names(rows):
        values = [row.get(name) for row in rows]
        arrays[name] = pa.array(values, None if any(value is not None for value in values) else pa.string())
    with whole(file) as temporary:
        pq.write_table(pa.table(arrays), temporary, compression="zstd")


def column_names(rows: Sequence[Mapping[str, Cell]]) -> list[str]:
    """List the column names of all rows, in order of first occurrence."""
    return list(dict.fromkeys(name for row in rows for name in row))


@dataclass(frozen=True)
class PageFile:
    """The file of an HTML page (--html), and the parts of the traces to include (--html-with).

    layers: the layers to include, None for all. steps: whether to include values, hidden states and projections.
    """

    file: Path | None = None
    layers: Sequence[int] | None = None
    steps: bool = False

    @staticmethod
    def of(file: Path | None, options: Sequence[str]) -> "PageFile":
        """Return the page file for --html and --html-with. options: such as "steps,layers=0,3-5"."""
        if options and file is None:
            raise RegardError("--html-with needs --html: it chooses what goes into that file")
        parts = [part.strip() for text in options for part in re.split(r",(?!\s*\d)", text)]
        layers = None
        for part in parts:
            name, _, numbers = part.partition("=")
            try:
                if name == "layers":
                    layers = whole_numbers(numbers)
                elif part != "steps":
                    raise RegardError(f"--html-with: got {part!r}, expected steps or layers=0,3-5")
            except typer.BadParameter as error:
                raise RegardError(f"--html-with layers: {error.message}") from error
        return PageFile(file, layers, "steps" in parts)


@dataclass(frozen=True)
class TraceFile:
    """The file for traces (--save), and the parts to save: layers, dtype and attention outputs."""

    file: Path | None = None
    layers: Sequence[int] | None = None
    dtype: str | None = None
    attention_outputs: bool = False


PICTURES = (".png", ".svg", ".pdf")
FILES = ("figure", "html", "csv", "parquet", "json", "save")  # in the order in which they are listed at the end


@dataclass(frozen=True)
class Outputs:
    """The files that a verb writes. offered: the kinds it can write, among `FILES`. shape: the figure's shape."""

    figure: Path | None = None
    html: PageFile = PageFile()
    csv: Path | None = None
    parquet: Path | None = None
    json: Path | None = None
    save: TraceFile = TraceFile()
    offered: tuple[str, ...] = FILES
    shape: Literal["slide", "column"] = "slide"

    @property
    def files(self) -> tuple[Path | None, ...]:
        """Return the paths in the order of `FILES`, None for files that aren't written."""
        return self.figure, self.html.file, self.csv, self.parquet, self.json, self.save.file

    def check(self) -> None:
        """Raise RegardError for files that can't be written, before a model is loaded."""
        endings = (PICTURES, (".html",), (".csv",), (".parquet",), (".json",), (".safetensors",))
        for name, file, kinds in zip(FILES, self.files, endings, strict=True):
            if file is not None:
                check_output_file(file, kinds, f"--{name}")
        saved = self.save
        parts = {"layers": saved.layers, "dtype": saved.dtype, "attention-outputs": saved.attention_outputs or None}
        for name in (name for name, value in parts.items() if value is not None and saved.file is None):
            raise RegardError(f"--save-{name} needs --save: it chooses the parts of the traces that go into that file")
        if saved.file is not None:
            check_saving(saved.dtype, saved.attention_outputs)
        if self.html.file is not None:
            from regard.web.html_file import check_page_built  # needed only for pages

            check_page_built()

    def write(self, answer: Any, traces: Any = None) -> list[str]:
        """Write the files of an answer, and return notes on what the figure could not show.

        answer: has rows(), draw(file), to_json(file) and page(choice). traces: for --save. Page and traces can raise
        RegardError, so the page is built before anything is written, and traces are written first.
        """
        page, page_file, saved = None, self.html, self.save
        if page_file.file is not None:
            from regard.web.assemble import Choice

            page = answer.page(Choice(page_file.layers, steps=page_file.steps))
        if saved.file is not None:
            from regard.trace.file import save

            save(
                traces, saved.file, layers=saved.layers, dtype=saved.dtype,
                attention_outputs=saved.attention_outputs,
            )  # fmt: skip
        if page is not None and page_file.file is not None:
            from regard.web.html_file import write_page

            if page.optional:
                print(page.optional, file=sys.stderr)
            write_page(page, page_file.file)
        notes: list[str] = answer.draw(self.figure) if self.figure is not None else []
        if self.csv is not None:
            write_csv(answer.rows(), self.csv)
        if self.parquet is not None:
            write_parquet(answer.rows(), self.parquet)
        if self.json is not None:
            answer.to_json(self.json)
        return notes


NOTHING = Outputs()


def _outputs_of_options(
    figure: Annotated[Path | None, option("--figure")] = None,
    shape: Annotated[str | None, option("--shape", "slide")] = None,
    html: Annotated[Path | None, option("--html")] = None,
    html_with: Annotated[list[str] | None, option("--html-with")] = None,
    csv: Annotated[Path | None, option("--csv")] = None,
    parquet: Annotated[Path | None, option("--parquet")] = None,
    json_file: Annotated[Path | None, option("--json")] = None,
    save_file: Annotated[Path | None, option("--save")] = None,
    save_layers: Annotated[Numbers | None, option("--save-layers", True, whole_numbers)] = None,
    save_dtype: Annotated[str | None, option("--save-dtype", "the trace's own precision")] = None,
    save_attention_outputs: Annotated[bool, option("--save-attention-outputs")] = False,
) -> Outputs:
    """Return the files requested by a verb's options. `writes` copies these parameters to verbs."""
    if shape not in (None, "slide", "column"):
        raise RegardError(f"--shape: got {shape!r}, expected slide or column")
    if shape is not None and figure is None:
        raise RegardError("--shape needs --figure: it is the shape of that file")
    saved = TraceFile(save_file, save_layers, save_dtype, save_attention_outputs)
    page = PageFile.of(html, html_with or ()) if html or html_with else PageFile()
    return Outputs(figure, page, csv, parquet, json_file, saved, shape="column" if shape == "column" else "slide")


def writes(*groups: str) -> Callable[[Verb], Verb]:
    """Return a decorator that replaces a verb's parameter `outputs` by the options of these `GROUPS`.

    Files that can't be written raise RegardError before the verb is called.
    """
    declared = inspect.signature(_outputs_of_options).parameters
    names = [name for group in groups for name in GROUPS[group]]
    options = [declared[name] for name in names]
    offered = tuple(group.partition(" ")[0] for group in groups)

    def decorate(verb: Verb) -> Verb:
        signature = inspect.signature(verb)
        parameters = list(signature.parameters.values())
        at = list(signature.parameters).index(PARAMETER)
        parameters[at : at + 1] = [parameter.replace(kind=parameters[at].kind) for parameter in options]

        @functools.wraps(verb)
        def with_files(*first: object, **values: Any) -> None:
            files = _outputs_of_options(**{name: values.pop(name) for name in names if name in values})
            files.check()
            verb(*first, **values, **{PARAMETER: replace(files, offered=offered)})

        with_files.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return with_files

    return decorate


def consoles(json_file: Path | None = None) -> tuple[Console, Console]:
    """Return two consoles: for the answer (silent with `--json -`), and for progress and errors.

    If NO_COLOR is set, they write no escape codes (https://no-color.org).
    """
    options: dict[str, Any] = {"highlight": False}
    if os.environ.get("NO_COLOR"):
        options |= {"color_system": None, "force_terminal": False}
    return Console(quiet=json_file == STANDARD_OUTPUT, **options), Console(stderr=True, **options)


def waiting(outputs: Outputs, text: str) -> Status:
    """Return a spinner with a text, for standard error, to show while a model is loaded and run."""
    return consoles(outputs.json)[1].status(text)


def print_written_files(out: Console, errors: Console, files: Sequence[Path | None], notes: Sequence[str] = ()) -> None:
    """Print notes on a plot and the names of written files."""
    console = errors if out.quiet else out
    for note in notes:
        console.print(f"Plot: {note}", style="dim", markup=False)
    for file in files:
        if file is not None and file != STANDARD_OUTPUT:
            page = f" ({megabytes(file.stat().st_size)}). Open it in a browser." * (file.suffix.lower() == ".html")
            console.print(f"Wrote {file}{page}", style="dim", markup=False)


def report(
    answer: "Answer",
    outputs: Outputs,
    top: int | None = None,
    first: "Sequence[RenderableType]" = (),
    *,
    everything: bool | None = None,
    traces: Any = None,
) -> None:
    """Write the files of an answer, print it, and print the names of the written files."""
    notes = outputs.write(answer, traces) if any(outputs.files) else []
    console, errors = consoles(outputs.json)
    statuses = [status for status in answer.about.statuses if status.model]
    more = options_for_more(answer, top, outputs.offered, everything)
    ending = ending_lines_in_terminal(statuses, more, time.perf_counter() - start.began[0], answer.exactness())
    parts = answer.shown(console.width, ALL_ROWS if top is None else top, "--json", everything=bool(everything))
    print_terminal_parts([*first, *parts, ending], console)
    if any(outputs.files):
        print_written_files(console, errors, outputs.files, notes)


def options_for_more(
    answer: "Answer", top: int | None, files: Sequence[str] = FILES[:-1], everything: bool | None = None
) -> str:
    """Return the options that show more of an answer: --top, --full and output files.

    top: the number of listed entries, None for all. files: the kinds that the verb can write.
    """
    panels = answer.listed_panels
    ranked = ["--top K"] if top is not None and any(panel.ranked for panel in panels if panel.screen) else []
    rest = [panel.name for panel in panels if not panel.screen]
    offered = [f"--{file}" for file in MORE if file in files]
    details = any(column.detail for panel in panels if isinstance(panel, Table) for column in panel.columns)
    names = rest if len(rest) < COUNTED else [f"{len(rest)} more tables"]
    names = [*names, *["all columns"] * (details and not rest)]
    full = [f"--full ({', '.join(names)})"] if everything is False and names else []
    outputs = [f"{' or '.join([', '.join(offered[:-1]), offered[-1]][-len(offered) :])} FILE"] if offered else []
    return ", ".join([*ranked, *full, *outputs])
