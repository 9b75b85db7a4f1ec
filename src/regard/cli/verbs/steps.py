"""`regard steps`: one word's way through one head of a real model, every number of it."""

from typing import Annotated

import typer

from regard.cli import options
from regard.cli.options import Selection, number
from regard.cli.outputs import NOTHING, Outputs, writes
from regard.cli.source import Source, one_trace, traced


@writes("figure", "html of traces", "json", "save")
def steps(
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help="Your text.")] = None,
    word: options.NeededWord = None,
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
    chosen = Selection(layer, head, word=word)
    word = chosen.needed_word()
    outputs.check()

    # torch and transformers are imported only now: help and bad input do not wait for them
    from regard.cli.telling import consoles, tell
    from regard.questions import steps as question

    screens = consoles(outputs.json)
    with screens[1].status("Loading the model and tracing …"):
        found = question.steps(one_trace(traced(given), open_file), word, layer, head)
    tell(found, outputs, screens, everything=everything, traces=found.traces[0])
