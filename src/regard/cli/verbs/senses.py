"""`regard senses`: the senses of a word in a store, with examples and the words that tell them, checked by ablation."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli import options, start
from regard.cli.file_options import writes
from regard.cli.outputs import NOTHING, Outputs
from regard.cli.store_options import (
    OCCURRENCES,
    By,
    Context,
    LayerOption,
    Seed,
    StoreFolder,
    StoreModel,
    check_store,
)
from regard.cli.telling import tell
from regard.errors import RegardError

Word = Annotated[str, typer.Argument(metavar="WORD", help="The word to look at.")]
K = Annotated[int | None, options.number("N", "How many senses; by default as many as the silhouette says.")]
Train = Annotated[
    Path | None, options.file("--train", "Labelled sentences that teach the senses: .csv of sentence, position, label.")
]
Examples = Annotated[int, options.number("N", "Good examples of each sense.")]
Words = Annotated[int, options.number("N", "Words of the context that set each sense apart.")]
Checked = Annotated[int, options.number("N", "Occurrences in which each of them is cut; 0 for none.")]


@writes("figure", "html", "csv", "parquet", "json", said=OCCURRENCES)
def senses(
    word: Word,
    store: StoreFolder,
    k: K = None,
    train: Train = None,
    examples: Examples = 3,
    words: Words = 5,
    checked: Checked = 30,
    by: By = "word",
    layer: LayerOption = None,
    context: Context = 60,
    model: StoreModel = None,
    seed: Seed = 0,
    outputs: Outputs = NOTHING,
) -> None:
    """Tell the senses of a word: clusters of its occurrences, examples, and what in the context tells them."""
    outputs.check()
    if train is not None and not train.is_file():
        raise RegardError(f"--train {str(train)!r} cannot be read: there is no such file")
    check_store(store, layer)
    start.settle()  # scikit-learn needs scipy, which a command does without at its start
    from regard.cli.console import consoles
    from regard.corpus.asking.labelled import read_labelled
    from regard.corpus.store import Store

    screens = consoles(outputs.json)
    with Store(store, model=model) as opened, screens[1].status("clustering, and cutting words …"):
        labelled = None if train is None else read_labelled(train)
        found = opened.senses(
            word, k, by=by, layer=layer, labelled=labelled, examples=examples, words=words, checked=checked,
            context=context, seed=seed,
        )  # fmt: skip
    tell(found, outputs, screens)
