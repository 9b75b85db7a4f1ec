"""Run texts through a model in batches that fit into memory, and build a trace of each text."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import torch
from torch import nn

from regard import memory
from regard.attention.map_statistics import Statistics
from regard.capture.build_trace import pair_of, trace_of
from regard.capture.inputs import ModelInput
from regard.capture.interventions.resolve import Intervention, intervention_names_tokens
from regard.capture.many_ablations import BATCH_TOKENS as ABLATION_BATCH_TOKENS
from regard.capture.many_ablations import ablated
from regard.capture.options import NO_LAYERS, CaptureOptions
from regard.capture.session import Session
from regard.errors import RegardError
from regard.models.windows import Plan, WindowedTrace, join_windows
from regard.models.windows import plan as plan_windows
from regard.text.reader import Reader
from regard.text.tokens import Encoded
from regard.trace.trace import PairTrace, Trace

SAME = 1e-4  # largest rounding difference between a text's states in a batch and alone, relative to the largest value
BATCH_TOKENS = 8192  # tokens in one pass, including padding
MAX_LABELS = 5  # in a note on a classifier's logits
HELPS = "trace fewer layers (layers=), without logits (logits=False), in windows (window=), or a shorter text"


@dataclass(frozen=True)
class Sizes:
    """A model's sizes in numbers per token, to estimate memory. width: M. parts: the embeddings. queries: H · D.

    keys: keys and values, 2 · G · D. inner: output of the widest linear map except the language head. vocabulary: the
    logits, 0 without a head. bytes: bytes per number.
    """

    layers: int
    heads: int
    width: int
    parts: int
    queries: int
    keys: int
    inner: int
    vocabulary: int
    bytes: int

    @staticmethod
    def of(model: Any) -> "Sizes":
        """Read the sizes from a model's config and modules."""
        config = model.config.get_text_config() if hasattr(model.config, "get_text_config") else model.config
        try:
            table = model.get_input_embeddings()
        except NotImplementedError:  # the model takes no token ids
            table = None
        head = model.get_output_embeddings()
        width: int = _number_in_model_config(config, "hidden_size") or int(getattr(table, "embedding_dim", 0))
        heads = _number_in_model_config(config, "num_attention_heads") or 1
        head_width = _number_in_model_config(config, "head_dim") or width // heads
        groups = _number_in_model_config(config, "num_key_value_heads") or heads
        wide = [
            getattr(module, "nf", 0) or module.out_features  # GPT-2's Conv1D has nf
            for module in model.modules()
            if (isinstance(module, nn.Linear) and module is not head) or type(module).__name__ == "Conv1D"
        ]
        return Sizes(
            layers=_number_in_model_config(config, "num_hidden_layers") or 1, heads=heads, width=width,
            parts=4 * width, queries=heads * head_width, keys=2 * groups * head_width, inner=max([width, *wide]),
            vocabulary=0 if head is None else getattr(head, "out_features", 0), bytes=model.dtype.itemsize,
        )  # fmt: skip

    def trace_bytes(self, tokens: int, keep: CaptureOptions) -> int:
        """Return the bytes that traces of this many tokens take up."""
        layers = self.layers if keep.layers is None else len(keep.layers)
        # per layer: state, attention block output, queries, keys and values
        per_layer = self.width * (2 if keep.attention_outputs else 1) + (self.queries + self.keys) * keep.attention
        once = self.parts + 2 * self.width + (self.vocabulary if keep.logits else 0)
        total = tokens * self.bytes * (layers * per_layer + once)
        if keep.statistics is None:
            return total
        rows, cols = keep.statistics.pooled or (0, 0)
        per_row = 12 * tokens * ((keep.statistics.top or 0) + 1) + 4 * min(rows, tokens) * min(cols, tokens)
        return total + layers * self.heads * per_row

    def pass_bytes(self, lengths: Sequence[int], keep: CaptureOptions, trims: bool, written_out: bool) -> int:
        """Return the bytes that one pass over a batch needs in addition to its traces."""
        tokens, longest = len(lengths) * max(lengths), max(lengths)
        inside = 3 * self.inner + 4 * self.width + 2 * (self.queries + self.keys)
        logits = 0 if keep.logits or trims else self.vocabulary  # logits that are kept belong to the traces
        passing = tokens * self.bytes * (inside + logits)
        if written_out:
            passing += 3 * self.layers * self.heads * tokens * longest * self.bytes
        return passing


