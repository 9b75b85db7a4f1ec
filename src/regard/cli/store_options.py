"""Options of questions to a store: which store, which of its layers, how a word is looked up, how much context."""

from pathlib import Path
from typing import Annotated

from regard.cli.options import number, option
from regard.corpus.manifest import read_manifest
from regard.corpus.settings import place_among_stored_layers

StoreFolder = Annotated[Path, option("--store")]
StoreModel = Annotated[str | None, option("--model", "the default model, if it made the index")]
Lookup = Annotated[str, option("--lookup")]
KeptLayer = Annotated[int | None, number("--layer", "the last layer of the index")]
Senses = Annotated[int | None, number("--k", "chosen by silhouette score")]
Examples = Annotated[int, number("--examples")]
Context = Annotated[int, number("--context")]


def check_store(store: Path, layer: int | None = None) -> str:
    """Refuse what is no store, and a layer that it does not keep, before what reads stores is imported.

    Returns:
        The unit that it keeps: words, tokens or texts.
    """
    manifest = read_manifest(store)
    place_among_stored_layers(manifest.layers, layer)
    return manifest.unit
