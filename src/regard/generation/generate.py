"""Generate with a transformers model by its own `generate`, with its own attention and KV cache.

With interventions, each token is chosen from a full pass over the text so far, like a pass of `Model.trace`.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from transformers import GenerationConfig, StoppingCriteria, StoppingCriteriaList
from transformers.modeling_outputs import CausalLMOutput

from regard.capture.interventions.resolve import Intervention
from regard.errors import RegardError, first_line
from regard.generation.generator import Generator, Request
from regard.generation.settings import settings
from regard.model_files.suppress_warnings import quiet
from regard.text.tokens import Encoded


class HuggingFaceGenerator(Generator[GenerationConfig]):
    """Generate with a transformers model."""

    def check_model(self) -> None:
        """Raise RegardError if the model can't generate text or doesn't read text."""
        model, kind = self._model, type(self._model).__name__
        if not model.can_generate():
            raise RegardError(f"generate: {self._name} ({kind}) has no language head that writes: it cannot generate")
        if model.main_input_name != "input_ids":
            raise RegardError(
                f"generate: {self._name} ({kind}) reads {model.main_input_name}, expected a model that reads text"
            )

    def settings(
        self, options: dict[str, Any], max_new_tokens: int, seed: int | None
    ) -> tuple[GenerationConfig, tuple[str, ...]]:
        """Return the generation config, and notes on ignored settings of the model."""
        return settings(self._model.generation_config, options, max_new_tokens, self._name)

    def start(self, request: Request[GenerationConfig]) -> int:
        """Return the first id of an encoder-decoder's target."""
        config = request.settings
        first = config.bos_token_id if config.decoder_start_token_id is None else config.decoder_start_token_id
        return first[0] if isinstance(first, list) else first

    def write(
        self, prompt: Encoded, prefix: Encoded, request: Request[GenerationConfig], changes: Sequence[Intervention]
    ) -> tuple[list[int], bool, Tensor | None]:
        """Generate tokens with the model's own `generate`. Returns (ids, whether the last is an end token, logits)."""
        model, config, tokenizer = self._model, request.settings, self._reader.tokenizer
        config.use_cache = not changes
        ids = torch.tensor([prompt.ids], device=model.device)
        inputs: dict[str, Any] = {"attention_mask": torch.ones_like(ids)}
        inputs |= {"return_dict_in_generate": True, "output_logits": True}
        if "token_type_ids" in self._session.takes and prompt.segments is not None:
            inputs["token_type_ids"] = torch.tensor([prompt.segments], device=model.device)
        if request.stop:
            inputs |= {"stop_strings": request.stop, "tokenizer": tokenizer}
        listener = ProgressCriteria(request.progress, tokenizer, len(prefix.tokens))
        if request.progress is not None:
            inputs["stopping_criteria"] = StoppingCriteriaList([listener])
        with (
            quiet(),
            _generation_settings_aside(model, config),
            self._full_passes(prompt, changes),
            _seeded_generation(request.seed, model.device),
        ):
            try:
                output = model.generate(ids, generation_config=config, **inputs)
            except RegardError:
                raise
            except Exception as error:  # models can raise anything
                if error is listener.raised:
                    raise
                raise RegardError(f"generate: {self._name}: {type(error).__name__}: {first_line(error)}") from error
        ends, all_ids = config.eos_token_id, output.sequences[0].tolist()
        at_end = all_ids[-1] in (ends if isinstance(ends, (list, tuple)) else [ends])
        return all_ids, at_end, torch.cat(output.logits) if output.logits else None

    @contextmanager
    def _full_passes(self, prompt: Encoded, changes: Sequence[Intervention]) -> Iterator[None]:
        """Inside the block, replace the model's forward with full passes that apply the interventions, if any."""
        if not changes:
            yield
            return
        model, before = self._model, self._model.__dict__.get("forward")
        original = model.forward

        @functools.wraps(original)  # generate inspects its signature
        def forward(**inputs: Any) -> CausalLMOutput:
            ids = inputs["decoder_input_ids" if self._pairs else "input_ids"][0].tolist()
            model.forward = original
            try:
                return CausalLMOutput(logits=self.logits(prompt, ids, changes))
            finally:
                model.forward = forward

        model.forward = forward
        try:
            yield
        finally:
            del model.forward
            if before is not None:
                model.forward = before


class ProgressCriteria(StoppingCriteria):
    """Report the text so far after each token, without stopping. An exception in the callback ends the generation.

    start: the index of the first new id.
    """

    def __init__(self, progress: Callable[[str], None] | None, tokenizer: Any, start: int) -> None:
        self._progress, self._tokenizer, self._start = progress, tokenizer, start
        self.raised: Exception | None = None

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor | None, **_: Any) -> torch.Tensor:
        """Report the text so far. Returns False for each text, because this never stops generation."""
        assert self._progress is not None
        new = input_ids[0, self._start :].tolist()
        text = str(new) if self._tokenizer is None else self._tokenizer.decode(new, skip_special_tokens=True)
        try:
            self._progress(text)
        except Exception as error:
            self.raised = error
            raise
        return torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)


@contextmanager
def _generation_settings_aside(model: Any, config: Any) -> Iterator[None]:
    """Replace the model's generation settings inside the block. transformers would use them for unset options."""
    before, model.generation_config = model.generation_config, config
    try:
        yield
    finally:
        model.generation_config = before


@contextmanager
def _seeded_generation(seed: int | None, device: torch.device) -> Iterator[None]:
    """Seed torch's random numbers inside the block and restore their state afterwards. None: do nothing."""
    if seed is None:
        yield
        return
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield
