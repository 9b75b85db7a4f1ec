"""Build the trace of each text from a captured pass of a batch, its padding taken away.

Traces are views of the batch's tensors: nothing is copied, and a batch is given back when the last of its traces goes.
"""

import copy
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.ablation import HeadAblation
from regard.attention.attention_map import AttentionMap
from regard.attention.patches import CallPatch
from regard.attention.recording import Call
from regard.capture import status_notes
from regard.capture.embeddings import EmbeddingParts
from regard.capture.interventions.call_ids import CallNumbering, KnownCallIds
from regard.capture.options import NO_LAYERS, CaptureOptions
from regard.capture.prefix import EarlierRows
from regard.capture.state import Capture, LayerStack
from regard.errors import RegardError
from regard.tensor_files.pieces import dtype_name
from regard.text.tokens import Encoded
from regard.trace.attention_output import AttentionOutput, UnverifiedOutput
from regard.trace.layer_subset import CallNumber, Layers, LayerSubset
from regard.trace.status import Status
from regard.trace.trace import PairTrace, Trace


@dataclass
class CapturedPass:
    """One forward pass of a batch, and everything that was captured of it.

    last: the base model's last hidden state, and its encoder's, where it has one. embeddings: one group of parts for
    each sequence that was read. call_ids: those of its attention calls, None for joined passes. earlier: of a pass that
    began within the text, what an earlier one gave for the tokens before. notes: for the status of every trace.
    """

    name: str
    model: Any
    sources: list[Encoded]
    targets: list[Encoded] | None
    calls: list[Call]
    embeddings: list[EmbeddingParts]
    stacks: dict[str, LayerStack]
    last: dict[str, Tensor]
    logits: Float[Tensor, "B L V"] | None
    capture: Capture
    attention_outputs: dict[tuple[str, int], AttentionOutput | UnverifiedOutput]
    call_ids: CallNumbering | KnownCallIds | None = None
    earlier: EarlierRows | None = None
    notes: tuple[str, ...] = ()


def trace_of(captured: CapturedPass, n: int) -> Trace:
    """The trace of text n of a model that reads one sequence."""
    stack = max(captured.stacks.values(), key=lambda each: each.count, default=None)
    if stack is None:
        raise RegardError(f"model {captured.name!r}: no stack of layers was found around its attention")
    check_length(captured, stack, captured.sources)
    calls = _StackCalls(captured, stack, cross=None)
    parts = captured.embeddings[0] if captured.embeddings else EmbeddingParts()
    trace = _trace(
        captured, n, captured.sources[n], calls, parts, stack, captured.last.get("last_hidden_state"), captured.logits
    )
    left_out = len(captured.calls) - len(calls.calls)
    if left_out:
        trace.status.notes += (f"{left_out} attention calls outside the stack {stack.path!r} are left out",)
    return trace


def pair_of(captured: CapturedPass, n: int) -> PairTrace:
    """The traces of text n and its target of an encoder-decoder, cross-attention with the decoder."""
    assert captured.targets is not None
    if len(captured.stacks) != 2:
        found = ", ".join(captured.stacks) or "none"
        raise RegardError(f"model {captured.name!r}: needs a stack of encoder and one of decoder layers, found {found}")
    first, second = captured.stacks.values()
    check_length(captured, first, captured.sources)
    check_length(captured, second, captured.targets)
    parts = [*captured.embeddings, EmbeddingParts(), EmbeddingParts()]
    run = slice(0, len(captured.sources[n].tokens)), slice(0, len(captured.targets[n].tokens))
    encoder = _trace(
        captured,
        n,
        captured.sources[n],
        _StackCalls(captured, first, cross=None),
        parts[0],
        first,
        captured.last.get("encoder_last_hidden_state"),
        None,
    )
    last = captured.last.get("last_hidden_state")
    own = _StackCalls(captured, second, cross=False)
    decoder = _trace(captured, n, captured.targets[n], own, parts[1], second, last, captured.logits)
    cross = _StackCalls(captured, second, cross=True)
    for call in cross.calls.values():
        if call.weights.shape[-1] != first.hidden_states[0].shape[1]:
            raise RegardError(
                f"model {captured.name!r}: {call.path!r} looks at {call.weights.shape[-1]} keys where the encoder has "
                f"{first.hidden_states[0].shape[1]}: self- and cross-attention are one there, it cannot be traced"
            )
    if not cross.calls:
        return PairTrace(encoder, decoder)

    def cross_map(call: Call) -> AttentionMap:
        weights = call.weights.crop(n, run[1], run[0])
        weights.offset = None  # of two sequences: distances between them mean nothing, of equal length or not
        return _with_statistics(weights, captured)

    decoder.cross = cross.by_layer("cross", cross_map)
    outputs = decoder.changed_outputs, cross.changed_outputs(n, run[1], cross=True)
    decoder.changed_outputs = None if None in outputs else {**(outputs[0] or {}), **(outputs[1] or {})}
    decoder.cross_values = cross.by_layer(
        "cross_values", lambda call: None if call.value is None else call.value[n, :, run[0]]
    )
    if captured.capture.keep.attention_outputs:
        decoder.cross_attention_outputs = cross.by_layer(
            "cross_attention_outputs",
            lambda call: captured.attention_outputs[call.path, call.nth].crop(n, run[1]),
        )
    return PairTrace(encoder, decoder)


