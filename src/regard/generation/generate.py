"""Text that a model writes, and one trace of it all: what was given and what was written.

The choice of each token is transformers' own `generate`; its passes, one over the prompt and then one a token through a
cache of keys and values, are watched and joined (`step_capture`, `join_steps`). The last token goes through the model
as well, so the trace holds every token of the text.
"""

import copy
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from transformers import DynamicCache, EncoderDecoderCache, StaticCache

from regard.capture.build_trace import pair_of, trace_of
from regard.capture.hf_masks import TensorMaskError
from regard.capture.quiet import quiet
from regard.capture.session import Session
from regard.errors import RegardError
from regard.generation.settings import check_seed, settings, stops
from regard.generation.step_capture import StepCapture
from regard.text.continuation import begun, continued
from regard.text.reader import Ids, Reader
from regard.text.tokens import Encoded
from regard.trace.trace import PairTrace, Trace


@dataclass(frozen=True, eq=False)
class Generated:
    """A text that a model wrote.

    text: all of it, prompt included; of an encoder-decoder what its decoder wrote. new: what was written. ids: of every
    token, special ones included; the first written one is ids[start]. trace: of all these tokens (a `PairTrace` of an
    encoder-decoder). ended: "end" where the model wrote an end token, "stop" at a stop string, "length" where it had
    written all the tokens that were asked for.
    """

    text: str
    new: str
    ids: tuple[int, ...]
    start: int
    ended: Literal["end", "stop", "length"]
    trace: Trace | PairTrace = field(repr=False)


