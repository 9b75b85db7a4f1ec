"""`regard shift`: whether a word's meaning differs between two stores, or two parts of one, and in which senses."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli import options, start
from regard.cli.options import Context, Examples, KeptLayer, Lookup, Senses, check_store, number, option
from regard.cli.outputs import NOTHING, Outputs, writes
from regard.cli.telling import tell
from regard.errors import RegardError


@writes("figure", "html", "csv", "parquet", "json")
def shift(
    word: Annotated[str, typer.Argument(metavar="WORD", help="Word to examine.")],
    stores: Annotated[list[Path], option("--store")],
    column: Annotated[str | None, option("--column")] = None,
    values: Annotated[str | None, option("--values", "the only two")] = None,
    k: Senses = None,
    rounds: Annotated[int, number("--rounds")] = 999,
    examples: Examples = 2,
    by: Lookup = "word",
    layer: KeptLayer = None,
    context: Context = 60,
    seed: options.Seed = 0,
    outputs: Outputs = NOTHING,
) -> None:
    """Compare a word's meaning between two embedding indexes (--store twice) or parts of an index (--column).

    Show how far apart they are, a significance test, and the senses that differ. --csv has a row for each occurrence.
    """
    outputs.check()
    if len(stores) != (2 if column is None else 1):
        raise RegardError(f"--store: given {len(stores)}, needs two, or one with --column NAME")
    if values is not None and column is None:
        raise RegardError("--values needs --column: it says which two values of that column are compared")
    for store in stores:
        check_store(store, layer)
    from contextlib import ExitStack

    start.settle()
    from regard.cli.telling import consoles
    from regard.corpus.store import Store

    screens = consoles(outputs.json)
    chosen = None if values is None else [each.strip() for each in values.split(",")]
    with ExitStack() as stack:
        first, *others = [stack.enter_context(Store(each)) for each in stores]
        with screens[1].status("Comparing …"):
            found = first.shift(
                word, others[0] if others else None, column, values=chosen, k=k, by=by, layer=layer, rounds=rounds,
                examples=examples, context=context, seed=seed,
            )  # fmt: skip
        tell(found, outputs, screens)
