"""`regard generate`: continue a text, plain or steered. `regard translate`: translate texts and align the words."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli import options
from regard.cli.options import number, option, seed_option_value
from regard.cli.outputs import NOTHING, Outputs, writes
from regard.cli.source import Source, check_text_arguments, traced
from regard.cli.start import load_model
from regard.cli.telling import tell, waiting
from regard.errors import RegardError
from regard.generation.settings import check_generation_options

if TYPE_CHECKING:
    from regard.models.model import Model

USUAL = 60  # new tokens, or as many as fit


def real_number_option_value(given: str | float) -> float:
    """An option's value as a number. Raises typer.BadParameter, naming what was given."""
    try:
        return float(given)
    except ValueError as error:
        raise typer.BadParameter(f"given {given!r}, needs a number") from error


Temperature = Annotated[float | None, option("--temperature", "no sampling (1 with --top-k)", real_number_option_value)]


@writes("figure", "html of traces", "csv", "json", "save")
def generate(
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help="Text to continue.")] = None,
    model: options.NeededModel = None,
    towards: Annotated[str | None, option("--towards")] = None,
    away: Annotated[str | None, option("--away")] = None,
    layer: Annotated[int | None, number("--layer", "required with --towards")] = None,
    strength: Annotated[float | None, option("--strength", "1", real_number_option_value)] = None,
    max_new_tokens: Annotated[
        int | None, number("--max-new-tokens", "60, or as many as fit into the model", least=1)
    ] = None,
    temperature: Temperature = None,
    top_k: Annotated[int | None, number("--top-k", "all tokens")] = None,
    seed: Annotated[int | None, option("--seed", "different each time", seed_option_value)] = None,
    top: options.Top = 8,
    everything: options.All = False,
    outputs: Outputs = NOTHING,
) -> None:
    """Continue a text with a causal model, with the most likely tokens or by sampling (--temperature).

    With --towards, --away and --layer, also generate with steered hidden states and show both texts.
    """
    if text is None:
        raise RegardError("no text given: regard generate TEXT --model M")
    check_text_arguments("text", [text])
    if model is None:
        raise RegardError(
            "--model is needed: pass a causal model, from the Hugging Face Hub (--model gpt2) or your own "
            "(regard train book.txt --out runs/book, then --model runs/book)"
        )
    pushed = any(given is not None for given in (towards, away, layer, strength))
    for name, given in (("--towards", towards), ("--away", away)):
        if pushed and given is None:
            raise RegardError(f"{name} is needed: the vector is the difference of two texts' mean states")
    if pushed and layer is None:
        raise RegardError("--layer is needed: the hidden states after this layer are steered")
    chosen: dict[str, Any] = {} if top_k is None else {"top_k": top_k}
    if chosen or temperature is not None:
        chosen |= {"do_sample": True, "temperature": 1.0 if temperature is None else temperature}
    if seed is not None and not chosen:
        raise RegardError("--seed has no effect on the likeliest token: give --temperature or --top-k with it")
    check_generation_options(chosen, max_new_tokens or 1)

    from regard.capture.interventions.steer import steer
    from regard.explain.weights.attended import check_layer
    from regard.questions.generate.answer import generation

    with waiting(outputs, "Loading the model and writing …"):
        opened = load_model(model)
        if opened.pairs:
            raise RegardError(f"generate: {opened.name} is an encoder-decoder: use regard translate")
        chosen |= {"seed": seed, "max_new_tokens": max_new_tokens or usual_number_of_tokens(opened, text)}
        steered, push = None, None
        try:
            if pushed:
                both = opened.trace([str(towards), str(away)], logits=False, attention_outputs=False)
                at = check_layer(both[0], layer or 0)
                push = steer((both[0], both[1]), layer=at, strength=1.0 if strength is None else strength)
                steered = opened.generate(text, interventions=[push], **chosen)
            found = generation(opened.generate(text, **chosen), steered, str(push or ""))
        except RegardError as error:
            raise RegardError(str(error).replace("max_new_tokens", "--max-new-tokens")) from None
    traces = [each.trace for each in found.traces]
    saved = traces if pushed else traces[0]
    tell(found, outputs, None if everything else top, everything=everything, traces=saved)


def usual_number_of_tokens(model: "Model", text: str) -> int:
    """How many tokens to write at the most where nobody says: `USUAL`, or as many as fit."""
    if model.tokenizer is None or model.limit is None:
        return USUAL
    return max(1, min(USUAL, model.limit - len(model.tokenizer(text, verbose=False)["input_ids"])))


@writes("figure", "html of traces", "csv", "json", "save")
def translate(
    texts: options.Texts = None,
    model: options.NeededModel = None,
    layer: Annotated[int | None, number("--layer", "the two layers whose alignments agree most")] = None,
    head: options.OneOfHeads = None,
    top: options.Top = 5,
    everything: options.All = False,
    outputs: Outputs = NOTHING,
) -> None:
    """Translate texts with an encoder-decoder and show the alignment in its cross-attention."""
    if not texts:
        raise RegardError("no text given: regard translate TEXT [TEXT ...] --model M")
    check_text_arguments("text", texts)
    if model is None:
        raise RegardError(
            "--model is needed: pass an encoder-decoder, from the Hub (--model Helsinki-NLP/opus-mt-en-fr) "
            "or your own (regard train --pairs FILE --out runs/translator)"
        )
    from regard.questions.alignment import Translation
    from regard.questions.see.answer import seen

    with waiting(outputs, "Loading the model and translating …"):
        done = traced(Source(texts=texts, model=model))
        if not done.generated:
            raise RegardError(f"translate: {done.model.name} is not an encoder-decoder: it reads a single text")
        found = seen(
            done.traces, layer=layer, head=head, kind=Translation, top=top, names=done.names, generated=done.generated
        )
    traces = done.traces if len(done.traces) > 1 else done.traces[0]
    tell(found, outputs, everything=everything, traces=traces)
