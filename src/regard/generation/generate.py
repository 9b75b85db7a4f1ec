"""Generation with a model of transformers, and one trace of the prompt and what was written.

The choice of each token is transformers' own `generate`; its passes, one over the prompt and then one a token through a
KV cache, are captured and joined (`step_capture`, `join_steps`). The last token goes through the model as well, so the
trace holds every token of the text.
"""

import copy
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from transformers import (
    DynamicCache,
    EncoderDecoderCache,
    GenerationConfig,
    StaticCache,
    StoppingCriteria,
    StoppingCriteriaList,
)

from regard.capture.build_trace import pair_of, trace_of
from regard.capture.options import TensorMaskError
from regard.errors import RegardError
from regard.generation.generator import Ended, Generated, Generator, Request
from regard.generation.settings import settings
from regard.generation.step_ablation import first_target, unwritten_notes, whole_text_changes, with_tokens
from regard.generation.step_capture import StepCapture
from regard.model_files.suppress_warnings import quiet
from regard.text.continuation import begun, continued
from regard.text.tokens import Encoded


class HuggingFaceGenerator(Generator[GenerationConfig]):
    """Generates with a model of transformers."""

    caches = ("dynamic", "static")

    def check_model(self) -> None:
        """Raise RegardError where the model does not write text, or its attention does not reach the interface."""
        model, kind = self._model, type(self._model).__name__
        if not model.can_generate():
            raise RegardError(f"generate: {self._name} ({kind}) has no language head that writes: it cannot generate")
        if model.main_input_name != "input_ids":
            raise RegardError(
                f"generate: {self._name} ({kind}) reads {model.main_input_name}, needs one that reads text"
            )
        if self._session.reports_weights:
            raise RegardError(
                f"generate: {self._name} ({kind}) computes attention in code of its own, outside the attention "
                "interface of transformers: its passes cannot be joined"
            )

    def settings(
        self, options: dict[str, Any], max_new_tokens: int, seed: int | None
    ) -> tuple[GenerationConfig, tuple[str, ...]]:
        """Return the generation config, and notes on settings of the model's own that were put aside."""
        return settings(self._model.generation_config, options, max_new_tokens, self._name)

    def generate_one(self, prompt: Encoded, request: Request[GenerationConfig]) -> Generated:
        """Write to one prompt and trace all of it."""
        started = time.perf_counter()
        interventions = with_tokens(request.interventions, prompt, self._pairs, self._name)
        changes = whole_text_changes(interventions, prompt, request.max_new_tokens, self._session)
        hooks = self._session.structure.hooks(changes, prompt, first_target(self._session))
        wanted = request.statistics
        steps = StepCapture(self._session, changes=changes, hooks=hooks, statistics=wanted)
        try:
            ids = self._run(steps, prompt, request)
        except TensorMaskError:
            # The family computes with its masks, as its first pass shows: again, with masks written out.
            steps = StepCapture(self._session, written_masks=True, changes=changes, hooks=hooks, statistics=wanted)
            ids = self._run(steps, prompt, request)
        tokenizer = self._reader.tokenizer
        before = begun(tokenizer, ids[0]) if self._pairs else prompt
        start = len(before.tokens)
        whole = continued(tokenizer, before, ids[start:])
        trace = pair_of(steps.joined(prompt, whole), 0) if self._pairs else trace_of(steps.joined(whole, None), 0)
        seconds = time.perf_counter() - started
        half = self._session.arithmetic_notes(prompt, whole if self._pairs else None)
        for status in [side.status for side in trace.sides]:
            status.seconds = seconds
            status.kernels = tuple(sorted(steps.kernels))
            status.notes += (*half, *self._notes, *map(str, request.interventions), *request.notes, *steps.notes)
            status.notes += unwritten_notes(interventions, len(whole.tokens))
        ended: Ended = "length"
        new = whole.text[len(before.text) :]
        ends = request.settings.eos_token_id
        if ids[-1] in (ends if isinstance(ends, (list, tuple)) else [ends]):
            ended = "end"
        elif len(ids) - start < request.max_new_tokens or any(string in new for string in request.stop):
            ended = "stop"
        return Generated(whole.text, new, tuple(ids), start, ended, trace)

    def _run(self, steps: StepCapture, prompt: Encoded, request: Request[GenerationConfig]) -> list[int]:
        """Generate and capture; returns all token ids, of which every one has gone through the model."""
        model, config, cache = self._model, request.settings, request.cache
        prompt_ids = torch.tensor([prompt.ids], device=model.device)
        start = 1 if self._pairs else prompt_ids.shape[1]
        inputs: dict[str, Any] = {"attention_mask": torch.ones_like(prompt_ids)}
        if "token_type_ids" in self._session.takes and prompt.segments is not None:
            inputs["token_type_ids"] = torch.tensor([prompt.segments], device=model.device)
        with quiet(), _generation_settings_aside(model, config), steps.captured():
            if self._pairs:
                inputs["encoder_outputs"] = steps.encode(prompt_ids)
            stopping: dict[str, Any] = {}
            if request.stop:
                stopping = {"stop_strings": request.stop, "tokenizer": self._reader.tokenizer}
            listener = ProgressCriteria(request.progress, self._reader.tokenizer, start)
            if request.progress is not None:
                stopping["stopping_criteria"] = StoppingCriteriaList([listener])
            try:
                room = start + request.max_new_tokens
                filled = inputs["past_key_values"] = _empty_generation_cache(model, cache, room, prompt_ids.shape[1])
                with _seeded_generation(request.seed, model.device):
                    written = model.generate(prompt_ids, generation_config=config, **inputs, **stopping)
                if steps.length < written.shape[1]:  # the last token is still to go through the model
                    steps.last = True
                    rest = _continuing(inputs, written, self._pairs)
                    once = copy.deepcopy(config)
                    once.update(do_sample=False, max_new_tokens=1, min_new_tokens=0)
                    model.generate(prompt_ids if self._pairs else written, generation_config=once, **rest)
            except (RegardError, TensorMaskError):
                raise
            except Exception as error:  # transformers raises whatever a family runs into
                if error is listener.raised:
                    raise
                lines = str(error).strip().splitlines()
                reason = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
                raise RegardError(f"generate: {self._name} with a {cache} cache: {reason}") from error
        count = written.shape[1]
        if steps.length != count or int(filled.get_seq_length()) != count:
            raise RegardError(
                f"generate: {self._name} ({type(model).__name__}) does not keep the keys of its {count} tokens in a "
                "cache: its passes cannot be joined"
            )
        return written[0].tolist()


