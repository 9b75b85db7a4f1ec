"""`regard heads`: what every head does, over texts, in tests made for it, or over a whole corpus."""

from pathlib import Path
from typing import Annotated

from regard.cli import options
from regard.cli.asking import ask
from regard.cli.options import check_store, option
from regard.cli.outputs import NOTHING, Outputs, writes
from regard.cli.telling import tell
from regard.errors import RegardError
from regard.questions.heads.asked import HeadsAsked


@writes("figure", "html", "csv", "parquet", "json")
def heads(
    texts: options.Texts = None,
    targets: options.Targets = None,
    model: options.ModelName = None,
    store: Annotated[Path | None, option("--store", "examine the heads on TEXT")] = None,
    tests: Annotated[bool, option("--tests")] = False,
    seed: options.Seed = 0,
    outputs: Outputs = NOTHING,
) -> None:
    """Score each head's attention to positions, special tokens, repeated tokens, content and translations.

    Examine texts, or the corpus of an embedding index (--store). --csv has a row for each head.
    """
    if store is not None:
        for option, given in (("TEXT", texts), ("--target-text", targets), ("--model", model), ("--tests", tests)):
            if given:
                raise RegardError(f"--store and {option}: a store has its own texts and model, give one of them")
        outputs.check()
        check_store(store)
        from regard.cli.telling import consoles
        from regard.corpus.store import Store

        with Store(store) as opened:
            found = opened.stats()
        tell(found, outputs, consoles(outputs.json))
        return
    asked = HeadsAsked(tests=tests, seed=seed)
    ask("heads", asked, texts=texts, targets=targets, model=model, outputs=outputs)