def trace_alike(first: Trace, captured: CapturedPass, n: int) -> Trace:
    """The trace of row n of a pass that reads one text in every row, and keeps no layer of it.

    first: the trace of another row. It differs in what the last layer and the language head gave, and in nothing else.
    """
    stack = max(captured.stacks.values(), key=lambda each: each.count)
    run = slice(0, len(first.tokens))
    trace = copy.copy(first)
    trace.status = replace(first.status)
    last = captured.last.get("last_hidden_state")
    _, trace.contextual, trace.logits = _ends(captured, n, run, stack, last, captured.logits)
    return trace


def _ends(
    captured: CapturedPass,
    n: int,
    run: slice,
    stack: LayerStack,
    last: Float[Tensor, "B L M"] | None,
    logits: Float[Tensor, "B L V"] | None,
) -> tuple[dict[int, Tensor], Tensor, Float[Tensor, "T V"] | None]:
    """Of one text the states that were kept, by number, its contextual embeddings and its logits, of all T tokens."""
    states = {number: each[n, run] for number, each in stack.numbered.items()}
    check_finite(states, captured.name)
    contextual = states[stack.count - 1]
    if last is not None and not torch.equal(last[n, run], contextual):
        contextual = last[n, run]  # after a final norm
    own = None if logits is None else logits[n, run]
    if captured.earlier is not None:
        contextual = captured.earlier.before("contextual", contextual)
        own = None if own is None else captured.earlier.before("logits", own)
    return states, contextual, own


def _trace(
    captured: CapturedPass,
    n: int,
    encoded: Encoded,
    calls: "_StackCalls",
    parts: EmbeddingParts,
    stack: LayerStack,
    last: Float[Tensor, "B L M"] | None,
    logits: Float[Tensor, "B L V"] | None,
) -> Trace:
    run = slice(0, len(encoded.tokens))

    def own(batched: Tensor | None) -> Tensor | None:
        return None if batched is None else batched[n, run]

    longest = stack.hidden_states[0].shape[1]

    def keys(call: Call) -> slice:
        """The keys of a call that are kept: the text's, or all where a family attends to more than the tokens."""
        size = call.weights.shape[-1]
        return run if size == longest else slice(0, size)

    keep, depth = captured.capture.keep, stack.count - 1
    _check_layers(captured, calls)
    states, contextual, logits = _ends(captured, n, run, stack, last, logits)
    notes = (
        encoded.notes
        + captured.notes
        + status_notes.of_options(keep, depth, captured.model.get_output_embeddings() is not None)
    )
    if keep.layers != NO_LAYERS:
        notes += status_notes.of_layers(calls.made, depth)
    kept = list(calls.calls.values())
    notes += status_notes.of_keys(calls.calls, longest)
    notes += status_notes.of_model(captured.capture, kept, states, captured.model.dtype.itemsize)

    status = Status(
        model=captured.name,
        kernels=tuple(sorted({call.kernel for call in kept})),
        device=str(captured.model.device),
        dtype=dtype_name(captured.model.dtype),
        difference=captured.capture.comparison.weights,
        rows_compared=captured.capture.comparison.rows,
        compared_with=captured.capture.comparison.compared_with,
        embedding_difference=parts.difference(),
        unknown=encoded.unknown,
        dropped=encoded.dropped,
        notes=notes,
    )
    return Trace(
        text=encoded.text,
        tokens=encoded.tokens,
        learned=own(parts.learned),
        positional=own(parts.positional),
        segment=own(parts.segment),
        input=own(parts.input),
        hidden_states=_states(states, depth + 1, keep),
        contextual=contextual,
        logits=logits,
        attention=calls.by_layer(
            "attention", lambda call: _with_statistics(call.weights.crop(n, run, keys(call)), captured)
        ),
        values=calls.by_layer("values", lambda call: None if call.value is None else call.value[n, :, keys(call)]),
        status=status,
        attention_outputs=calls.by_layer(
            "attention_outputs", lambda call: captured.attention_outputs[call.path, call.nth].crop(n, run)
        )
        if keep.attention_outputs
        else Layers(),
        names=encoded.names,
        changed_outputs=calls.changed_outputs(n, run, cross=False),
    )


