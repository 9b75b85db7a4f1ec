"""Begin a store, or go on with one of the same paths, model and settings: its manifest, and where its texts are."""

import os
from dataclasses import replace
from pathlib import Path

from regard.corpus.environment import check_store_environment, check_store_products, describe_store_environment
from regard.corpus.manifest import NAME, Manifest, ModelSummary, absolute, read_manifest
from regard.corpus.reading.document import Columns
from regard.corpus.reading.documents import read_documents
from regard.corpus.settings import Settings, chosen_layers_to_store
from regard.corpus.writing.pooled_windows import vector_width
from regard.corpus.writing.shard import remove_unfinished_shards
from regard.corpus.writing.store_folder import SHARDS
from regard.corpus.writing.stored_texts import Compared, StoredTexts, check_same
from regard.errors import RegardError
from regard.models.digest import digest_model
from regard.models.model import Model
from regard.models.states import count_heads, count_layers


def begin_store(
    store: Path, paths: list[str], model: Model, source: str | None, settings: Settings, columns: Columns
) -> Manifest:
    """Write the manifest of a new store, or read that of one that is there.

    Args:
        store: its folder.
        paths: what is read, as it was given.
        model: that reads it. source: as `regard.load` took it, None for the default model.
        settings: what is kept; of texts with their prompt and pooling.
        columns: of tables.

    Raises:
        RegardError: the model cannot read a corpus, or the store is of something else.
    """
    if model.tokenizer is None:
        raise RegardError(f"model {model.name!r} has no tokenizer: texts cannot be read with it")
    if model.pairs:
        raise RegardError(f"model {model.name!r} is an encoder-decoder: a corpus is read with a model of one stack")
    depth = count_layers(model)
    width = vector_width(settings, model)
    summary = ModelSummary(model.name, source or "", digest_model(model), depth, count_heads(model), width)
    layers = chosen_layers_to_store(settings.layers, depth, model.name)
    if not (store / NAME).exists():
        environment, named, here = describe_store_environment(settings.backend), [columns.text, columns.id], os.getcwd()
        manifest = Manifest(
            summary, settings.to_json(), environment, absolute(paths, here), layers, columns=named, given=paths,
            folder=here,
        )  # fmt: skip
        manifest.write(store)
        return manifest
    held = read_manifest(store)
    wanted, usual = settings.to_json(), Settings().to_json()  # an earlier version's lack what it did not know
    for what, was, given in (
        ("paths", held.inputs, absolute(paths, os.getcwd()) if held.placed else paths),
        ("model", held.model.digest, summary.digest),
        *((f"setting {name}", held.settings.get(name, usual[name]), wanted[name]) for name in wanted),
        ("layers", held.layers, layers),
        ("columns", held.columns, [columns.text, columns.id]),
    ):
        if was != given:
            raise RegardError(
                f"store {str(store)!r} was made with {what} {was}, given is {given}: give another --out, or what it "
                "was made with"
            )
    check_store_environment(held.environment)
    check_store_products(held.environment)
    remove_unfinished_shards(store / SHARDS)
    return held


def place_store(
    store: Path, held: Manifest, columns: Columns, stored: StoredTexts, prune: bool, follow_links: bool = False
) -> tuple[Manifest, tuple[str, ...]]:
    """Return a store's manifest with the folder that its texts are in; of an earlier version's, what to know of that.

    Raises:
        RegardError: an earlier version made the store, and its texts are not those that are here; or its inputs are
            not what it was given.
    """
    if held.placed:
        if absolute(held.given, held.folder) != held.inputs:
            raise RegardError(f"store {str(store)!r}: its {NAME} names other inputs than those that it was given")
        return held, ()
    here = os.getcwd()
    made = replace(held, given=held.inputs, folder=here, inputs=absolute(held.inputs, here))
    if made.inputs == held.inputs:
        return made, ()
    named = ", ".join(map(repr, held.inputs[:3]))
    early = f"store {str(store)!r} was made by an earlier version, which did not keep the folder that {named} was in"
    paths = [each for each in held.inputs if each != "-"]  # standard input is read once
    if not held.shards:  # it was not finished: its shards are there, and nothing says in which order
        stored = StoredTexts(store / SHARDS, sorted(path.name for path in (store / SHARDS).iterdir()))
    read = read_documents(paths, columns, follow_links=follow_links)
    differing = Compared() if prune else check_same(read, stored)
    if differing.gone:
        raise RegardError(
            f"{early}: {differing.gone:,} of its documents are not here as they were ({differing.first!r}); go to that "
            "folder, give another --out, or --prune to take what is here instead"
        )
    return made, (f"{early}: from now on its texts are those of {', '.join(made.inputs[:3])}",)
