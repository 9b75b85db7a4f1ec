"""Options of questions to a store: which store, which of its layers, how a word is looked up, how much context."""

from pathlib import Path
from typing import Annotated

from regard.cli import options
from regard.corpus.manifest import read_manifest
from regard.corpus.settings import place_among_stored_layers

StoreFolder = Annotated[Path, options.store()]
StoreModel = Annotated[str | None, options.model("the default model, where it made the store")]
Lookup = Annotated[str, options.said("--lookup", "word|lemma", "Compare WORD with words as written, or with lemmas.")]
KeptLayer = Annotated[int | None, options.layer("the last that is kept")]
Senses = Annotated[int | None, options.number("--k", "How many senses there are.", "as many as the silhouette says")]
Examples = Annotated[int, options.number("--examples", "How many examples of each sense to show.")]
Context = Annotated[int, options.number("--context", "How many characters to show on either side.")]


def check_store(store: Path, layer: int | None = None) -> str:
    """Refuse what is no store, and a layer that it does not keep, before what reads stores is imported.

    Returns:
        The unit that it keeps: words, tokens or texts.
    """
    manifest = read_manifest(store)
    place_among_stored_layers(manifest.layers, layer)
    return manifest.unit
