"""The files that questions to a store write: a table as CSV or Parquet, everything as JSON, a picture."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli import options
from regard.cli.page_file import PageFile
from regard.corpus.manifest import read_manifest
from regard.corpus.settings import kept_place
from regard.files import check_target

if TYPE_CHECKING:
    from regard.corpus.export import Cell
    from regard.web.page import Page

StoreFolder = Annotated[Path, typer.Option("--store", metavar="STORE", help="What regard embed wrote, needed.")]
StoreModel = Annotated[
    str | None,
    typer.Option("--model", metavar="M", help="What made the store, where that was not the default model."),
]
By = Annotated[str, typer.Option("--lookup", metavar="word|lemma", help="What WORD is compared with.")]
LayerOption = Annotated[int | None, options.number("N", "The layer, of those kept; by default the last of them.")]
Context = Annotated[int, options.number("N", "Characters on either side.")]
Seed = Annotated[int, options.number("N", "Of all that is drawn at random.")]
CsvFile = Annotated[Path | None, options.file("--csv", "Write a row for each occurrence: .csv, safe in spreadsheets.")]
HeadsCsvFile = Annotated[
    Path | None, options.file("--csv", "Write a row for each head, with its every score: .csv, safe in spreadsheets.")
]
HtmlFile = Annotated[Path | None, options.file("--html", "Write a page to hover over, in one offline file: .html.")]
ParquetFile = Annotated[Path | None, options.file("--parquet", "Write the same rows: .parquet.")]


def check_store(store: Path, layer: int | None = None) -> None:
    """Refuse what is no store, and a layer that it does not keep, before what reads stores is imported."""
    kept_place(read_manifest(store).layers, layer)


@dataclass(frozen=True)
class StoreOutputs:
    """The files that were asked for."""

    csv: Path | None = None
    parquet: Path | None = None
    json: Path | None = None
    figure: Path | None = None
    html: Path | None = None

    @property
    def files(self) -> tuple[Path | None, ...]:
        """The files, in the order in which they are named at the end."""
        return self.figure, self.html, self.csv, self.parquet, self.json

    def check(self) -> None:
        """Refuse files that cannot be written later, before anything is read."""
        wanted = (
            ("--figure", self.figure, (".png", ".svg")),
            ("--csv", self.csv, (".csv",)),
            ("--parquet", self.parquet, (".parquet",)),
            ("--json", self.json, (".json",)),
        )
        for option, file, kinds in wanted:
            if file is not None:
                check_target(file, kinds, option)
        PageFile(self.html).check()

    def write(
        self,
        rows: "Callable[[], Sequence[Mapping[str, Cell]]]",
        data: Callable[[], dict[str, Any]],
        draw: Callable[[Path], None] | None = None,
        page: "Callable[[], Page] | None" = None,
    ) -> None:
        """Write the files. rows: makes the table's rows; data: what --json writes; draw: the picture.

        page: puts the page together; it may refuse, and then nothing is written.
        """
        from regard.corpus.export import write_csv, write_parquet
        from regard.json_files import write_json

        html = PageFile(self.html)
        assembled = None if page is None else html.assemble(lambda _: page())
        html.write(assembled)
        if self.figure is not None and draw is not None:
            draw(self.figure)
        table = rows() if self.csv is not None or self.parquet is not None else []
        if self.csv is not None:
            write_csv(table, self.csv)
        if self.parquet is not None:
            write_parquet(table, self.parquet)
        if self.json is not None:
            write_json(data(), self.json, indent=1)
