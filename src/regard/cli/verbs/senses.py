"""`regard senses`: the senses of a word in a store, with examples and the words that tell them, checked by ablation."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli import options, start
from regard.cli.options import (
    Context,
    Examples,
    KeptLayer,
    Lookup,
    Senses,
    StoreFolder,
    StoreModel,
    check_store,
    number,
    option,
)
from regard.cli.outputs import NOTHING, Outputs, writes
from regard.cli.telling import tell
from regard.errors import RegardError


@writes("figure", "html", "csv", "parquet", "json")
def senses(
    word: Annotated[str, typer.Argument(metavar="WORD", help="Word to examine.")],
    store: StoreFolder,
    k: Senses = None,
    train: Annotated[Path | None, option("--train")] = None,
    examples: Examples = 3,
    words: Annotated[int, number("--words")] = 5,
    checked: Annotated[int, number("--checked")] = 30,
    by: Lookup = "word",
    layer: KeptLayer = None,
    context: Context = 60,
    model: StoreModel = None,
    seed: options.Seed = 0,
    outputs: Outputs = NOTHING,
) -> None:
    """Find the senses of a word: clusters of its occurrences, with examples and the context words that mark them.

    --csv has a row for each occurrence.
    """
    outputs.check()
    if train is not None and not train.is_file():
        raise RegardError(f"--train {str(train)!r} cannot be read: there is no such file")
    check_store(store, layer)
    start.settle()
    from regard.cli.telling import consoles
    from regard.corpus.asking.disambiguate import read_labelled
    from regard.corpus.store import Store

    screens = consoles(outputs.json)
    with Store(store, model=model) as opened, screens[1].status("Clustering, and cutting words …"):
        labelled = None if train is None else read_labelled(train)
        found = opened.senses(
            word, k, by=by, layer=layer, labelled=labelled, examples=examples, words=words, checked=checked,
            context=context, seed=seed,
        )  # fmt: skip
    tell(found, outputs, screens)