class _StackCalls:
    """The attention calls of one kind that a stack's layers made, by (layer, which of its calls).

    depth: how many layers there are. made: the numbers of all calls, those that were not kept among them.
    """

    def __init__(self, captured: CapturedPass, stack: LayerStack, *, cross: bool | None) -> None:
        """cross: whether those to another sequence are meant, or those within one; None for all."""
        counts: Counter[int] = Counter()
        numbers: dict[tuple[str, int], CallNumber] = {}
        for (path, nth), layer in stack.calls.items():
            if cross is None or (path in captured.capture.cross_paths) == cross:
                numbers[path, nth] = layer, counts[layer]
                counts[layer] += 1
        self.depth = stack.count - 1
        # Where no layer is kept, some may not have been run at all: nothing is said then of which have attention.
        nothing = captured.capture.keep.layers == NO_LAYERS
        self.made = tuple((n, 0) for n in range(self.depth)) if nothing else tuple(numbers.values())
        self.calls = {numbers[call.path, call.nth]: call for call in captured.calls if (call.path, call.nth) in numbers}

    def changed_outputs(self, n: int, rows: slice, *, cross: bool) -> dict[tuple[bool, int], Tensor] | None:
        """The heads' outputs of text n in calls where they were ablated or patched; None where they are not known."""
        changed: dict[tuple[bool, int], Tensor] = {}
        for (layer, _), call in self.calls.items():
            if any(isinstance(each, (HeadAblation, CallPatch)) for each in call.ablations):
                if call.output is None:
                    return None
                changed[cross, layer] = call.output[n, :, rows]
        return changed

    def by_layer(self, what: str, item: Callable[[Call], Any]) -> Any:
        """One item a layer: a tuple where each made one call that was kept, else a sequence that refuses others."""
        items = {number: item(call) for number, call in self.calls.items()}
        one_each = [(n, 0) for n in range(self.depth)]
        if list(items) == one_each:
            return tuple(items.values())
        return LayerSubset(what, self.depth, items, made=None if list(self.made) == one_each else self.made)


def _with_statistics(weights: AttentionMap, captured: CapturedPass) -> AttentionMap:
    """The map of one text with the statistics that were asked for: those of its call, or computed now."""
    wanted = captured.capture.keep.statistics
    return weights if wanted is None else weights.keep_statistics(wanted, len(captured.calls))


def _states(states: Mapping[int, Tensor], size: int, keep: CaptureOptions) -> Any:
    """The hidden states: a tuple where all were to be kept, else a sequence that refuses the others."""
    if keep.layers is None:
        return tuple(states[n] for n in sorted(states))
    return LayerSubset("hidden_states", size, {n: state for n, state in states.items() if keep.state(n)})


def check_finite(states: Mapping[int, Tensor], name: str) -> None:
    """Raise RegardError naming the first layer of a model that leaves NaN or infinity."""
    for number, state in states.items():
        # a finite sum has finite terms, and is had sooner; an infinite one may still have them
        if not bool(torch.isfinite(state.sum()) or torch.isfinite(state).all()):
            where = "enters layer 0" if number == 0 else f"leaves layer {number - 1}"
            raise RegardError(f"model {name!r}: what {where} holds NaN or infinity, nothing after it means anything")


def check_length(captured: CapturedPass, stack: LayerStack, texts: list[Encoded]) -> None:
    """Refuse a stack whose tokens are not those that were given: with one added, all weights would be off."""
    expected, length = max(len(text.tokens) for text in texts), stack.hidden_states[0].shape[1]
    expected -= 0 if captured.earlier is None else captured.earlier.past
    if expected != length:
        raise RegardError(
            f"model {captured.name!r}: its layers {stack.path!r} have {length} tokens where {expected} were given, in "
            f"states of shape {tuple(stack.hidden_states[0].shape)}: it cannot be traced"
        )


def _check_layers(captured: CapturedPass, calls: _StackCalls) -> None:
    """Refuse layers that were asked for where module paths do not say which calls belong to them."""
    wanted = captured.capture.keep.layers
    if not wanted:
        return
    given = ", ".join(map(str, sorted(wanted)))
    if max(wanted) >= calls.depth:
        raise RegardError(f"layers: given {given}, {captured.name} has layers 0 to {calls.depth - 1}")
    if list(calls.calls) != [(layer, nth) for layer, nth in calls.made if layer in wanted]:
        raise RegardError(
            f"layers: given {given}, but which attention calls of {captured.name} belong to them is known only after "
            "they are made: trace all"
        )
