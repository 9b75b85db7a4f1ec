"""`regard steps`: one word's way through one head of a real model, every number of it."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.early_checks import EarlyChecks, no_steps
from regard.cli.options import FigureFile, JsonFile, ModelName, NeededWord, SaveFile, whole_number
from regard.cli.outputs import Outputs, TraceFile
from regard.cli.source import Source, traced
from regard.errors import RegardError

OneText = Annotated[str | None, typer.Argument(metavar="TEXT", help="One text.")]
OneLayer = Annotated[
    int, typer.Option(parser=whole_number, metavar="N", help="The layer, counted from 0; -1 is the last.")
]
OneHead = Annotated[
    int, typer.Option(parser=whole_number, metavar="N", help="The head, counted from 0; -1 is the last.")
]
OpenOne = Annotated[
    Path | None, typer.Option("--open", metavar="FILE", help="Look at a saved trace, without the model: no TEXT then.")
]


def steps(
    text: OneText = None,
    word: NeededWord = None,
    model: ModelName = None,
    layer: OneLayer = 0,
    head: OneHead = 0,
    figure: FigureFile = None,
    json_file: JsonFile = None,
    open_file: OpenOne = None,
    save_file: SaveFile = None,
) -> None:
    """Show how a word's context vector comes about: scores, scaled, weights, weighted values, their sum."""
    given = Source([] if text is None else [text], [], model, file=open_file)
    given.check("steps")
    if word is None or not word.strip():
        raise RegardError("--word is needed: a word of the text")
    outputs = Outputs(figure, json_file, save=TraceFile(save_file))
    outputs.check()
    early = EarlyChecks.of(given)
    early.check_kind(True, no_steps)
    early.check_numbers(layer, head)
    early.check_word(word)

    # torch and transformers are imported only now: help and bad input do not wait for them
    from regard.cli.console import consoles, finish
    from regard.explain.attended import check_head, check_layer
    from regard.explain.sinks import sinks
    from regard.textbook import head_steps
    from regard.views.json import steps_data
    from regard.views.terminal.head_steps import show_steps
    from regard.views.terminal.layout import put
    from regard.views.terminal.unknown_tokens import of_traces, unknown_first

    console, errors = consoles(json_file)
    with errors.status("loading the model and tracing …"):
        done = traced(given)
    if len(done.traces) > 1:
        raise RegardError(f"steps: {str(open_file)!r} holds {len(done.traces)} traces, needs a file of one")
    (trace,) = done.traces
    if hasattr(trace, "encoder"):
        raise no_steps(trace.decoder.status.model)
    layer, head = check_layer(trace, layer), check_head(trace, head)  # as they are shown: counted from 0
    found = [(n, head_steps(trace, n, layer, head)) for each in trace.word(word) for n in each.tokens]
    apart = sinks(trace)

    def draw(file: Path) -> list[str]:
        from regard.explain.block_steps import block_steps
        from regard.views.figures.head_steps import Way, draw_steps

        ways = [Way(n, record, block_steps(trace, n, layer)) for n, record in found]
        return draw_steps(ways, trace.tokens, layer, head, file, [sink.token for sink in apart])

    notes = outputs.write(traces=trace, draw=draw, data=lambda: steps_data(trace, layer, head, found, apart))
    put(unknown_first(of_traces([trace])), console)
    for n, record in found:
        where = f"layer {layer}, head {head}"
        show_steps(record, trace.tokens, trace.tokens[n], where, console, [sink.token for sink in apart])
    finish(console, errors, outputs.files, notes)
