"""Begin a store, or go on with one of the same paths, model and settings."""

import os
from pathlib import Path

from regard.corpus.environment import check_store_environment, check_store_products, describe_store_environment
from regard.corpus.manifest import NAME, Manifest, ModelSummary, absolute, read_manifest
from regard.corpus.reading.document import Columns
from regard.corpus.settings import Settings, chosen_layers_to_store
from regard.corpus.writing.pooled_windows import vector_width
from regard.corpus.writing.shard import remove_unfinished_shards
from regard.corpus.writing.store_folder import SHARDS
from regard.errors import RegardError
from regard.models.digest import digest_model
from regard.models.model import Model
from regard.models.states import count_heads, count_layers


def begin_store(
    store: Path, paths: list[str], model: Model, source: str | None, settings: Settings, columns: Columns
) -> Manifest:
    """Write the manifest of a new store, or read that of one that is there."""
    if model.tokenizer is None:
        raise RegardError(f"model {model.name!r} has no tokenizer: texts cannot be read with it")
    if model.pairs:
        raise RegardError(f"model {model.name!r} is an encoder-decoder: a corpus is read with a model of one stack")
    depth = count_layers(model)
    width = vector_width(settings, model)
    summary = ModelSummary(model.name, source or "", digest_model(model), depth, count_heads(model), width)
    layers = chosen_layers_to_store(settings.layers, depth, model.name)
    if not (store / NAME).exists():
        environment, named = describe_store_environment(settings.backend), [columns.text, columns.id]
        manifest = Manifest(summary, settings.to_json(), environment, paths, layers, columns=named, folder=os.getcwd())
        manifest.write(store)
        return manifest
    held = read_manifest(store)
    wanted = settings.to_json()
    for what, was, given in (
        ("paths", held.inputs, absolute(paths, os.getcwd())),
        ("model", held.model.digest, summary.digest),
        *((f"setting {name}", held.settings[name], wanted[name]) for name in wanted),
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
