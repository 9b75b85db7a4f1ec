"""`regard heads`: the attention patterns of every head. `regard steps`: all numbers of a word in a head."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli import options
from regard.cli.asking import ask
from regard.cli.options import check_store, needed_word, number, option
from regard.cli.outputs import NOTHING, Outputs, writes
from regard.cli.source import Source, one_trace, traced
from regard.cli.telling import tell, waiting
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
        check_store(store)
        from regard.corpus.store import Store

        with Store(store) as opened:
            found = opened.stats()
        tell(found, outputs)
        return
    asked = HeadsAsked(tests=tests, seed=seed)
    ask("heads", asked, texts=texts, targets=targets, model=model, outputs=outputs)


@writes("figure", "html of traces", "json", "save")
def steps(
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help="Your text.")] = None,
    word: Annotated[str | None, option("--word", options.REQUIRED)] = None,
    model: options.ModelName = None,
    layer: options.OneLayer = 0,
    head: Annotated[int, number("--head")] = 0,
    everything: options.All = False,
    open_file: options.OpenFile = None,
    outputs: Outputs = NOTHING,
) -> None:
    """Show how a head computes a word's context vector: scores, scaled scores, weights, weighted values, sum."""
    given = Source([] if text is None else [text], [], model, file=open_file)
    given.check("steps")
    word = needed_word(word)
    from regard.questions import steps as question

    with waiting(outputs, "Loading the model and tracing …"):
        found = question.steps(one_trace(traced(given), open_file), word, layer, head)
    tell(found, outputs, everything=everything, traces=found.traces[0])
