"""`regard generate`: a causal model goes on with a text."""

from pathlib import Path
from typing import Annotated, Any

import typer

from regard.cli import clock
from regard.cli.early_checks import EarlyChecks, no_continuation
from regard.cli.options import NeededModel, whole_number
from regard.cli.outputs import Outputs, TraceFile
from regard.cli.source import Source
from regard.errors import RegardError
from regard.generation.settings import check_options, check_seed


def real_number(given: str | float) -> float:
    """An option's value as a number. Raises typer.BadParameter, naming what was given."""
    try:
        return float(given)
    except ValueError as error:
        raise typer.BadParameter(f"given {given!r}, needs a number") from error


Prompt = Annotated[str | None, typer.Argument(metavar="TEXT", help="What the text begins with.")]
NewTokens = Annotated[
    int | None, typer.Option(parser=whole_number, metavar="N", help="The most tokens to write (60, or as many as fit).")
]
Temperature = Annotated[
    float | None,
    typer.Option(parser=real_number, metavar="T", help="Draw at random: below 1 likelier tokens, above 1 others."),
]
TopK = Annotated[int | None, typer.Option(parser=whole_number, metavar="K", help="Draw among the K likeliest.")]
Seed = Annotated[int | None, typer.Option(parser=whole_number, metavar="N", help="Of the random numbers.")]
SaveTrace = Annotated[
    Path | None, typer.Option("--save", metavar="FILE", help="Write the trace, prompt and answer: .safetensors.")
]


def generate(
    text: Prompt = None,
    model: NeededModel = None,
    new_tokens: NewTokens = None,
    temperature: Temperature = None,
    top_k: TopK = None,
    seed: Seed = None,
    save_file: SaveTrace = None,
) -> None:
    """Let a causal model (one's own run, too) write on; the likeliest token each time, unless told to draw."""
    from regard.text.tokens import check_text

    if text is None:
        raise RegardError("no text given: regard generate TEXT --model M")
    check_text(text)
    if model is None:
        raise RegardError("--model is needed: the default model reads, it cannot write")
    if new_tokens is not None and new_tokens < 1:
        raise RegardError(f"--new-tokens: given {new_tokens}, needs 1 or more")
    if seed is not None and temperature is None and top_k is None:
        raise RegardError("--seed has no effect on the likeliest token: give --temperature or --top-k with it")
    outputs = Outputs(save=TraceFile(save_file))
    outputs.check()
    drawn: dict[str, Any] = {}
    if temperature is not None or top_k is not None:
        drawn = {"do_sample": True, "temperature": 1.0 if temperature is None else temperature}
        drawn |= {} if top_k is None else {"top_k": top_k}
    check_options(drawn, new_tokens or 1)
    check_seed(seed)
    EarlyChecks.of(Source(texts=[text], model=model)).check_kind(True, no_continuation)

    # torch and transformers are imported only now: help and bad input do not wait for them
    from regard.cli.console import consoles, finish
    from regard.models.load import load
    from regard.views.terminal.generation import written
    from regard.views.terminal.layout import put, status
    from regard.views.terminal.unknown_tokens import of_traces, unknown_first

    console, errors = consoles()
    with errors.status("loading the model and writing …"):
        opened = load(model)
        if opened.pairs:
            raise no_continuation(opened.name)
        if new_tokens is None:
            new_tokens = 60
            if opened.tokenizer is not None and opened.limit is not None:
                taken = len(opened.tokenizer(text, verbose=False)["input_ids"])
                new_tokens = max(1, min(60, opened.limit - taken))
        try:
            done = opened.generate(text, new_tokens=new_tokens, seed=seed, **drawn)
        except RegardError as error:
            raise RegardError(str(error).replace("new_tokens", "--new-tokens")) from None
    outputs.write(traces=done.trace)
    told = status([done.trace.status], took=clock.seconds())
    put([*unknown_first(of_traces([done.trace])), *written(done), told], console)
    finish(console, errors, outputs.files)
