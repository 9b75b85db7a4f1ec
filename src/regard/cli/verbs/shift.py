"""`regard shift`: whether a word's meaning differs between two stores, or two parts of one, and in which senses."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli import options, start
from regard.cli.file_options import writes
from regard.cli.outputs import NOTHING, Outputs
from regard.cli.store_options import OCCURRENCES, By, Context, LayerOption, Seed, check_store
from regard.cli.telling import tell
from regard.errors import RegardError

Word = Annotated[str, typer.Argument(metavar="WORD", help="The word to look at.")]
Stores = Annotated[
    list[Path], typer.Option("--store", metavar="STORE", help="What is compared, needed: twice, or once with --by.")
]
Column = Annotated[str | None, typer.Option("--by", metavar="COLUMN", help="A column of the metadata to compare by.")]
Values = Annotated[str | None, typer.Option(metavar="A,B", help="Which two of that column's values.")]
K = Annotated[int | None, options.number("N", "How many senses; by default as many as the silhouette says.")]
Rounds = Annotated[int, options.number("N", "Permutations of the test.")]
Examples = Annotated[int, options.number("N", "Good examples of each sense.")]


@writes("figure", "html", "csv", "parquet", "json", said=OCCURRENCES)
def shift(
    word: Word,
    stores: Stores,
    column: Column = None,
    values: Values = None,
    k: K = None,
    rounds: Rounds = 999,
    examples: Examples = 2,
    by: By = "word",
    layer: LayerOption = None,
    context: Context = 60,
    seed: Seed = 0,
    outputs: Outputs = NOTHING,
) -> None:
    """Compare a word in two stores, or in two parts of one (--by): how far apart, by chance or not, in which senses."""
    outputs.check()
    if len(stores) != (2 if column is None else 1):
        raise RegardError(f"--store: given {len(stores)}, needs two, or one with --by COLUMN")
    if values is not None and column is None:
        raise RegardError("--values needs --by: it says which two values of that column are compared")
    for store in stores:
        check_store(store, layer)
    from contextlib import ExitStack

    start.settle()  # scikit-learn needs scipy, which a command does without at its start
    from regard.cli.console import consoles
    from regard.corpus.store import Store

    screens = consoles(outputs.json)
    chosen = None if values is None else [each.strip() for each in values.split(",")]
    with ExitStack() as stack:
        first, *others = [stack.enter_context(Store(each)) for each in stores]
        with screens[1].status("comparing …"):
            found = first.shift(
                word, others[0] if others else None, column, values=chosen, k=k, by=by, layer=layer, rounds=rounds,
                examples=examples, context=context, seed=seed,
            )  # fmt: skip
        tell(found, outputs, screens)
