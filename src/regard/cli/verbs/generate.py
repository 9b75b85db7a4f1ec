"""`regard generate`: a causal model goes on with a text, plain or with its states steered as well."""

from typing import Annotated

import typer

from regard.cli import options
from regard.cli.file_options import writes
from regard.cli.options import number, said
from regard.cli.outputs import NOTHING, Outputs
from regard.cli.sampling import Sampling
from regard.cli.start import load_model
from regard.errors import RegardError


def real_number_option_value(given: str | float) -> float:
    """An option's value as a number. Raises typer.BadParameter, naming what was given."""
    try:
        return float(given)
    except ValueError as error:
        raise typer.BadParameter(f"given {given!r}, needs a number") from error


def number_option(name: str, metavar: str, text: str, default: str) -> typer.models.OptionInfo:
    """Make an option whose value is a number."""
    return typer.Option(name, parser=real_number_option_value, metavar=metavar, help=text, show_default=default)


Prompt = Annotated[str | None, typer.Argument(metavar="TEXT", help="What the text begins with.")]
Towards = Annotated[str | None, said("--towards", "TEXT", "Write once more, steered towards this text.")]
Away = Annotated[str | None, said("--away", "TEXT", "With --towards: steer away from this text.")]
Layer = Annotated[int | None, options.layer("none; with --towards: the one whose states are steered")]
Strength = Annotated[float | None, number_option("--strength", "S", "How far to steer; below 0 the other way.", "1")]
MaxNewTokens = Annotated[
    int | None, number("--max-new-tokens", "Write at most N tokens.", "60, or as many as the model takes")
]
Temperature = Annotated[
    float | None,
    number_option(
        "--temperature",
        "T",
        "Draw at random; below 1 likelier tokens, above 1 others.",
        "the likeliest; with --top-k 1",
    ),
]
TopK = Annotated[int | None, number("--top-k", "Draw at random among the K likeliest tokens.", "all", "K")]
Seed = Annotated[int | None, options.seed("another each time")]


def check_push_options(towards: str | None, away: str | None, layer: int | None, strength: float | None) -> bool:
    """Refuse what is incomplete; returns whether states are to be pushed from one text towards another."""
    from regard.text.tokens import check_text

    if all(given is None for given in (towards, away, layer, strength)):
        return False
    for name, given in (("--towards", towards), ("--away", away)):
        if given is None:
            raise RegardError(f"{name} is needed: the vector is the difference of two texts' mean states")
        check_text(given, name)
    if layer is None:
        raise RegardError("--layer is needed: the states that leave it are steered")
    return True


@writes("figure", "html of traces", "csv", "json", "save")
def generate(
    text: Prompt = None,
    model: options.NeededModel = None,
    towards: Towards = None,
    away: Away = None,
    layer: Layer = None,
    strength: Strength = None,
    max_new_tokens: MaxNewTokens = None,
    temperature: Temperature = None,
    top_k: TopK = None,
    seed: Seed = None,
    top: options.Top = 8,
    everything: options.All = False,
    outputs: Outputs = NOTHING,
) -> None:
    """Let a causal model, or a run of your own, write on: the likeliest token each time, or drawn (--temperature).

    With --towards, --away and --layer it writes once more with its states steered, and both are shown.
    """
    from regard.text.tokens import check_text

    if text is None:
        raise RegardError("no text given: regard generate TEXT --model M")
    check_text(text)
    if model is None:
        raise RegardError("--model is needed: the default model reads, it cannot write")
    pushed = check_push_options(towards, away, layer, strength)
    if top < 1:
        raise RegardError(f"--top: given {top}, needs 1 or more")
    chosen = Sampling(max_new_tokens, temperature, top_k, seed)
    chosen.check()
    outputs.check()

    # torch and transformers are imported only now: help and bad input do not wait for them
    from regard.capture.interventions.steer import steer
    from regard.cli.console import consoles
    from regard.cli.telling import tell
    from regard.explain.weights.attended import check_layer
    from regard.questions.generate.answer import generation

    screens = consoles(outputs.json)
    with screens[1].status("loading the model and writing …"):
        opened = load_model(model)
        if opened.pairs:
            raise RegardError(f"generate: {opened.name} is an encoder-decoder: use regard translate")
        steered, push = None, None
        if pushed:
            both = opened.trace([str(towards), str(away)], logits=False, attention_outputs=False)
            at = check_layer(both[0], layer or 0)
            push = steer((both[0], both[1]), layer=at, strength=1.0 if strength is None else strength)
            steered = chosen.write(opened, text, [push])
        found = generation(chosen.write(opened, text), steered, str(push or ""))
    traces = [each.trace for each in found.traces]
    saved = traces if pushed else traces[0]
    tell(found, outputs, screens, None if everything else top, everything=everything, traces=saved)
