"""Generation with a `regard.Transformer`: its own decoding, then one pass over the whole text for the trace."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch

from regard.attention.ablation import ablating
from regard.attention.map_statistics import Statistics
from regard.capture.interventions.ablation import call_name
from regard.capture.interventions.resolve import Intervention
from regard.capture.session import Session
from regard.errors import RegardError
from regard.generation.generator import Ended, Generated, Generator, Request
from regard.generation.settings import SAMPLING, check_option_name
from regard.generation.step_ablation import (
    PassRange,
    first_target,
    heads_in_range,
    unwritten,
    unwritten_notes,
    whole_text_changes,
    with_tokens,
    within_pass,
)
from regard.nn.decoding import OPTIONS, Sampling, write_with_transformer
from regard.text.continuation import begun, continued
from regard.text.reader import Reader
from regard.text.tokens import Encoded
from regard.trace.trace import PairTrace, Trace

# (source, target of an encoder-decoder, interventions) -> trace
TraceOne = Callable[[Encoded, Encoded | None, Sequence[Intervention], Statistics | None], Trace | PairTrace]


class RegardGenerator(Generator[Sampling]):
    """Generates with a `regard.Transformer`. trace: traces one text, with its target for an encoder-decoder."""

    caches = ("dynamic",)

    def __init__(self, session: Session, reader: Reader, notes: tuple[str, ...], trace: TraceOne) -> None:
        super().__init__(session, reader, notes)
        self._trace = trace

    def check_model(self) -> None:
        """Raise RegardError where the model has no decoder or no language head."""
        if self._model.decoder is None or self._model.head is None:
            raise RegardError(f"generate: {self._name} has no decoder with a language head: it cannot generate")

    def settings(
        self, options: dict[str, Any], max_new_tokens: int, seed: int | None
    ) -> tuple[Sampling, tuple[str, ...]]:
        """Check the options; returns how the next token is chosen."""
        for option in options:
            check_option_name(option, OPTIONS)
        choice = Sampling(**options, seed=seed)
        idle = [option for option in SAMPLING if option in options]
        if idle and not choice.do_sample:
            raise RegardError(f"generate: {idle[0]} has no effect on a greedy choice: give do_sample=True with it")
        return choice, ()

    def open_ended(self, prompt: Encoded) -> Encoded:
        """Return the prompt without the end token that the tokenizer puts behind whole texts."""
        end = getattr(self._reader.tokenizer, "eos_token_id", None)
        if self._pairs or len(prompt.tokens) < 2 or prompt.ids[-1] != end:
            return prompt
        return replace(prompt, tokens=prompt.tokens[:-1], segments=None)

    def generate_one(self, prompt: Encoded, request: Request[Sampling]) -> Generated:
        """Write to one prompt and trace all of it."""
        started, tokenizer = time.perf_counter(), self._reader.tokenizer
        before = begun(tokenizer, self._model.config.start) if self._pairs else prompt
        interventions = with_tokens(request.interventions, prompt, self._pairs, self._name)
        new, ended = self._decode(prompt, before, request, interventions)
        whole = continued(tokenizer, before, new)
        late = unwritten(interventions, len(whole.tokens))
        source, target = (prompt, whole) if self._pairs else (whole, None)
        written = [intervention for intervention in interventions if intervention not in late]
        trace = self._trace(source, target, written, request.statistics)
        for side in trace.sides:
            side.status.seconds = time.perf_counter() - started
            side.status.notes += unwritten_notes(late, len(whole.tokens))
        text = whole.text[len(before.text) :]
        ids = tuple(whole.ids)
        return Generated(whole.text, text if before.text else text.lstrip(), ids, len(before.tokens), ended, trace)

    def _decode(
        self, prompt: Encoded, before: Encoded, request: Request[Sampling], interventions: Sequence[Intervention]
    ) -> tuple[list[int], Ended]:
        """The new ids, and why there are no more. before: the decoder's text so far."""
        model, tokenizer = self._model, self._reader.tokenizer
        end = getattr(tokenizer, "eos_token_id", None)
        ids = torch.tensor([prompt.ids], device=model.device)
        changes = whole_text_changes(interventions, prompt, request.max_new_tokens, self._session)
        hooks = self._session.structure.hooks(changes, prompt, first_target(self._session))

        @contextmanager
        def ablated(past: int, count: int) -> Iterator[None]:
            """The share of what is done in one pass; cross-attention has all of the source's keys in every pass."""
            rows = PassRange(past, count, past, 0, past + count)
            across = PassRange(past, count, 0, 0, len(prompt.tokens))
            here = (within_pass(c.for_attend(), across if c.part == "cross" else rows) for c in changes.calls)
            calls = [change for change in here if change is not None]
            with heads_in_range(self._name), ablating(calls, self._call_name), hooks.opened(past):
                yield

        def stopped(new: list[int]) -> bool:
            text = continued(tokenizer, before, new).text[len(before.text) :]
            if request.progress is not None:
                request.progress(text)
            return any(string in text for string in request.stop)

        context = None
        if self._pairs:
            with torch.no_grad(), ablated(0, len(prompt.tokens)):
                context = model.encode(ids)
            ids = torch.full((1, 1), model.config.start, device=model.device)
        new = write_with_transformer(
            model,
            ids,
            max_new_tokens=request.max_new_tokens,
            end=end,
            choose=request.settings.chooser(),
            until=stopped if request.stop or request.progress else None,
            context=context,
            around=ablated,
        )[0]
        if new[-1] == end:
            return new, "end"
        return new, "stop" if request.stop and stopped(new) else "length"

    def _call_name(self, path: str, _nth: int) -> str:
        """What interventions call the attention of a path: "decoder.3.cross" is "cross.3"."""
        stack, layer, kind = path.split(".")
        part: Any = "cross" if kind == "cross" else stack
        return call_name(part if self._pairs else None, int(layer))
