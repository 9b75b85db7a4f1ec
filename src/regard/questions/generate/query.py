"""Declare the options of `regard generate`, which continues a text, plain and steered."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from regard.display.query import MAX_SEED, Called, Progress, Query, option
from regard.errors import RegardError
from regard.generation.settings import check_generation_options

if TYPE_CHECKING:
    from regard.display.answer import Answer
    from regard.models.model import Model
    from regard.models.source import Source

USUAL = 60  # new tokens, or fewer if fewer fit


@dataclass(frozen=True, kw_only=True)
class GenerateQuery(Query):
    """Continue a text with a causal model, with the most likely tokens or by sampling (--temperature).

    With --towards, --away and --layer, also generate with steered hidden states and show both texts.
    """

    summary = "Continue a text with a causal model, optionally steered."
    heading = "Generate"
    examples = (
        'generate "Once upon a time" --model runs/book --max-new-tokens 40',
        'generate "Once" --model runs/book --temperature 0.8 --seed 1',
    )
    served = False
    texts = ("TEXT", "Text to continue.")
    single = True
    inputs = ("model",)
    needs_model = (
        "pass a causal model, from the Hugging Face Hub (--model gpt2) or your own "
        "(regard train book.txt --out runs/book, then --model runs/book)"
    )
    files = ("figure", "html of traces", "csv", "json", "save")
    saved_alone = True
    full = True

    towards: str | None = option()
    away: str | None = option()
    layer: int | None = option(shown="required with --towards")
    strength: float | None = option(shown="1")
    max_new_tokens: int | None = option(shown="60, or as many as fit into the model", least=1)
    temperature: float | None = option(shown="no sampling (1 with --top-k)")
    top_k: int | None = option(shown="all tokens")
    seed: int | None = option(shown="different each time", least=0, most=MAX_SEED)
    top: int = option(default=8, least=1)

    @property
    def steered(self) -> bool:
        """Return whether to also continue the text with steered hidden states."""
        return any(value is not None for value in (self.towards, self.away, self.layer, self.strength))

    @property
    def sampling(self) -> dict[str, Any]:
        """Return the sampling options of `Model.generate`, empty for greedy decoding."""
        if self.top_k is None and self.temperature is None:
            return {}
        temperature = 1.0 if self.temperature is None else self.temperature
        return {"do_sample": True, "temperature": temperature} | ({} if self.top_k is None else {"top_k": self.top_k})

    def check(self, texts: int, targets: int = 0, *, called: Called = str) -> None:
        """Raise RegardError for options that don't fit together, before a model is loaded."""
        super().check(texts, targets, called=called)
        for name in ("towards", "away"):
            if self.steered and getattr(self, name) is None:
                raise RegardError(f"{called(name)} is needed: the vector is the difference of two texts' mean states")
        if self.steered and self.layer is None:
            raise RegardError(f"{called('layer')} is needed: the hidden states after this layer are steered")
        if self.seed is not None and not self.sampling:
            needs = f"give {called('temperature')} or {called('top_k')} with it"
            raise RegardError(f"{called('seed')} has no effect on the likeliest token: {needs}")
        check_generation_options(self.sampling)

    def listed(self, answer: "Answer", *, full: bool) -> int | None:
        """Return the number of tokens to list, None for all."""
        return None if full else self.top

    def run(self, source: "Source", progress: Progress) -> "Answer":
        """Load the model, and let it continue the text, plain and, if requested, steered."""
        from regard.questions.generate.answer import generate

        model, (text,) = source.load(source.model), source.texts
        if model.pairs:
            raise RegardError(f"generate: {model.name} is an encoder-decoder: use regard translate")
        options = self.sampling | {"seed": self.seed}
        options["max_new_tokens"] = self.max_new_tokens or usual_number_of_tokens(model, text)
        strength = 1.0 if self.strength is None else self.strength
        steering = (self.towards, self.away, self.layer, strength) if self.steered else None
        try:
            return generate(model, text, steering, **options)
        except RegardError as error:
            raise RegardError(str(error).replace("max_new_tokens", "--max-new-tokens")) from None


def usual_number_of_tokens(model: "Model", text: str) -> int:
    """Return the default limit of new tokens: `USUAL`, or as many as fit into the model."""
    if model.tokenizer is None or model.limit is None:
        return USUAL
    return max(1, min(USUAL, model.limit - len(model.tokenizer(text, verbose=False)["input_ids"])))
