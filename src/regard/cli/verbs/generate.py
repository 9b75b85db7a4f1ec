"""`regard generate`: continue a text, plain or steered. `regard translate`: translate texts and align the words."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli import options
from regard.cli.options import Selection, number, option, seed_option_value
from regard.cli.outputs import NOTHING, Outputs, writes
from regard.cli.source import Source, check_text_arguments, traced
from regard.cli.start import load_model
from regard.errors import RegardError
from regard.generation.settings import check_generation_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regard.capture.interventions.resolve import Intervention
    from regard.generation.generator import Generated
    from regard.models.model import Model

USUAL = 60  # new tokens, or as many as fit


def real_number_option_value(given: str | float) -> float:
    """An option's value as a number. Raises typer.BadParameter, naming what was given."""
    try:
        return float(given)
    except ValueError as error:
        raise typer.BadParameter(f"given {given!r}, needs a number") from error


Temperature = Annotated[float | None, option("--temperature", "no sampling (1 with --top-k)", real_number_option_value)]


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
        raise RegardError("--layer is needed: the hidden states after this layer are steered")
    return True


@writes("figure", "html of traces", "csv", "json", "save")
def generate(
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help="Text to continue.")] = None,
    model: options.NeededModel = None,
    towards: Annotated[str | None, option("--towards")] = None,
    away: Annotated[str | None, option("--away")] = None,
    layer: Annotated[int | None, number("--layer", "required with --towards")] = None,
    strength: Annotated[float | None, option("--strength", "1", real_number_option_value)] = None,
    max_new_tokens: Annotated[int | None, number("--max-new-tokens", "60, or as many as fit into the model")] = None,
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
    from regard.text.tokens import check_text

    if text is None:
        raise RegardError("no text given: regard generate TEXT --model M")
    check_text(text)
    if model is None:
        raise RegardError(
            "--model is needed: pass a causal model, from the Hugging Face Hub (--model gpt2) or your own "
            "(regard train book.txt --out runs/book, then --model runs/book)"
        )
    pushed = check_push_options(towards, away, layer, strength)
    if top < 1:
        raise RegardError(f"--top: given {top}, needs 1 or more")
    chosen = Sampling(max_new_tokens, temperature, top_k, seed)
    chosen.check()
    outputs.check()

    # torch and transformers are imported only now: help and bad input do not wait for them
    from regard.capture.interventions.steer import steer
    from regard.cli.telling import consoles, tell
    from regard.explain.weights.attended import check_layer
    from regard.questions.generate.answer import generation

    screens = consoles(outputs.json)
    with screens[1].status("Loading the model and writing …"):
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


@dataclass(frozen=True)
class Sampling:
    """max_new_tokens: at most, None for as many as is usual. temperature, top_k: None both for the likeliest token."""

    max_new_tokens: int | None = None
    temperature: float | None = None
    top_k: int | None = None
    seed: int | None = None

    def check(self) -> None:
        """Refuse values that no model can have, before one is loaded."""
        if self.max_new_tokens is not None and self.max_new_tokens < 1:
            raise RegardError(f"--max-new-tokens: given {self.max_new_tokens}, needs 1 or more")
        if self.seed is not None and not self.options:
            raise RegardError("--seed has no effect on the likeliest token: give --temperature or --top-k with it")
        check_generation_options(self.options, self.max_new_tokens or 1)

    @property
    def options(self) -> dict[str, Any]:
        """The options of `Model.generate`, none where the likeliest token is taken."""
        if self.temperature is None and self.top_k is None:
            return {}
        drawn = {"do_sample": True, "temperature": 1.0 if self.temperature is None else self.temperature}
        return drawn | ({} if self.top_k is None else {"top_k": self.top_k})

    def write(self, model: "Model", text: str, interventions: "Sequence[Intervention]" = ()) -> "Generated":
        """Let the model go on with the text. interventions: what is done to every pass."""
        try:
            count = self._count(model, text)
            return model.generate(
                text, max_new_tokens=count, seed=self.seed, interventions=interventions, **self.options
            )
        except RegardError as error:
            raise RegardError(str(error).replace("max_new_tokens", "--max-new-tokens")) from None

    def _count(self, model: "Model", text: str) -> int:
        """How many tokens to write at the most."""
        if self.max_new_tokens is not None:
            return self.max_new_tokens
        if model.tokenizer is None or model.limit is None:
            return USUAL
        taken = len(model.tokenizer(text, verbose=False)["input_ids"])
        return max(1, min(USUAL, model.limit - taken))


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
    chosen = Selection(layer, head, top)
    chosen.check()
    outputs.check()
    given = Source(texts=texts, model=model)

    # torch and transformers are imported only now: help and bad input do not wait for them
    from regard.cli.telling import consoles, tell
    from regard.questions.alignment import Translation
    from regard.questions.see.answer import seen

    screens = consoles(outputs.json)
    with screens[1].status("Loading the model and translating …"):
        done = traced(given)
        if not done.generated:
            raise RegardError(f"translate: {done.model.name} is not an encoder-decoder: it reads a single text")
        found = seen(
            done.traces, layer=layer, head=head, kind=Translation, top=top, names=done.names, generated=done.generated
        )
    traces = done.traces if len(done.traces) > 1 else done.traces[0]
    tell(found, outputs, screens, everything=everything, traces=traces)
