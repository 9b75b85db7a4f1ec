"""Build the trace of each text from a captured pass of a batch, its padding taken away.

Traces are views of the batch's tensors: nothing is copied, and a batch is given back when the last of its traces goes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.recording import Call
from regard.capture.call_ids import CallNumbering, KnownCallIds
from regard.capture.eager_attention import KERNEL, NOTE, ROUNDED
from regard.capture.embeddings import EmbeddingParts
from regard.capture.fast_linear import REORDERED
from regard.capture.hidden_states import LayerStack
from regard.capture.options import NO_LAYERS, CaptureOptions
from regard.capture.state import Capture
from regard.errors import RegardError
from regard.text.tokens import Encoded
from regard.trace.attention_output import AttentionOutput, UnverifiedOutput
from regard.trace.layer_subset import LayerSubset
from regard.trace.trace import PairTrace, Status, Trace

OTHER_WEIGHTS = (
    "the family's own attention function reports weights that its output is not made of; shown are those that it is"
)
CONTRARY = (
    "this family contradicts itself: its eager attention sees every token, as shown, and PyTorch's kernel would be "
    "told to attend causally"
)


@dataclass
class CapturedPass:
    """One forward pass of a batch, and everything that was captured of it.

    last: the base model's last hidden state, and its encoder's, where it has one. embeddings: one group of parts for
    each sequence that was read. call_ids: those of its attention calls, None for joined passes.
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


def trace_of(done: CapturedPass, n: int) -> Trace:
    """The trace of text n of a model that reads one sequence."""
    stack = max(done.stacks.values(), key=lambda each: each.count, default=None)
    if stack is None:
        raise RegardError(f"model {done.name!r}: no stack of layers was found around its attention")
    _check_length(done, stack, done.sources)
    calls = [call for call in done.calls if call.path.startswith(f"{stack.path}.")]
    parts = done.embeddings[0] if done.embeddings else EmbeddingParts()
    trace = _trace(done, n, done.sources[n], calls, parts, stack, done.last.get("last_hidden_state"), done.logits)
    left_out = len(done.calls) - len(calls)
    if left_out:
        trace.status.notes += (f"{left_out} attention calls outside the stack {stack.path!r} are left out",)
    return trace


def pair_of(done: CapturedPass, n: int) -> PairTrace:
    """The traces of text n and its target of an encoder-decoder, cross-attention with the decoder."""
    assert done.targets is not None
    if len(done.stacks) != 2:
        found = ", ".join(done.stacks) or "none"
        raise RegardError(f"model {done.name!r}: needs a stack of encoder and one of decoder layers, found {found}")
    first, second = done.stacks.values()
    _check_length(done, first, done.sources)
    _check_length(done, second, done.targets)
    crossing = done.capture.cross_paths
    parts = [*done.embeddings, EmbeddingParts(), EmbeddingParts()]
    run = slice(0, len(done.sources[n].tokens)), slice(0, len(done.targets[n].tokens))
    own = [call for call in done.calls if call.path.startswith(f"{first.path}.")]
    encoder = _trace(done, n, done.sources[n], own, parts[0], first, done.last.get("encoder_last_hidden_state"), None)
    mine = [call for call in done.calls if call.path.startswith(f"{second.path}.")]
    itself = [call for call in mine if call.path not in crossing]
    last = done.last.get("last_hidden_state")
    decoder = _trace(done, n, done.targets[n], itself, parts[1], second, last, done.logits)
    across = [call for call in mine if call.path in crossing]
    for call in across:
        if call.weights.shape[-1] != first.hidden_states[0].shape[1]:
            raise RegardError(
                f"model {done.name!r}: {call.path!r} looks at {call.weights.shape[-1]} keys where the encoder has "
                f"{first.hidden_states[0].shape[1]}: self- and cross-attention are one there, it cannot be traced"
            )
    decoder.cross = tuple(call.weights.crop(n, run[1], run[0]) for call in across)
    for weights in decoder.cross:
        weights.offset = None  # of two sequences: distances between them mean nothing, of equal length or not
    decoder.cross_values = tuple(None if call.value is None else call.value[n, :, run[0]] for call in across)
    if done.capture.keep.attention_outputs:
        decoder.cross_attention_outputs = tuple(
            done.attention_outputs[call.path, call.nth].crop(n, run[1]) for call in across
        )
    return PairTrace(encoder, decoder)