class ProgressCriteria(StoppingCriteria):
    """Tell the text so far after each token, and stop nothing; what the listener raises ends the generation.

    start: of the ids, the first that is new.
    """

    def __init__(self, progress: Callable[[str], None] | None, tokenizer: Any, start: int) -> None:
        self._progress, self._tokenizer, self._start = progress, tokenizer, start
        self.raised: Exception | None = None

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor | None, **_: Any) -> torch.Tensor:
        """Tell; returns for each text whether it is done."""
        assert self._progress is not None
        new = input_ids[0, self._start :].tolist()
        text = str(new) if self._tokenizer is None else self._tokenizer.decode(new, skip_special_tokens=True)
        try:
            self._progress(text)
        except Exception as error:
            self.raised = error
            raise
        return torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)


class _Static(StaticCache):
    """A static cache for passes that are watched, not compiled: masks stay specifications of positions."""

    is_compileable = False


def _empty_generation_cache(model: Any, kind: str, room: int, source: int) -> Any:
    """An empty cache. room: the most tokens it will hold; source: how many an encoder read."""
    pairs = model.config.is_encoder_decoder
    # A decoder may be deeper than its encoder, and only its own config counts its layers then (T5).
    config = (model.get_decoder() if pairs else model).config.get_text_config(decoder=True)

    def cache(size: int) -> Any:
        return DynamicCache(config=config) if kind == "dynamic" else _Static(config=config, max_cache_len=size)

    return EncoderDecoderCache(cache(room), cache(source)) if pairs else cache(room)


def _continuing(inputs: dict[str, Any], written: torch.Tensor, pairs: bool) -> dict[str, Any]:
    """The inputs with which generation goes on from a cache that holds all tokens but the last."""
    ones = torch.ones_like(written)
    if pairs:
        return inputs | {"decoder_input_ids": written, "decoder_attention_mask": ones}
    if "token_type_ids" in inputs:
        kinds = inputs["token_type_ids"]
        more = kinds[:, -1:].expand(-1, written.shape[1] - kinds.shape[1])
        inputs = inputs | {"token_type_ids": torch.cat([kinds, more], 1)}
    return inputs | {"attention_mask": ones}


@contextmanager
def _generation_settings_aside(model: Any, config: Any) -> Iterator[None]:
    """The model's own generation settings put aside: transformers fills up from them what is not set."""
    before, model.generation_config = model.generation_config, config
    try:
        yield
    finally:
        model.generation_config = before


@contextmanager
def _seeded_generation(seed: int | None, device: torch.device) -> Iterator[None]:
    """Random numbers from a seed, and afterwards as if none had been drawn; None: as they come."""
    if seed is None:
        yield
        return
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield
