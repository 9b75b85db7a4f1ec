"""The files that a verb writes: a picture, a page, a table as CSV or Parquet, everything shown as JSON, and traces."""

import csv
import functools
import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from regard.checks import check_saving
from regard.cli.options import Numbers, option, whole_numbers
from regard.corpus.extra import import_from_corpus_extra
from regard.errors import RegardError
from regard.files import check_output_file, whole

if TYPE_CHECKING:
    from regard.web.assemble import Choice
    from regard.web.page import Page

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
Cell = str | int | float | None
PARAMETER = "outputs"  # of a verb: where its options stand in the help
GROUPS = {  # what a verb may offer, and the options of it
    "figure": ("figure",),
    "figure of texts": ("figure", "shape"),
    "html": ("html",),
    "html of traces": ("html", "html_with"),
    "csv": ("csv",),
    "parquet": ("parquet",),
    "json": ("json_file",),
    "save": ("save_file",),
    "save parts": ("save_file", "save_layers", "save_heads", "save_dtype", "save_attention_outputs"),
}
Verb = Callable[..., None]


def neutral(cell: Cell) -> Cell:
    """Return a cell that no spreadsheet takes for a formula: such text gets an apostrophe (CWE-1236)."""
    return f"'{cell}" if isinstance(cell, str) and cell.lstrip(" ").startswith(FORMULA) else cell


def write_csv(rows: Sequence[Mapping[str, Cell]], file: Path) -> None:
    """Write rows as CSV in UTF-8 with a header."""
    names = columns_of(rows)
    with (
        whole(file) as temporary,
        temporary.open("w", encoding="utf-8", newline="", errors="backslashreplace") as opened,
    ):
        writer = csv.writer(opened)
        writer.writerow([neutral(name) for name in names])
        writer.writerows([neutral(row.get(name)) for name in names] for row in rows)


def write_parquet(rows: Sequence[Mapping[str, Cell]], file: Path) -> None:
    """Write rows as Parquet; a column of no values has strings."""
    pa, pq = import_from_corpus_extra("pyarrow"), import_from_corpus_extra("pyarrow.parquet")
    arrays = {}
    for name in columns_of(rows):
        values = [row.get(name) for row in rows]
        arrays[name] = pa.array(values, None if any(each is not None for each in values) else pa.string())
    with whole(file) as temporary:
        pq.write_table(pa.table(arrays), temporary, compression="zstd")


def columns_of(rows: Sequence[Mapping[str, Cell]]) -> list[str]:
    """List the columns of rows as they come."""
    return list(dict.fromkeys(name for row in rows for name in row))


@dataclass(frozen=True)
class PageFile:
    """A file for a page (--html), and what of the traces goes into it (--html-with).

    numbers: how queries and keys are written. layers: whose attention it has, None for all. steps: whether values,
    hidden states and projections go with them.
    """

    file: Path | None = None
    numbers: Literal["int16", "float32"] = "int16"
    layers: Sequence[int] | None = None
    steps: bool = False

    @staticmethod
    def of(file: Path | None, given: Sequence[str]) -> "PageFile":
        """Read what --html-with was given, once or several times: "steps,float32,layers=0,3-5"."""
        if given and file is None:
            raise RegardError("--html-with needs --html: it chooses what goes into that file")
        parts = [part.strip() for each in given for part in re.split(r",(?!\s*\d)", each)]
        layers = None
        for part in parts:
            name, _, numbers = part.partition("=")
            try:
                if name == "layers":
                    layers = whole_numbers(numbers)
                elif part not in ("steps", "float32"):
                    raise RegardError(f"--html-with: given {part!r}, needs steps, float32 or layers=0,3-5")
            except typer.BadParameter as error:
                raise RegardError(f"--html-with layers: {error.message}") from error
        return PageFile(file, "float32" if "float32" in parts else "int16", layers, "steps" in parts)

    def check(self) -> None:
        """Refuse a page that cannot be written, before a model is loaded."""
        if self.file is not None:
            from regard.web.built_page import check_page_built

            check_output_file(self.file, (".html",), "--html")
            check_page_built()

    def choice(self) -> "Choice":
        """What of the traces goes into the page."""
        from regard.web.assemble import Choice

        return Choice(self.layers, numbers=self.numbers, steps=self.steps)


NO_PAGE = PageFile()


@dataclass(frozen=True)
class TraceFile:
    """A file for traces (--save), and what of them goes into it: some layers and heads, a dtype, attention outputs."""

    file: Path | None = None
    layers: Sequence[int] | None = None
    heads: Sequence[int] | None = None
    dtype: str | None = None
    attention_outputs: bool = False

    def check(self) -> None:
        """Refuse options that need --save, or exclude each other, before a model is loaded."""
        chosen = {
            "--save-layers": self.layers,
            "--save-heads": self.heads,
            "--save-dtype": self.dtype,
            "--save-attention-outputs": self.attention_outputs or None,
        }
        used = [option for option, value in chosen.items() if value is not None]
        if used and self.file is None:
            raise RegardError(f"{used[0]} needs --save: it chooses the parts of the traces that go into that file")
        check_saving(self.dtype, self.attention_outputs, self.heads)

    def write(self, traces: Any) -> None:
        """Write one trace or several, where a file was asked for."""
        if self.file is None:
            return
        from regard.trace.file import save

        save(
            traces, self.file, layers=self.layers, heads=self.heads, dtype=self.dtype,
            attention_outputs=self.attention_outputs,
        )  # fmt: skip


