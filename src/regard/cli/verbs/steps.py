"""`regard steps`: one word's way through one head of a real model, every number of it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli import options
from regard.cli.early_checks import EarlyChecks, no_steps
from regard.cli.file_options import writes
from regard.cli.outputs import NOTHING, Outputs
from regard.cli.page_file import PageFile
from regard.cli.selection import Selection
from regard.cli.source import Source, one_trace, traced

if TYPE_CHECKING:
    from regard.web.page import Page

OneText = Annotated[str | None, typer.Argument(metavar="TEXT", help="One text.")]
OneHead = Annotated[int, options.number("N", "The head, counted from 0; -1 is the last.")]
OpenOne = Annotated[Path | None, options.file("--open", "Look at a saved trace, without the model: no TEXT then.")]


@writes("figure", "json", "html of traces", "save")
def steps(
    text: OneText = None,
    word: options.NeededWord = None,
    model: options.ModelName = None,
    layer: options.OneLayer = 0,
    head: OneHead = 0,
    everything: options.All = False,
    open_file: OpenOne = None,
    outputs: Outputs = NOTHING,
) -> None:
    """Show how a word's context vector comes about: scores, scaled, weights, weighted values, their sum."""
    given = Source([] if text is None else [text], [], model, file=open_file)
    given.check("steps")
    chosen = Selection(layer, head, word=word)
    word = chosen.needed_word()
    outputs.check()
    early = EarlyChecks.of(given)
    early.check_kind(True, no_steps)
    early.check(chosen, page=outputs.html)

    # torch and transformers are imported only now: help and bad input do not wait for them
    from regard.cli.console import consoles, finish
    from regard.explain.weights.attended import check_head, check_layer
    from regard.explain.weights.sinks import sinks
    from regard.textbook import head_steps
    from regard.views.json import head_steps_data
    from regard.views.terminal.head_steps import show_head_steps, show_head_steps_shortly
    from regard.views.terminal.layout import put
    from regard.views.terminal.unknown_tokens import of_traces, unknown_first

    console, errors = consoles(outputs.json)
    with errors.status("loading the model and tracing …"):
        done = traced(given, errors)
    trace = one_trace(done, open_file)
    layer, head = check_layer(trace, layer), check_head(trace, head)  # as they are shown: counted from 0
    found = [(n, head_steps(trace, n, layer, head)) for each in trace.word(word) for n in each.tokens]
    apart = sinks(trace)

    def draw(file: Path) -> list[str]:
        from regard.explain.causes.block_steps import block_steps
        from regard.views.figures.head_steps import Way, draw_steps

        ways = [Way(n, record, block_steps(trace, n, layer)) for n, record in found]
        return draw_steps(ways, trace.tokens, layer, head, file, [sink.token for sink in apart])

    numbers = [sink.token for sink in apart]

    def page(html: PageFile) -> "Page":
        from regard.explain.findings.head_steps import head_steps_findings
        from regard.web.assemble import Opening, page_of

        sentences = head_steps_findings(found, trace.tokens, layer, head, numbers)
        opening = Opening("steps", layer, head, word)
        return page_of(trace, html.choice(steps=[layer]), opening, findings=sentences)

    data = lambda: head_steps_data(trace, layer, head, found, apart)  # noqa: E731
    notes = outputs.write(traces=trace, draw=draw, data=data, page=page)
    put(unknown_first(of_traces([trace])), console)
    if not everything:
        show_head_steps_shortly(found, trace, layer, head, console, numbers)
    for n, record in found if everything else ():
        show_head_steps(record, trace.tokens, trace.tokens[n], f"layer {layer}, head {head}", console, numbers)
    finish(console, errors, outputs.files, notes)