class Generator:
    """Generates with a model. reader: what prompts are read with; limit: the most tokens of a text; notes: its own."""

    def __init__(self, forward: Session, reader: Reader, notes: tuple[str, ...]) -> None:
        self._forward, self._reader, self._notes = forward, reader, notes
        self._model, self._name, self._pairs = forward.model, forward.name, forward.pairs

    def write(
        self,
        prompt: str | Sequence[str] | None,
        ids: Ids | None,
        new_tokens: int,
        seed: int | None,
        cache: str,
        stop: str | Sequence[str],
        options: dict[str, Any],
    ) -> Any:
        """What `Model.generate` returns."""
        if (prompt is None) == (ids is None):
            raise RegardError(f"generate: needs either a prompt or its ids, given {'none' if ids is None else 'both'}")
        if prompt is not None and (isinstance(prompt, (bytes, dict)) or not isinstance(prompt, Iterable)):
            raise RegardError(f"generate: prompt: given {type(prompt).__name__}, needs a string or several of them")
        self._check_model()
        if cache not in ("dynamic", "static"):
            raise RegardError(f"generate: cache: given {cache!r}, needs 'dynamic' or 'static'")
        if isinstance(new_tokens, bool) or not isinstance(new_tokens, int) or new_tokens < 1:
            raise RegardError(f"generate: new_tokens: given {new_tokens!r}, needs a whole number of 1 or more")
        check_seed(seed)
        config, notes = settings(self._model.generation_config, options, new_tokens, self._name)
        strings = stops(stop, self._reader.tokenizer, self._name)
        single, prompts = self._reader.read("prompt", prompt, ids)
        for number, each in enumerate(prompts, 1):
            self._check_room("prompt" if single else f"prompt {number}", each, new_tokens)
        made = [self._one(each, new_tokens, seed, cache, strings, config, notes) for each in prompts]
        return made[0] if single else made

    def _one(
        self,
        prompt: Encoded,
        new_tokens: int,
        seed: int | None,
        cache: str,
        strings: list[str],
        config: Any,
        notes: tuple[str, ...],
    ) -> Generated:
        started = time.perf_counter()
        steps = StepCapture(self._forward)
        try:
            ids = self._run(steps, prompt, new_tokens, seed, cache, strings, config)
        except TensorMaskError:
            # The family computes with its masks, as its first pass shows: again, with masks written out.
            steps = StepCapture(self._forward, written_masks=True)
            ids = self._run(steps, prompt, new_tokens, seed, cache, strings, config)
        tokenizer = self._reader.tokenizer
        before = begun(tokenizer, ids[0]) if self._pairs else prompt
        start = len(before.tokens)
        whole = continued(tokenizer, before, ids[start:])
        trace: Trace | PairTrace
        if self._pairs:
            trace = pair_of(steps.joined(prompt, whole), 0)
            statuses = [trace.encoder.status, trace.decoder.status]
        else:
            trace = trace_of(steps.joined(whole, None), 0)
            statuses = [trace.status]
        seconds = time.perf_counter() - started
        for status in statuses:
            status.seconds = seconds
            status.kernels = tuple(sorted(steps.kernels))
            status.notes += (*self._notes, *notes, *steps.notes)
        ended: Literal["end", "stop", "length"] = "length"
        new = whole.text[len(before.text) :]
        if ids[-1] in _ends(config):
            ended = "end"
        elif len(ids) - start < new_tokens or any(string in new for string in strings):
            ended = "stop"
        return Generated(whole.text, new, tuple(ids), start, ended, trace)

    def _run(
        self,
        steps: StepCapture,
        prompt: Encoded,
        new_tokens: int,
        seed: int | None,
        cache: str,
        strings: list[str],
        config: Any,
    ) -> list[int]:
        """Generate and watch; all token ids, of which every one has gone through the model."""
        model = self._model
        given = torch.tensor([prompt.ids], device=model.device)
        room = (1 if self._pairs else given.shape[1]) + new_tokens
        inputs: dict[str, Any] = {"attention_mask": torch.ones_like(given)}
        if "token_type_ids" in self._forward.takes and prompt.segments is not None:
            inputs["token_type_ids"] = torch.tensor([prompt.segments], device=model.device)
        with self._forward.lock, quiet(), _settings_of(model, config), steps.captured():
            if self._pairs:
                inputs["encoder_outputs"] = steps.encode(given)
            stopping = {"stop_strings": strings, "tokenizer": self._reader.tokenizer} if strings else {}
            try:
                held = inputs["past_key_values"] = _cache(model, cache, room, given.shape[1])
                with _seeded(seed, model.device):
                    written = model.generate(given, generation_config=config, **inputs, **stopping)
                if steps.length < written.shape[1]:  # the last token is still to go through the model
                    steps.last = True
                    rest = _continuing(inputs, written, self._pairs)
                    once = copy.deepcopy(config)
                    once.update(do_sample=False, max_new_tokens=1, min_new_tokens=0)
                    model.generate(given if self._pairs else written, generation_config=once, **rest)
            except (RegardError, TensorMaskError):
                raise
            except Exception as error:  # transformers raises whatever a family runs into
                lines = str(error).strip().splitlines()
                reason = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
                raise RegardError(f"generate: {self._name} with a {cache} cache: {reason}") from error
        count = written.shape[1]
        if steps.length != count or int(held.get_seq_length()) != count:
            raise RegardError(
                f"generate: {self._name} ({type(model).__name__}) does not keep the keys of its {count} tokens in a "
                "cache: its passes cannot be joined"
            )
        return written[0].tolist()

    def _check_model(self) -> None:
        """Refuse a model that does not write text."""
        model, kind = self._model, type(self._model).__name__
        if not model.can_generate():
            raise RegardError(f"generate: {self._name} ({kind}) has no language head that writes: it cannot generate")
        if model.main_input_name != "input_ids":
            raise RegardError(
                f"generate: {self._name} ({kind}) reads {model.main_input_name}, needs one that reads text"
            )
        if self._forward.reports_weights:
            raise RegardError(
                f"generate: {self._name} ({kind}) computes attention in code of its own, outside the attention "
                "interface of transformers: its passes cannot be joined"
            )

    def _check_room(self, name: str, prompt: Encoded, new_tokens: int) -> None:
        """Refuse more tokens than the model has positions for."""
        limit, taken = self._reader.limit, 1 if self._pairs else len(prompt.tokens)
        if limit is None or taken + new_tokens <= limit:
            return
        left = limit - taken
        most = f"new_tokens can be {left} at most" if left > 0 else "there is no room left"
        what = "the start token" if self._pairs else f"{name} has {taken} tokens"
        raise RegardError(
            f"generate: {what} and {new_tokens} new ones are more than the {limit} that {self._name} takes: {most}"
        )


class _Static(StaticCache):
    """A static cache for passes that are watched, not compiled: masks stay specifications of positions."""

    is_compileable = False


def _cache(model: Any, kind: str, room: int, source: int) -> Any:
    """An empty cache. room: the most tokens it will hold; source: how many an encoder read."""
    pairs = model.config.is_encoder_decoder
    # A decoder may be deeper than its encoder, and only its own config counts its layers then (T5).
    config = (model.get_decoder() if pairs else model).config.get_text_config(decoder=True)

    def one(size: int) -> Any:
        return DynamicCache(config=config) if kind == "dynamic" else _Static(config=config, max_cache_len=size)

    return EncoderDecoderCache(one(room), one(source)) if pairs else one(room)


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


def _ends(config: Any) -> tuple[int, ...]:
    """The ids of the end tokens."""
    ends = config.eos_token_id
    return () if ends is None else tuple(ends) if isinstance(ends, (list, tuple)) else (int(ends),)


@contextmanager
def _settings_of(model: Any, config: Any) -> Iterator[None]:
    """The model's own generation settings put aside: transformers fills up from them what is not set."""
    before, model.generation_config = model.generation_config, config
    try:
        yield
    finally:
        model.generation_config = before


@contextmanager
def _seeded(seed: int | None, device: torch.device) -> Iterator[None]:
    """Random numbers from a seed, and afterwards as if none had been drawn; None: as they come."""
    if seed is None:
        yield
        return
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield
