"""`regard find`: the occurrences of a word in a store, each in its context, sorted by place, context or cosine."""

from typing import Annotated

import typer

from regard.cli.options import Context, KeptLayer, Lookup, StoreFolder, StoreModel, check_store, number, option
from regard.cli.outputs import NOTHING, Outputs, writes
from regard.cli.telling import tell
from regard.errors import RegardError

SHOWN, CONTEXT = 25, 60


@writes("html", "csv", "parquet", "json")
def find(
    word: Annotated[str, typer.Argument(metavar="WORD", help="Word or phrase to find. For an index of texts: a text.")],
    store: StoreFolder,
    like: Annotated[str | None, option("--like")] = None,
    everywhere: Annotated[bool, option("--everywhere")] = False,
    sort: Annotated[str | None, option("--sort", "source (meaning with --like)")] = None,
    top: Annotated[int | None, number("--top", "25")] = None,
    by: Lookup = "word",
    layer: KeptLayer = None,
    context: Context = CONTEXT,
    prompt: Annotated[str | None, option("--text-prompt", "the folder's default")] = None,
    model: StoreModel = None,
    outputs: Outputs = NOTHING,
) -> None:
    """Find every occurrence of a word in an embedding index and show it in context.

    With --like, a sentence that contains the word, the occurrences closest in meaning come first. In an index
    made with `embed --unit texts`, find the texts closest to the one you give. --csv has a row for each occurrence.
    """
    outputs.check()
    unit = check_store(store, layer)
    words = {
        "--like": like is not None, "--everywhere": everywhere, "--sort": sort is not None, "--lookup": by != "word",
        "--layer": layer is not None, "--context": context != CONTEXT,
    }  # fmt: skip
    only = words if unit == "texts" else {"--text-prompt": prompt is not None}
    if given := [name for name, each in only.items() if each]:
        raise RegardError(f"{given[0]}: store {str(store)!r} keeps {unit}, of which it cannot be asked")
    from regard.cli.telling import consoles
    from regard.corpus.store_tables import StoreTables  # and not Store, with which torch would be imported
    from regard.questions.find import find as found_in

    screens = consoles(outputs.json)
    with StoreTables(store, model=model) as opened:
        if like is not None or unit == "texts":
            with screens[1].status("Loading the model …"):
                _ = opened.model
        if unit == "texts":
            from regard.questions.nearest import find_texts

            texts = find_texts(opened, word, prompt=prompt, top=top)
            tell(texts, outputs, screens, SHOWN if top is None else top)
            return
        found = found_in(
            opened, word, like=like, everywhere=everywhere, by=by, sort=sort, top=top, layer=layer, context=context
        )
        tell(found, outputs, screens, SHOWN if top is None else top)
