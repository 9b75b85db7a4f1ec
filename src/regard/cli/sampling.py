"""How a causal model writes on: how many tokens, the likeliest each time or drawn at random."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from regard.errors import RegardError
from regard.generation.settings import check_generation_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regard.capture.interventions.given import Intervention
    from regard.generation.generator import Generated
    from regard.models.model import Model

USUAL = 60  # new tokens, or as many as fit


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
