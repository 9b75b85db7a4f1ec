"""Generate with a `regard.Transformer`, by its own decoding or, with interventions, by a full pass per token."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from regard.capture.interventions.resolve import Intervention
from regard.errors import RegardError
from regard.generation.generator import Generator, Request, continued
from regard.generation.settings import check_generation_options, check_option_name
from regard.nn.decoding import OPTIONS, Sampling, write_with_transformer
from regard.text.tokens import Encoded


class RegardGenerator(Generator[Sampling]):
    """Generate with a `regard.Transformer`."""

    def check_model(self) -> None:
        """Raise RegardError if the model has no decoder or no language head."""
        if self._model.decoder is None or self._model.head is None:
            raise RegardError(f"generate: {self._name} has no decoder with a language head: it cannot generate")

    def settings(
        self, options: dict[str, Any], max_new_tokens: int, seed: int | None
    ) -> tuple[Sampling, tuple[str, ...]]:
        """Check the options. Returns the sampling settings and no notes."""
        for option in options:
            check_option_name(option, OPTIONS)
        check_generation_options(options)
        return Sampling(**options, seed=seed), ()

    def open_ended(self, prompt: Encoded) -> Encoded:
        """Return the prompt without the end token that the tokenizer adds to whole texts."""
        if self._pairs or len(prompt.tokens) < 2 or prompt.ids[-1] != self._end:
            return prompt
        return replace(prompt, tokens=prompt.tokens[:-1], segments=None)

    def start(self, request: Request[Sampling]) -> int:
        """Return the first id of an encoder-decoder's target."""
        return self._model.config.start

    def write(
        self, prompt: Encoded, prefix: Encoded, request: Request[Sampling], changes: Sequence[Intervention]
    ) -> tuple[list[int], bool, None]:
        """Generate tokens with the model's own decoding. Returns all ids, and whether the last one is the end token."""
        model = self._model

        def stopped(new: list[int]) -> bool:
            text = continued(self._reader.tokenizer, prefix, new).text[len(prefix.text) :]
            if request.progress is not None:
                request.progress(text)
            return any(string in text for string in request.stop)

        def full_pass(ids: Tensor) -> Tensor:
            return self.logits(prompt, ids[0].tolist(), changes)

        context = None
        if self._pairs and not changes:
            with torch.no_grad():
                context = model.encode(torch.tensor([prompt.ids], device=model.device))
        new = write_with_transformer(
            model,
            torch.tensor([prefix.ids], device=model.device),
            max_new_tokens=request.max_new_tokens,
            end=self._end,
            choose=request.settings.chooser(),
            until=stopped if request.stop or request.progress else None,
            context=context,
            full_pass=full_pass if changes else None,
        )[0]
        return [*prefix.ids, *new], new[-1] == self._end, None

    @property
    def _end(self) -> int | None:
        return getattr(self._reader.tokenizer, "eos_token_id", None)