PICTURES = (".png", ".svg", ".pdf")
FILES = ("figure", "html", "csv", "parquet", "json", "save")  # in the order in which they are named at the end


@dataclass(frozen=True)
class Outputs:
    """The files asked for. offered: `FILES` of the verb. shape: of the figure."""

    figure: Path | None = None
    html: PageFile = NO_PAGE
    csv: Path | None = None
    parquet: Path | None = None
    json: Path | None = None
    save: TraceFile = TraceFile()
    offered: tuple[str, ...] = FILES
    shape: Literal["slide", "column"] = "slide"

    @property
    def files(self) -> tuple[Path | None, ...]:
        """The files, in the order of `FILES`."""
        return self.figure, self.html.file, self.csv, self.parquet, self.json, self.save.file

    def check(self) -> None:
        """Refuse files that cannot be written later, before a model is loaded."""
        endings = (PICTURES, (".html",), (".csv",), (".parquet",), (".json",), (".safetensors",))
        for name, file, kinds in zip(FILES, self.files, endings, strict=True):
            if file is not None and name != "html":
                check_output_file(file, kinds, f"--{name}")
        self.save.check()
        self.html.check()

    def write(
        self,
        *,
        traces: Any = None,
        rows: "Callable[[], Sequence[Mapping[str, Cell]]] | None" = None,
        draw: Callable[[Path], list[str]] | None = None,
        data: Callable[[Path], object] | None = None,
        page: "Callable[[PageFile], Page] | None" = None,
    ) -> list[str]:
        """Write the files, and return notes on what the picture could not show.

        traces: what --save writes. page: puts the page together. Both may refuse: the page is put together before
        anything is written, and traces are written before all others. rows: makes the table's rows. draw: draws the
        picture into a file. data: writes all as JSON into a file.
        """
        assembled = None if self.html.file is None or page is None else page(self.html)
        self.save.write(traces)
        if self.html.file is not None and assembled is not None:
            from regard.web.save_page import write_page

            if assembled.optional:
                print(assembled.optional, file=sys.stderr)
            write_page(assembled, self.html.file)
        notes = draw(self.figure) if draw is not None and self.figure is not None else []
        table = rows() if rows is not None and (self.csv is not None or self.parquet is not None) else []
        if self.csv is not None:
            write_csv(table, self.csv)
        if self.parquet is not None:
            write_parquet(table, self.parquet)
        if data is not None and self.json is not None:
            data(self.json)
        return notes


NOTHING = Outputs()


def _options(
    figure: Annotated[Path | None, option("--figure")] = None,
    shape: Annotated[str | None, option("--shape", "slide")] = None,
    html: Annotated[Path | None, option("--html")] = None,
    html_with: Annotated[list[str] | None, option("--html-with")] = None,
    csv: Annotated[Path | None, option("--csv")] = None,
    parquet: Annotated[Path | None, option("--parquet")] = None,
    json_file: Annotated[Path | None, option("--json")] = None,
    save_file: Annotated[Path | None, option("--save")] = None,
    save_layers: Annotated[Numbers | None, option("--save-layers", True, whole_numbers)] = None,
    save_heads: Annotated[Numbers | None, option("--save-heads", True, whole_numbers)] = None,
    save_dtype: Annotated[str | None, option("--save-dtype", "the trace's own precision")] = None,
    save_attention_outputs: Annotated[bool, option("--save-attention-outputs")] = False,
) -> Outputs:
    if shape not in (None, "slide", "column"):
        raise RegardError(f"--shape: given {shape!r}, needs slide or column")
    if shape is not None and figure is None:
        raise RegardError("--shape needs --figure: it is the shape of that file")
    saved = TraceFile(save_file, save_layers, save_heads, save_dtype, save_attention_outputs)
    return Outputs(figure, PageFile.of(html, html_with or ()), csv, parquet, json_file, saved,
                   shape="column" if shape == "column" else "slide")  # fmt: skip


def writes(*groups: str) -> Callable[[Verb], Verb]:
    """Give a verb that takes `outputs: Outputs` the options of some of `GROUPS` in its place, in their order.

    Files that cannot be written are refused before the verb is called.
    """
    declared = inspect.signature(_options).parameters
    names = [name for group in groups for name in GROUPS[group]]
    own = [declared[name] for name in names]
    offered = tuple(group.partition(" ")[0] for group in groups)

    def decorate(verb: Verb) -> Verb:
        given = inspect.signature(verb)
        parameters = [
            each
            for parameter in given.parameters.values()
            for each in (
                [one.replace(kind=parameter.kind) for one in own] if parameter.name == PARAMETER else [parameter]
            )
        ]

        @functools.wraps(verb)
        def with_files(*first: object, **values: Any) -> None:
            if PARAMETER in values:  # another verb calls it
                verb(*first, **values)
                return
            files = _options(**{name: values.pop(name) for name in names if name in values})
            files.check()
            verb(*first, **values, **{PARAMETER: replace(files, offered=offered)})

        with_files.__signature__ = given.replace(parameters=parameters)  # type: ignore[attr-defined]
        return with_files

    return decorate
