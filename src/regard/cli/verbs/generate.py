"""`regard generate`: a causal model goes on with a text."""

from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli import clock, options
from regard.cli.early_checks import EarlyChecks, no_continuation
from regard.cli.file_options import writes
from regard.cli.outputs import NOTHING, Outputs
from regard.cli.page_file import PageFile
from regard.cli.sampling import Sampling
from regard.cli.source import Source
from regard.cli.start import load_model
from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.web.page import Page


def real_number(given: str | float) -> float:
    """An option's value as a number. Raises typer.BadParameter, naming what was given."""
    try:
        return float(given)
    except ValueError as error:
        raise typer.BadParameter(f"given {given!r}, needs a number") from error


Prompt = Annotated[str | None, typer.Argument(metavar="TEXT", help="What the text begins with.")]
NewTokens = Annotated[int | None, options.number("N", "The most tokens to write (60, or as many as fit).")]
Temperature = Annotated[
    float | None,
    typer.Option(parser=real_number, metavar="T", help="Draw at random: below 1 likelier tokens, above 1 others."),
]
TopK = Annotated[int | None, options.number("K", "Draw among the K likeliest.")]
Seed = Annotated[int | None, options.number("N", "Of the random numbers.")]
All = Annotated[bool, typer.Option("--all", help="The text alone, with the whole status.")]


@writes("html of traces", "save")
def generate(
    text: Prompt = None,
    model: options.NeededModel = None,
    new_tokens: NewTokens = None,
    temperature: Temperature = None,
    top_k: TopK = None,
    seed: Seed = None,
    everything: All = False,
    outputs: Outputs = NOTHING,
) -> None:
    """Let a causal model (one's own run, too) write on: the likeliest token each time, or drawn (--temperature)."""
    from regard.text.tokens import check_text

    if text is None:
        raise RegardError("no text given: regard generate TEXT --model M")
    check_text(text)
    if model is None:
        raise RegardError("--model is needed: the default model reads, it cannot write")
    chosen = Sampling(new_tokens, temperature, top_k, seed)
    chosen.check()
    outputs.check()
    early = EarlyChecks.of(Source(texts=[text], model=model))
    early.check_kind(True, no_continuation)
    early.check_page(outputs.html)

    # torch and transformers are imported only now: help and bad input do not wait for them
    from regard.cli.console import consoles, finish
    from regard.views.terminal.generation import show_writing, written
    from regard.views.terminal.layout import put, status
    from regard.views.terminal.unknown_tokens import of_traces, unknown_first

    console, errors = consoles()
    with errors.status("loading the model and writing …"):
        opened = load_model(model)
        if opened.pairs:
            raise no_continuation(opened.name)
        done = chosen.write(opened, text, console=errors)

    def page(html: PageFile) -> "Page":
        from regard.explain.findings.writing import writing_findings
        from regard.explain.logits.predictions import names_of
        from regard.explain.logits.written_tokens import writing
        from regard.trace.trace import Trace
        from regard.web.assemble import Opening, page_of

        assert isinstance(done.trace, Trace)
        found = writing(done.trace, done.start, done.ended, names_of(done.trace))
        sentences = writing_findings(found, done.trace.tokens)
        return page_of(done, html.choice(), Opening("generation"), findings=sentences)

    outputs.write(traces=done.trace, page=page)
    if everything:
        parts = [*unknown_first(of_traces([done.trace])), *written(done)]
        put([*parts, status([done.trace.status], took=clock.seconds())], console)
    else:
        show_writing(done, console, clock.seconds())
    finish(console, errors, outputs.files)