def _trace(
    done: CapturedPass,
    n: int,
    encoded: Encoded,
    calls: list[Call],
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
        """Its text's keys; all of them where a family attends to more than the tokens."""
        size = call.weights.shape[-1]
        return run if size == longest else slice(0, size)

    keep, depth = done.capture.keep, stack.count - 1
    _check_layers(done, calls, depth)
    states = {number: each for number, state in stack.numbered.items() if (each := own(state)) is not None}
    notes = encoded.notes
    if keep.layers == NO_LAYERS:
        notes += ("no layer was kept, and no weights were compared",)
    elif keep.layers is not None:
        notes += (f"kept of its {depth} layers: {', '.join(map(str, sorted(keep.layers)))}",)
    if not keep.logits and done.model.get_output_embeddings() is not None:
        notes += ("logits were left out",)
    if not keep.attention_outputs:
        notes += ("what stands around attention was left out: there are no contributions",)
    # Two calls a layer (DiffLlama), or layers of another kind between (hybrids).
    if keep.layers is None and len(calls) != depth:
        layers = ", ".join(str(call.layer) for call in calls)
        notes += (f"{len(calls)} attention calls in {depth} layers: attention[n] is call n, of layers {layers}",)
    for number, state in states.items():
        # a finite sum has finite terms, and is had sooner; an infinite one may still have them
        if not bool(torch.isfinite(state.sum()) or torch.isfinite(state).all()):
            where = "enters layer 0" if number == 0 else f"leaves layer {number - 1}"
            raise RegardError(
                f"model {done.name!r}: what {where} holds NaN or infinity, nothing after it means anything"
            )
    contextual, seen = states[depth], own(last)
    if seen is not None and seen is not contextual and not torch.equal(seen, contextual):
        contextual = seen
    more = [number for number, call in enumerate(calls) if call.weights.shape[-1] != longest]
    if more:
        which = ", ".join(map(str, more))
        notes += (f"attention[n] has keys that are no tokens of the text, for n of {which}: all are kept",)
    reported = any(call.kernel == KERNEL for call in calls)
    if (done.capture.comparison.weights or 0.0) > 1e-4 and not reported:
        same = done.capture.comparison.outputs <= 1e-5
        notes += (
            OTHER_WEIGHTS if same else "the weights and outputs differ from the family's own: do not rely on them",
        )
    wide = [state.shape[1] for state in states.values() if state.ndim == 3]
    if wide:
        notes += (f"a token's states are {wide[0]} streams side by side: states are (L, {wide[0]}, M)",)
    if done.capture.contradiction:
        notes += (CONTRARY,)
    if reported:
        notes += (NOTE,) if done.model.dtype.itemsize >= 4 else (NOTE, ROUNDED)
    if done.capture.written_masks:
        notes += ("masks were written out as tensors: this family computes with them",)
    if done.capture.reordered:
        notes += (REORDERED,)

    def chosen(what: str, item: Callable[[Call], Any]) -> Any:
        """One item a call, by layers where they were chosen."""
        numbers = range(len(calls)) if keep.layers is None else sorted(keep.layers)
        return _layers(what, dict(zip(numbers, map(item, calls), strict=True)), depth, lambda _: True, keep)

    status = Status(
        model=done.name,
        kernels=tuple(sorted({call.kernel for call in calls})),
        device=str(done.model.device),
        dtype=str(done.model.dtype).removeprefix("torch."),
        difference=done.capture.comparison.weights,
        rows_compared=done.capture.comparison.rows,
        compared_with=done.capture.comparison.compared_with,
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
        hidden_states=_layers("hidden_states", states, depth + 1, keep.state, keep),
        contextual=contextual,
        logits=own(logits),
        attention=chosen("attention", lambda call: call.weights.crop(n, run, keys(call))),
        values=chosen("values", lambda call: None if call.value is None else call.value[n, :, keys(call)]),
        status=status,
        attention_outputs=chosen(
            "attention_outputs", lambda call: done.attention_outputs[call.path, call.nth].crop(n, run)
        )
        if keep.attention_outputs
        else (),
        names=encoded.names,
    )


def _layers(what: str, items: Mapping[int, Any], size: int, wanted: Any, keep: CaptureOptions) -> Any:
    """One item a layer: a tuple where all were to be kept, else a sequence that refuses the others."""
    if keep.layers is None:
        return tuple(items[n] for n in sorted(items))
    return LayerSubset(what, size, {n: item for n, item in items.items() if wanted(n)})


def _check_length(done: CapturedPass, stack: LayerStack, texts: list[Encoded]) -> None:
    """Refuse a stack whose tokens are not those that were given: with one added, all weights would be off."""
    given, found = max(len(text.tokens) for text in texts), stack.hidden_states[0].shape[1]
    if given != found:
        raise RegardError(
            f"model {done.name!r}: its layers {stack.path!r} have {found} tokens where {given} were given, in states "
            f"of shape {tuple(stack.hidden_states[0].shape)}: it cannot be traced"
        )


def _check_layers(done: CapturedPass, calls: list[Call], depth: int) -> None:
    """Refuse layers that were asked for where not every layer has one attention call of its own number."""
    wanted = done.capture.keep.layers
    if not wanted:
        return
    given = ", ".join(map(str, sorted(wanted)))
    if max(wanted) >= depth:
        raise RegardError(f"layers: given {given}, {done.name} has layers 0 to {depth - 1}")
    if [call.layer for call in calls] != sorted(wanted) or done.capture.calls != depth:
        raise RegardError(
            f"layers: given {given}, but not every layer of {done.name} has one attention call of its own: trace all"
        )