def _number_in_model_config(config: Any, name: str) -> int | None:
    """Return a positive number from a model's config, or None if it is missing or differs by layer."""
    try:
        number = getattr(config, name, None)
    except RuntimeError:  # the number may differ by layer
        return None
    return number if isinstance(number, int) and number > 0 else None


@dataclass(frozen=True)
class Runner:
    """Runs texts through a session. reader: tokenizes texts. notes: on the model, added to every trace's status."""

    session: Session
    reader: Reader
    notes: tuple[str, ...]

    def traces(
        self,
        sources: Sequence[Encoded],
        targets: Sequence[Encoded] | None,
        interventions: Sequence[Intervention],
        keep: CaptureOptions,
        *,
        streamed: bool = False,
    ) -> Iterator[tuple[int, Trace | PairTrace]]:
        """Yield the number and the trace of each text, batch by batch.

        In some architectures, padding changes a text's states. MobileBERT, for example, joins neighbouring embeddings.
        So the shortest text of the first padded batch also runs alone. If its states differ, only texts of the same
        length run together.
        """
        session = self.session
        sizes = [(len(a.tokens), len(b.tokens)) for a, b in zip(sources, targets or sources, strict=True)]
        lengths = list(map(max, sizes))
        order = list(batches_of_similar_length(lengths, 1 if session.reports_weights else None))
        together = [[lengths[n] for n in batch] for batch in order]
        for group in [[text] for text in together] if streamed else [together]:
            self._require_memory(group, keep)
        for batch in order:  # grows when a batch is split
            started = time.perf_counter()
            padded = len({sizes[n] for n in batch}) > 1
            if padded and session.reads_padding:
                order += [[n for n in batch if sizes[n] == size] for size in {sizes[n] for n in batch}]
                continue
            batch_targets = None if targets is None else [targets[n] for n in batch]
            done = session.run([sources[n] for n in batch], batch_targets, [interventions] * len(batch), keep)
            traces = [pair_of(done, n) if session.pairs else trace_of(done, n) for n in range(len(batch))]
            if padded and session.reads_padding is None:
                shortest, alone = min(batch, key=lambda n: sizes[n]), CaptureOptions(NO_LAYERS, False, False)
                target = None if targets is None else [targets[shortest]]
                ((_, trace),) = self.traces([sources[shortest]], target, interventions, alone)
                session.reads_padding = not _same_last_states(traces[batch.index(shortest)], trace)
                if session.reads_padding:
                    order.append(batch)  # to be split
                    continue
            share = (time.perf_counter() - started) / len(batch)
            for number, trace in zip(batch, traces, strict=True):
                self._add_notes(trace, interventions, share)
                yield number, trace

    def trace(
        self,
        source: Encoded,
        target: Encoded | None,
        interventions: Sequence[Intervention] = (),
        statistics: Statistics | None = None,
    ) -> Trace | PairTrace:
        """Trace one text, and keep all values."""
        targets = None if target is None else [target]
        ((_, trace),) = self.traces([source], targets, interventions, CaptureOptions(statistics=statistics))
        return trace

    def ablated(
        self, source: Encoded, target: Encoded | None, sets: Sequence[Sequence[Any]], *, logits: bool
    ) -> Iterator[tuple[int, Trace | PairTrace]]:
        """Yield the number and the trace of each set of ablations, in the order of completion."""
        longest = max(len(text.tokens) for text in (source, target) if text is not None)
        limit = self._sets_at_once(longest, len(sets), logits)
        for placed, done in ablated(self.session, source, target, sets, logits=logits, limit=limit):
            for number, row in placed:
                trace = pair_of(done, row) if self.session.pairs else trace_of(done, row)
                self._add_notes(trace, sets[number])
                yield number, trace

    def windowed(
        self,
        sources: Sequence[Encoded],
        window: int,
        stride: int | None,
        interventions: Sequence[Intervention],
        keep: CaptureOptions,
    ) -> list[WindowedTrace]:
        """Trace each text in overlapping windows."""
        if any(map(intervention_names_tokens, interventions)):
            raise RegardError("window: in windows you can only ablate heads, not edges, and not patch tokens")
        plans = [self._plan(source, window, stride) for source in sources]
        window_texts = [window_text for plan in plans for window_text in plan.window_texts()]
        traces: dict[int, Any] = dict(self.traces(window_texts, None, interventions, keep))  # all of single texts
        firsts = accumulate((len(plan.spans) for plan in plans), initial=0)
        return [
            join_windows(plan, [traces[n] for n in range(first, first + len(plan.spans))])
            for plan, first in zip(plans, firsts, strict=False)
        ]

    def stream(
        self, source: Encoded, window: int, stride: int | None, keep: CaptureOptions
    ) -> tuple[Plan, Iterator[Trace]]:
        """Return the windows of a text, and an iterator over their traces in order."""
        plan = self._plan(source, window, stride)
        window_texts = plan.window_texts()  # all of one length, so their traces come in order
        traces: Iterator[tuple[int, Any]] = self.traces(window_texts, None, (), keep, streamed=True)
        return plan, (trace for _, trace in traces)

    def _plan(self, source: Encoded, window: int, stride: int | None) -> Plan:
        name = self.session.name
        if self.session.pairs:
            raise RegardError(f"window: {name} is an encoder-decoder, which cannot read a text in windows")
        if isinstance(source, ModelInput):
            raise RegardError("window: only a text can be read in windows, not inputs")
        return plan_windows(source, self.reader.tokenizer, window, stride, self.reader.limit, name)

    def _sets_at_once(self, length: int, sets: int, logits: bool) -> int:
        """Return how many sets of ablations of a text to run together, limited by speed and memory."""
        count, keep = min(sets, max(1, ABLATION_BATCH_TOKENS // length)), CaptureOptions(NO_LAYERS, logits, False)
        while True:
            try:
                self._require_memory([[length] * (count + 1)], keep)  # one row without ablations
            except RegardError:
                if count <= 1:
                    raise
                count //= 2
            else:
                return max(1, count)

    def _require_memory(self, batches: Sequence[Sequence[int]], keep: CaptureOptions) -> None:
        """Raise RegardError if batches don't fit into memory. batches: the token count of each text, per batch."""
        session, model = self.session, self.session.index.model
        sizes = replace(session.index.once(Sizes.of), bytes=model.dtype.itemsize)
        padded = sum(len(lengths) * max(lengths) for lengths in batches)  # traces are views of a batch
        options = "logits_to_keep" in session.takes, bool(session.reports_weights)
        need = sizes.trace_bytes(padded, keep) + max(sizes.pass_bytes(lengths, keep, *options) for lengths in batches)
        tokens, single = sum(map(sum, batches)), len(batches) == len(batches[0]) == 1
        subject = f"a trace of {tokens} tokens" if single else f"traces of {tokens} tokens in all"
        memory.require_memory(need, model.device, f"{subject} by {session.name}", HELPS)

    def _add_notes(
        self, trace: Trace | PairTrace, interventions: Sequence[Intervention], seconds: float | None = None
    ) -> None:
        """Add notes on the model, logits and interventions, and the time, to a trace's status."""
        for side in trace.sides:
            side.status.notes += self.notes
            if side.labels and side.logits is not None and side.logits.ndim == 1:  # a classifier of whole texts
                best = sorted(zip(side.logits.tolist(), side.labels, strict=True), reverse=True)
                named = ", ".join(f"{label} {value:.2f}" for value, label in best[:MAX_LABELS])
                side.status.notes += (f"Logits of the labels: {named}{', …' * (len(best) > MAX_LABELS)}.",)
            side.status.notes += tuple(map(str, interventions))
            if seconds is not None:
                side.status.seconds = seconds


def _same_last_states(one: Trace | PairTrace, other: Trace | PairTrace) -> bool:
    """Return whether two traces of a text have the same last hidden states except for rounding."""
    first, second = ([side.last_hidden_state for side in trace.sides] for trace in (one, other))
    pairs = [(a.float(), b.float()) for a, b in zip(first, second, strict=True)]
    limit = max(SAME, 8 * torch.finfo(first[0].dtype).eps)
    return all(float((a - b).abs().max()) <= limit * max(float(b.abs().max()), 1e-3) for a, b in pairs)


def batches_of_similar_length(lengths: Sequence[int], max_size: int | None = None) -> Iterator[list[int]]:
    """Yield the numbers of texts in batches of similar length, to save padding. max_size: per batch, None for any."""
    order = sorted(range(len(lengths)), key=lambda n: lengths[n])
    batch: list[int] = []
    for number in order:
        if batch and (len(batch) == max_size or lengths[number] * (len(batch) + 1) > BATCH_TOKENS):
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch
