"""`regard find`: the occurrences of a word in a store, each in its context, sorted by place, context or cosine."""

from typing import Annotated

import typer

from regard.cli import options
from regard.cli.file_options import writes
from regard.cli.outputs import NOTHING, Outputs
from regard.cli.store_options import (
    OCCURRENCES,
    By,
    Context,
    LayerOption,
    StoreFolder,
    StoreModel,
    check_store,
)
from regard.cli.telling import tell

Word = Annotated[str, typer.Argument(metavar="WORD", help="The word to find, or words that stand together.")]
Like = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="A sentence with the word: what is nearest to it by cosine comes first."),
]
Everywhere = Annotated[bool, typer.Option("--everywhere", help="With --like: the nearest of all words in the store.")]
Sort = Annotated[str | None, typer.Option(metavar="meaning|source|left|right", help="The order of the lines.")]
Top = Annotated[int | None, options.number("K", "The first K lines; by default all to files, 25 on the screen.")]
SHOWN = 25


@writes("html", "csv", "parquet", "json", said=OCCURRENCES)
def find(
    word: Word,
    store: StoreFolder,
    like: Like = None,
    everywhere: Everywhere = False,
    sort: Sort = None,
    top: Top = None,
    by: By = "word",
    layer: LayerOption = None,
    context: Context = 60,
    model: StoreModel = None,
    outputs: Outputs = NOTHING,
) -> None:
    """Find every occurrence of a word in a store, in its context."""
    outputs.check()
    check_store(store, layer)
    from regard.cli.console import consoles
    from regard.corpus.store_tables import StoreTables  # and not Store, with which torch would be imported
    from regard.questions.find.answer import find as found_in

    screens = consoles(outputs.json)
    with StoreTables(store, model=model) as opened:
        if like is not None:
            with screens[1].status("loading the model …"):
                _ = opened.model
        found = found_in(
            opened, word, like=like, everywhere=everywhere, by=by, sort=sort, top=top, layer=layer, context=context
        )
        tell(found, outputs, screens, SHOWN if top is None else top)
