"""`regard steer`: what a model writes, and what it writes when its states are pushed from one text towards another."""

from typing import Annotated

import typer

from regard.cli import options
from regard.cli.early_checks import EarlyChecks, no_continuation
from regard.cli.sampling import Sampling
from regard.cli.selection import Selection
from regard.cli.source import Source
from regard.cli.start import load_model
from regard.cli.verbs.generate import NewTokens, Prompt, Seed, Temperature, TopK, real_number
from regard.errors import RegardError

Towards = Annotated[str | None, typer.Option(metavar="TEXT", help="A text to steer towards, needed.")]
Away = Annotated[str | None, typer.Option(metavar="TEXT", help="A text to steer away from, needed.")]
Layer = Annotated[int | None, options.number("N", "What leaves this layer is steered, counted from 0; needed.")]
Strength = Annotated[
    float,
    typer.Option(parser=real_number, metavar="S", help="What the vector is multiplied by; below 0: the other way."),
]


def steer(
    text: Prompt = None,
    model: options.NeededModel = None,
    towards: Towards = None,
    away: Away = None,
    layer: Layer = None,
    strength: Strength = 1.0,
    new_tokens: NewTokens = None,
    temperature: Temperature = None,
    top_k: TopK = None,
    seed: Seed = None,
) -> None:
    """Let a causal model write with its states steered from one text towards another, beside what it writes plain."""
    from regard.text.tokens import check_text

    if text is None:
        raise RegardError("no text given: regard steer TEXT --towards A --away B --layer N --model M")
    if model is None:
        raise RegardError("--model is needed: the default model reads, it cannot write")
    for name, given in (("text", text), ("--towards", towards), ("--away", away)):
        if given is None:
            raise RegardError(f"{name} is needed: the vector is the difference of two texts' mean states")
        check_text(given, name)
    if layer is None:
        raise RegardError("--layer is needed: the states that leave it are steered")
    chosen = Sampling(new_tokens, temperature, top_k, seed)
    chosen.check()
    early = EarlyChecks.of(Source(texts=[text], model=model))
    early.check_kind(True, no_continuation)
    early.check_numbers(Selection(layer), f"{early.model.name} has")

    # torch and transformers are imported only now: help and bad input do not wait for them
    from regard.capture.interventions.steer import steer as steering
    from regard.cli.console import consoles, finish
    from regard.views.terminal.steering import show_steering

    console, errors = consoles()
    with errors.status("loading the model and writing …"):
        opened = load_model(model)
        if opened.pairs:
            raise no_continuation(opened.name)
        assert towards is not None
        assert away is not None
        both = opened.trace([towards, away], logits=False, attention_outputs=False)
        push = steering((both[0], both[1]), layer=layer, strength=strength)
        plain = chosen.write(opened, text)
        steered = chosen.write(opened, text, [push])
    show_steering(plain, steered, str(push), console)
    finish(console, errors, ())
