"""A pretrained transformer that texts are traced through."""

import inspect
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from regard.capture.build_trace import pair_of, trace_of
from regard.capture.embeddings import position_limit
from regard.capture.inputs import ModelInput, check_inputs
from regard.capture.interventions import Edge, Intervention, target_of
from regard.capture.many_ablations import BATCH_TOKENS as BATCH
from regard.capture.many_ablations import ablated
from regard.capture.options import NO_LAYERS, CaptureOptions
from regard.capture.session import Session
from regard.errors import RegardError
from regard.generation.generate import Generator
from regard.models.memory_estimate import require_trace_memory
from regard.models.windows import Plan, joined, plan
from regard.text.reader import Ids, Reader
from regard.text.tokens import Encoded
from regard.trace.trace import PairTrace, Trace

BATCH_TOKENS = 8192  # tokens, padding included, that go through a model at once


class Model:
    """A model and its tokenizer; `regard.load` makes it, `trace` is what it is for.

    model and tokenizer are the transformers objects themselves (tokenizer None: texts are given as ids). limit: the
    most tokens of a text, None for no limit. pairs: whether it is an encoder-decoder, which reads a text and a target.
    """

    def __init__(self, model: Any, tokenizer: Any, *, name: str, notes: tuple[str, ...] = ()) -> None:
        self.model, self.tokenizer, self.name, self.notes = model, tokenizer, name, notes
        self.limit = position_limit(model)
        told = bool(getattr(model.config, "is_encoder_decoder", False))  # an encoder taken out of a pair says so too
        self.pairs = told and "decoder_input_ids" in inspect.signature(model.forward).parameters
        self._reader = Reader(model, tokenizer, name, self.limit)
        filler = getattr(tokenizer, "pad_token_id", None) or 0
        self._passes = Session(model, name=name, filler=filler, pairs=self.pairs)
        self._writer = Generator(self._passes, self._reader, notes)

    def __repr__(self) -> str:
        return f"Model({self.name!r}, {type(self.model).__name__}, limit={self.limit})"

    def trace(
        self,
        text: str | Sequence[str] | None = None,
        *,
        target: str | Sequence[str] | None = None,
        ids: Ids | None = None,
        target_ids: Ids | None = None,
        inputs: Mapping[str, Any] | None = None,
        interventions: Sequence[Intervention] = (),
        layers: int | Collection[int] | None = None,
        logits: bool = True,
        attention_outputs: bool = True,
        window: int | None = None,
        stride: int | None = None,
    ) -> Any:
        """Run one text, or several in batches, and keep everything the forward pass did.

        Args:
            text: one text or several.
            target: of an encoder-decoder, what its decoder reads: one text, or one for each text.
            ids, target_ids: token ids instead of texts, taken as they are; for models without a tokenizer.
            inputs: instead of a text, one item of what else the model reads, such as {"pixel_values": tensor} or
                {"input_features": tensor}, as its forward takes it; its tokens have numbers for names.
            interventions: what is done to the pass, such as `regard.ablate(regard.head(layer, head))`; in every text,
                in the order of the list.
            layers: the layers whose attention, values and states are kept, None for all.
            logits: whether the logits, (L, V), are computed where the model has a language head.
            blocks: whether what stands around attention is kept, (L, M) a layer; contributions and steps need it.
            window, stride: read each text in overlapping windows of so many tokens, special ones included, each so
                many further than the one before (None: half of what a window holds); gives `WindowedTrace`s.

        Returns a `Trace` for one text, a list of them, in order, for several. An encoder-decoder gives a `PairTrace`.

        Raises:
            RegardError: no text, a blank one, invalid Unicode, more tokens than the model has positions for, a target
                that is missing or not wanted, layers, windows or strides that do not fit, or more than fits in memory.
        """
        sources: list[Encoded]
        if inputs is not None and text is None and ids is None:
            single, sources = True, [check_inputs(inputs, self.model, self._passes.takes, self.name)]
        elif inputs is not None:
            raise RegardError("trace: needs a text, ids or inputs, given two of them")
        else:
            single, sources = self._reader.read("text", text, ids, cut=window is not None)
        targets: list[Encoded] | None = None
        if target is not None or target_ids is not None:
            if not self.pairs:
                raise RegardError(f"target: {self.name} is no encoder-decoder, it reads a text alone")
            one, targets = self._reader.read("target", target, target_ids)
            if one != single or len(targets) != len(sources):
                raise RegardError(f"target: given {len(targets)}, needs one for each of the {len(sources)} texts")
        elif self.pairs:
            raise RegardError(f"target: {self.name} is an encoder-decoder, it needs a target beside the text")
        keep = CaptureOptions.of(layers, logits, attention_outputs, self.model.config, self.name)
        if self.pairs and layers is not None:
            raise RegardError(f"layers: {self.name} is an encoder-decoder, all layers of it are kept")
        if window is None and stride is not None:
            raise RegardError(f"stride: given {stride} without a window")
        if window is None:
            traces = dict(self._traces(sources, targets, interventions, keep))
            return traces[0] if single else [traces[n] for n in range(len(sources))]
        plans = [self._plan(each, window, stride, interventions) for each in sources]
        pieces = [piece for each in plans for piece in each.pieces()]
        read = dict(self._traces(pieces, None, interventions, keep))
        found, start = [], 0
        for each in plans:
            found.append(joined(each, [read[n] for n in range(start, start + len(each.spans))]))
            start += len(each.spans)
        return found[0] if single else found

    def generate(
        self,
        prompt: str | Sequence[str] | None = None,
        *,
        ids: Ids | None = None,
        new_tokens: int = 20,
        seed: int | None = None,
        cache: str = "dynamic",
        stop: str | Sequence[str] = (),
        **options: Any,
    ) -> Any:
        """Let the model write, and trace it while it does: the prompt at once, then a token at a time.

        Args:
            prompt: what the text begins with; for an encoder-decoder the text that it reads. Several are written to one
                after another, each as if it were alone.
            ids: the token ids of a prompt (or of several) instead of it.
            new_tokens: the most tokens to write, special ones included.
            seed: of the random numbers of each text; None takes them as they come.
            cache: "dynamic" or "static", how the model keeps keys and values meanwhile; the outcome is the same.
            stop: strings at which to stop.
            options: as in transformers: do_sample, temperature, top_k, top_p, min_p, repetition_penalty, … What is not
                given is as the model's own generation settings have it, greedy where they do not sample.

        Returns a `Generated` for one prompt, a list of them for several: text, ids, and one trace of all the tokens.

        Raises:
            RegardError: the model does not write text, there is no room for so many tokens, or an option does not
                exist, has no effect or cannot have its value.
        """
        return self._writer.write(prompt, ids, new_tokens, seed, cache, stop, options)

    def ablated(
        self,
        text: str | None = None,
        sets: Sequence[Sequence[Any]] = (),
        *,
        target: str | None = None,
        ids: Ids | None = None,
        target_ids: Ids | None = None,
        logits: bool = True,
    ) -> Iterator[tuple[int, Any]]:
        """Run one text under many sets of ablations: far sooner than as many traces, and holding less.

        Runs go in batches and do not compute again what lies below the first ablated layer.

        Args:
            text, target, ids, target_ids: of one text, as in `trace`.
            sets: for each run what is ablated, as `interventions` in `trace`.
            logits: whether the logits, (L, V), are computed where the model has a language head.

        Yields the number of each set and its trace, in the order in which they are done. The traces have contextual
        embeddings and logits; their layers are not kept.

        Raises:
            RegardError: as `trace`; no or several texts.
        """
        single, sources = self._reader.read("text", text, ids)
        targets: list[Encoded] | None = None
        if target is not None or target_ids is not None or self.pairs:
            one, targets = self._reader.read("target", target, target_ids)
            single &= one
        if not single:
            raise RegardError("ablated: given several texts, needs one")
        if targets is not None and not self.pairs:
            raise RegardError(f"target: {self.name} is no encoder-decoder, it reads a text alone")
        sets = [tuple(each) for each in sets]
        most = self._together(max(len(each.tokens) for each in (*sources, *(targets or ()))), len(sets), logits)
        of_target = None if targets is None else targets[0]
        for placed, done in ablated(self._passes, sources[0], of_target, sets, logits=logits, most=most):
            for number, row in placed:
                trace = pair_of(done, row) if self.pairs else trace_of(done, row)
                for side in (trace.encoder, trace.decoder) if isinstance(trace, PairTrace) else (trace,):
                    side.status.notes += self.notes + tuple(map(str, sets[number]))
                yield number, trace

    def _together(self, length: int, sets: int, logits: bool) -> int:
        """How many sets of ablations of a text of that length run together: as many as pay and fit into memory."""
        most, keep = min(sets, max(1, BATCH // length)), CaptureOptions(NO_LAYERS, logits, attention_outputs=False)
        while True:
            lengths = [[length] * (most + 1)]  # with the row that has none
            try:
                require_trace_memory(
                    self.model,
                    self.name,
                    lengths,
                    keep,
                    "logits_to_keep" in self._passes.takes,
                    self._passes.reports_weights,
                )
            except RegardError:
                if most <= 1:
                    raise
                most //= 2
            else:
                return max(1, most)

    def stream(
        self, text: str, *, window: int, stride: int | None = None, layers: int | Collection[int] | None = None
    ) -> tuple[Plan, Iterator[Trace]]:
        """A text's windows one after another, for who does not want to hold them all; without logits.

        Returns the plan (`plan.sources` has the window of every token) and the traces of the windows in order.
        """
        _, (encoded,) = self._reader.read("text", [text], None, cut=True)
        plan = self._plan(encoded, window, stride, ())
        keep = CaptureOptions.of(layers, False, True, self.model.config, self.name)
        pieces = plan.pieces()  # of one length, so that they come in order
        return plan, (trace for _, trace in self._traces(pieces, None, (), keep, streamed=True))

    def _plan(self, encoded: Encoded, window: int, stride: int | None, interventions: Sequence[Intervention]) -> Plan:
        if self.pairs:
            raise RegardError(f"window: {self.name} is an encoder-decoder, which cannot read a text in windows")
        if isinstance(encoded, ModelInput):
            raise RegardError("window: inputs cannot be read in windows, a text can")
        if any(isinstance(target_of(each), Edge) for each in interventions):
            raise RegardError("window: edges cannot be ablated in windows, heads can")
        return plan(encoded, self.tokenizer, window, stride, self.limit, self.name)

    def _traces(
        self,
        sources: list[Encoded],
        targets: list[Encoded] | None,
        interventions: Sequence[Intervention],
        keep: CaptureOptions,
        *,
        streamed: bool = False,
    ) -> Iterator[tuple[int, Any]]:
        """The number and the trace of each text, batch by batch. streamed: nobody holds more than one batch of them."""
        lengths = [len(each.tokens) for each in sources]
        if targets is not None:
            lengths = [max(n, len(each.tokens)) for n, each in zip(lengths, targets, strict=True)]
        order = list(batches(lengths, 1 if self._passes.reports_weights else None))
        sizes = [[lengths[n] for n in batch] for batch in order]
        for each in [[one] for one in sizes] if streamed else [sizes]:
            require_trace_memory(
                self.model, self.name, each, keep, "logits_to_keep" in self._passes.takes, self._passes.reports_weights
            )
        for batch in order:
            started = time.perf_counter()
            done = self._passes.run(
                [sources[n] for n in batch], targets and [targets[n] for n in batch], [interventions] * len(batch), keep
            )
            made = [pair_of(done, n) if self.pairs else trace_of(done, n) for n in range(len(batch))]
            share = (time.perf_counter() - started) / len(batch)
            for number, trace in zip(batch, made, strict=True):
                for side in (trace.encoder, trace.decoder) if isinstance(trace, PairTrace) else (trace,):
                    side.status.seconds = share
                    side.status.notes += self.notes + tuple(map(str, interventions))
                yield number, trace


def batches(lengths: Sequence[int], most: int | None = None) -> Iterator[list[int]]:
    """Numbers of texts that go through the model together: of like lengths, so that little is padding.

    most: how many texts at most, None for as many as fit.
    """
    order = sorted(range(len(lengths)), key=lambda n: lengths[n])
    batch: list[int] = []
    for number in order:
        if batch and (len(batch) == most or lengths[number] * (len(batch) + 1) > BATCH_TOKENS):
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch
