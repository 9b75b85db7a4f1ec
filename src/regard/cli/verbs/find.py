"""`regard find`: the occurrences of a word in a store, each in its context, sorted by place, context or cosine."""

from typing import Annotated

import typer

from regard.cli import options
from regard.cli.file_options import writes
from regard.cli.options import flag, said
from regard.cli.outputs import NOTHING, Outputs
from regard.cli.store_options import Context, KeptLayer, Lookup, StoreFolder, StoreModel, check_store
from regard.cli.telling import tell
from regard.errors import RegardError

Word = Annotated[str, typer.Argument(metavar="WORD", help="The word or words to find; in a store of texts, a text.")]
Like = Annotated[str | None, said("--like", "TEXT", "What the word is compared with, by cosine.")]
Everywhere = Annotated[bool, flag("--everywhere", "With --like: search all words of the store.")]
Sort = Annotated[
    str | None, said("--sort", "meaning|source|left|right", "The order of the lines.", "source; with --like meaning")
]
Prompt = Annotated[str | None, options.text_prompt()]
Top = Annotated[int | None, options.top("25; all go into files")]
SHOWN, CONTEXT = 25, 60


@writes("html", "csv", "parquet", "json")
def find(
    word: Word,
    store: StoreFolder,
    like: Like = None,
    everywhere: Everywhere = False,
    sort: Sort = None,
    top: Top = None,
    by: Lookup = "word",
    layer: KeptLayer = None,
    context: Context = CONTEXT,
    prompt: Prompt = None,
    model: StoreModel = None,
    outputs: Outputs = NOTHING,
) -> None:
    """Find every occurrence of a word in a store, in its context; --csv has a row for each occurrence.

    With --like, a sentence that has the word, the occurrences that are nearest to it in meaning come first. A store of
    texts is asked for those that are nearest to a text.
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
    from regard.cli.console import consoles
    from regard.corpus.store_tables import StoreTables  # and not Store, with which torch would be imported
    from regard.questions.find.answer import find as found_in

    screens = consoles(outputs.json)
    with StoreTables(store, model=model) as opened:
        if like is not None or unit == "texts":
            with screens[1].status("loading the model …"):
                _ = opened.model
        if unit == "texts":
            from regard.questions.nearest.answer import find_texts

            texts = find_texts(opened, word, prompt=prompt, top=top)
            tell(texts, outputs, screens, SHOWN if top is None else top)
            return
        found = found_in(
            opened, word, like=like, everywhere=everywhere, by=by, sort=sort, top=top, layer=layer, context=context
        )
        tell(found, outputs, screens, SHOWN if top is None else top)
