"""`regard heads`: what every head does, over texts, in tests made for it, or over a whole corpus."""

from pathlib import Path
from typing import Annotated

from regard.cli import options
from regard.cli.asking import ask
from regard.cli.file_options import writes
from regard.cli.options import flag
from regard.cli.outputs import NOTHING, Outputs
from regard.cli.store_options import check_store
from regard.cli.telling import tell
from regard.errors import RegardError
from regard.questions.heads.asked import HeadsAsked

StoreFolder = Annotated[Path | None, options.store("none: the heads are looked at over TEXT")]
Tests = Annotated[bool, flag("--tests", "Test the heads too, on repeated random tokens and with tokens exchanged.")]


@writes("figure", "html", "csv", "parquet", "json")
def heads(
    texts: options.Texts = None,
    targets: options.Targets = None,
    model: options.ModelName = None,
    store: StoreFolder = None,
    tests: Tests = False,
    seed: options.Seed = 0,
    outputs: Outputs = NOTHING,
) -> None:
    """Show what every head's attention follows: positions, special and repeated tokens, content, translations.

    Over texts, or over the corpus of a store (--store). --csv has a row for each head, with all of its scores.
    """
    if store is not None:
        for option, given in (("TEXT", texts), ("--target", targets), ("--model", model), ("--tests", tests)):
            if given:
                raise RegardError(f"--store and {option}: a store has its own texts and model, give one of them")
        outputs.check()
        check_store(store)
        from regard.cli.console import consoles
        from regard.corpus.store import Store

        with Store(store) as opened:
            found = opened.stats()
        tell(found, outputs, consoles(outputs.json))
        return
    asked = HeadsAsked(tests=tests, seed=seed)
    ask("heads", asked, texts=texts, targets=targets, model=model, outputs=outputs)
