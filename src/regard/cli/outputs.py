"""The files that a verb writes: a picture, a page, a table as CSV or Parquet, everything shown as JSON, and traces."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.checks import check_saving
from regard.cli.page_file import NO_PAGE, PageFile
from regard.errors import RegardError
from regard.files import check_output_file

if TYPE_CHECKING:
    from regard.display.table_file import Cell
    from regard.web.page import Page


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
    """The files asked for. offered: `FILES` of the verb."""

    figure: Path | None = None
    html: PageFile = NO_PAGE
    csv: Path | None = None
    parquet: Path | None = None
    json: Path | None = None
    save: TraceFile = TraceFile()
    offered: tuple[str, ...] = FILES

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
        assembled = self.html.assemble(page)
        self.save.write(traces)
        self.html.write(assembled)
        notes = draw(self.figure) if draw is not None and self.figure is not None else []
        table = rows() if rows is not None and (self.csv is not None or self.parquet is not None) else []
        if self.csv is not None:
            from regard.display.table_file import write_csv

            write_csv(table, self.csv)
        if self.parquet is not None:
            from regard.display.table_file import write_parquet

            write_parquet(table, self.parquet)
        if data is not None and self.json is not None:
            data(self.json)
        return notes


NOTHING = Outputs()
