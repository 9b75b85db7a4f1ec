"""Options of questions to a store: which store, which of its layers, how a word is looked up, how much context."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli import options
from regard.corpus.manifest import read_manifest
from regard.corpus.settings import kept_place

StoreFolder = Annotated[Path, typer.Option("--store", metavar="STORE", help="What regard embed wrote, needed.")]
StoreModel = Annotated[
    str | None,
    typer.Option("--model", metavar="M", help="What made the store, where that was not the default model."),
]
By = Annotated[str, typer.Option("--lookup", metavar="word|lemma", help="What WORD is compared with.")]
LayerOption = Annotated[int | None, options.number("N", "The layer, of those kept; by default the last of them.")]
Context = Annotated[int, options.number("N", "Characters on either side.")]
Seed = Annotated[int, options.number("N", "Of all that is drawn at random.")]
OCCURRENCES = {"csv": "Write a row for each occurrence: .csv, safe in spreadsheets."}
EVERY_SCORE = {"csv": "Write a row for each head, with its every score: .csv, safe in spreadsheets."}


def check_store(store: Path, layer: int | None = None) -> None:
    """Refuse what is no store, and a layer that it does not keep, before what reads stores is imported."""
    kept_place(read_manifest(store).layers, layer)
