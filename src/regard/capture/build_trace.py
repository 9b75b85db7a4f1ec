"""Build the trace of each text, without padding, from the captured pass of a batch.

Traces are views of the batch's tensors without copies, so a batch's memory is freed with its last trace. A `_Side` is a
text and the stack of layers that read it. Encoder-decoders have two sides, other models one. `_Calls` selects one text
from a side's attention calls: from self-attention, or for a decoder from cross-attention.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.ablation import CallPatch, HeadAblation
from regard.attention.attention_map import AttentionMap
from regard.attention.recording import Call
from regard.capture.eager_attention import KERNEL, NOTE, ROUNDED
from regard.capture.embeddings import EmbeddingParts
from regard.capture.inputs import ModelInput
from regard.capture.interventions.names import CallNumbering
from regard.capture.options import NO_LAYERS
from regard.capture.state import Capture, LayerStack, computing_dtype
from regard.checks import numbers_there
from regard.errors import RegardError
from regard.text.tokens import Encoded
from regard.trace.attention_output import AttentionOutput, UnverifiedOutput
from regard.trace.layers import CallNumber, Layers
from regard.trace.status import Status
from regard.trace.trace import NONE, PairTrace, Trace

OTHER_WEIGHTS = (
    "The model's attention function reports weights that don't produce its output. regard shows the weights that do."
)
OTHER_OUTPUTS = "Weights and outputs differ from the model's own. Don't rely on them."
CONTRARY = "The model's eager attention sees every token, as shown here. PyTorch's kernel would attend causally."
NO_OUTPUTS = "Attention block outputs were left out, so there are no contributions."
FROM_WITHIN = "Tokens before the first change were not recomputed. Their keys and values are from the unchanged pass."
WHOLE_TEXT = (
    "Tokens before the first change were recomputed, because this model can't reuse their keys and values alone."
)
REUSED = (FROM_WITHIN, WHOLE_TEXT)
# From these differences on, weights or outputs don't match the model's own. Float32 rounding is far below both limits,
# and a misread mask or scale far above.
WEIGHTS_APART, OUTPUTS_APART = 1e-4, 1e-5


@dataclass
class CapturedPass:
    """One forward pass of a batch and everything that was captured in it.

    calls, stacks, attention_outputs: those that traces show. call_ids: of the attention calls, None for joined passes.
    earlier: for a pass that began within the text, the number of tokens before it and a trace with their results.
    notes: for the status of each trace. labels: of a classifier.
    """

    name: str
    model: Any
    sources: list[Encoded]
    targets: list[Encoded] | None
    calls: list[Call]
    stacks: dict[str, LayerStack]
    logits: Float[Tensor, "B ..."] | None
    capture: Capture
    attention_outputs: dict[tuple[str, int], AttentionOutput | UnverifiedOutput]
    call_ids: CallNumbering | None = None
    earlier: tuple[int, Trace] | None = None
    notes: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()


def trace_of(captured: CapturedPass, n: int) -> Trace:
    """Build the trace of text n, for a model that reads one sequence."""
    stacks = list(captured.stacks.values())
    if isinstance(item := captured.sources[n], ModelInput) and item.text:
        # the stack that read the text comes after the one that read its image
        stacks = [stack for stack in stacks if stack.shape[1] == len(item.tokens)][-1:]
    stack = max(stacks, key=lambda stack: stack.count, default=None)
    if stack is None:
        raise RegardError(f"model {captured.name!r}: no stack of layers was found around its attention")
    side, parts = _Side(captured, n, captured.sources, stack), captured.capture.embeddings or [EmbeddingParts()]
    calls = _Calls(side, side, cross=None)
    trace = side.trace(calls, parts[0], captured.capture.last.get("last_hidden_state"), captured.logits)
    left_out = len(captured.calls) - len(calls.calls)
    if left_out:
        trace.status.notes += (f"Attention calls outside the stack {stack.path!r} are left out: {left_out}.",)
    return trace


def pair_of(captured: CapturedPass, n: int) -> PairTrace:
    """Build the traces of text n and its target for an encoder-decoder. The target's trace has the cross-attention."""
    assert captured.targets is not None
    if len(captured.stacks) != 2:
        paths = ", ".join(captured.stacks) or "none"
        raise RegardError(f"model {captured.name!r}: needs a stack of encoder and one of decoder layers, found {paths}")
    first, second = captured.stacks.values()
    source, target = _Side(captured, n, captured.sources, first), _Side(captured, n, captured.targets, second)
    parts = [*captured.capture.embeddings, EmbeddingParts(), EmbeddingParts()]
    last, calls = captured.capture.last.get("encoder_last_hidden_state"), _Calls(source, source, cross=None)
    encoder = source.trace(calls, parts[0], last, None)
    last, calls = captured.capture.last.get("last_hidden_state"), _Calls(target, target, cross=False)
    decoder = target.trace(calls, parts[1], last, captured.logits)
    cross = _Calls(target, source, cross=True)
    for call in cross.calls.values():
        if call.weights.shape[-1] != source.longest:
            raise RegardError(
                f"model {captured.name!r}: {call.path!r} has {call.weights.shape[-1]} keys, but the encoder has "
                f"{source.longest} tokens: it joins self- and cross-attention, so it can't be traced"
            )
    if cross.calls or (cross.made and not captured.capture.keep.attention):
        names = "cross", "cross_values", "cross_attention_outputs"
        decoder.cross, decoder.cross_values, decoder.cross_attention_outputs = cross.of_text(*names)
        changed = decoder.changed_outputs, cross.changed_outputs()
        decoder.changed_outputs = None if None in changed else {**(changed[0] or {}), **(changed[1] or {})}
    return PairTrace(encoder, decoder)


def check_finite(states: Mapping[int, Tensor], name: str) -> None:
    """Check that a model's states, by number, are finite. The error names the first layer with NaN or infinity."""
    for number, state in states.items():
        # fast check first: a finite sum implies finite terms, but finite terms may overflow in the sum
        if not bool(torch.isfinite(state.sum()) or torch.isfinite(state).all()):
            where = "enters layer 0" if number == 0 else f"leaves layer {number - 1}"
            raise RegardError(f"model {name!r}: what {where} holds NaN or infinity, nothing after it means anything")


def check_length(captured: CapturedPass, stack: LayerStack, texts: list[Encoded]) -> None:
    """Check that a stack has as many tokens as the input. If the model added tokens, positions would be wrong."""
    expected, length = max(len(text.tokens) for text in texts), stack.shape[1]
    expected -= 0 if captured.earlier is None else captured.earlier[0]
    if expected != length:
        raise RegardError(
            f"model {captured.name!r}: its layers {stack.path!r} have {length} tokens where {expected} were given, in "
            f"states of shape {stack.shape}: it cannot be traced"
        )


class _Side:
    """Text n of a batch and the stack of layers that read it. An encoder-decoder has two sides.

    run: the text's tokens without padding, as a slice. longest: the number of tokens with padding.
    """

    def __init__(self, captured: CapturedPass, n: int, texts: list[Encoded], stack: LayerStack) -> None:
        check_length(captured, stack, texts)
        self.captured, self.n, self.text, self.stack = captured, n, texts[n], stack
        self.run, self.longest = slice(0, len(self.text.tokens)), stack.shape[1]

    def trace(
        self,
        calls: "_Calls",
        parts: EmbeddingParts,
        last: Float[Tensor, "B L M"] | None,
        logits: Float[Tensor, "B ..."] | None,
    ) -> Trace:
        """Build the text's trace. calls: its self-attention calls. last: the stack's output after a final norm."""
        captured, keep, depth = self.captured, self.captured.capture.keep, self.stack.count - 1
        if keep.layers:
            message, name = f"layers: got {', '.join(map(str, sorted(keep.layers)))}", captured.name
            if max(keep.layers) >= depth:
                raise RegardError(f"{message}, {numbers_there('layer', depth, f'{name} has')}")
            if list(calls.calls) != [(layer, nth) for layer, nth in calls.made if layer in keep.layers]:
                reason = f"which attention calls of {name} belong to them is known only after they are made"
                raise RegardError(f"{message}, but {reason}: trace all")
        n, run = self.n, self.run
        states = {number: state[n, run] for number, state in self.stack.hidden_states.items()}
        check_finite(states, captured.name)
        last_hidden_state = states[depth]
        if last is not None and last.shape[1] != self.longest:  # a decoder with learned queries, such as DETR's
            reason = f"its layers {self.stack.path!r} have {self.longest} tokens and its result {last.shape[1]}"
            raise RegardError(f"model {captured.name!r}: {reason}: it cannot be traced")
        if last is not None and not torch.equal(last[n, run], last_hidden_state):
            last_hidden_state = last[n, run]  # after a final norm
        own_logits = None if logits is None else logits[n] if logits.ndim == 2 else logits[n, run]
        if captured.earlier is not None:
            past, plain = captured.earlier
            last_hidden_state = torch.cat([plain.last_hidden_state[:past], last_hidden_state])
            if own_logits is not None and own_logits.ndim > 1:
                assert plain.logits is not None
                own_logits = torch.cat([plain.logits[:past], own_logits])
        embeddings = {name: part[n, run] for name, part in parts.named.items()}
        attention, values, attention_outputs = calls.of_text("attention", "values", "attention_outputs")
        model, comparison = captured.model, captured.capture.comparison
        return Trace(
            text=self.text.text,
            tokens=self.text.tokens,
            token_embeddings=embeddings.get("token_embeddings"),
            position_embeddings=embeddings.get("position_embeddings"),
            segment=embeddings.get("segment"),
            input=None if parts.input is None else parts.input[n, run],
            hidden_states=tuple(states[number] for number in sorted(states))
            if keep.layers is None
            else Layers("hidden_states", depth + 1, {k: states[k] for k in states if keep.state(k)}),
            last_hidden_state=last_hidden_state,
            logits=own_logits,
            attention=attention,
            values=values,
            status=Status(
                model=captured.name,
                kernels=tuple(sorted({call.kernel for call in calls.calls.values()})),
                device=str(model.device),
                dtype=computing_dtype(model)[1],
                difference=comparison.weights,
                rows_compared=comparison.rows,
                compared_with=comparison.compared_with,
                embedding_difference=parts.difference(),
                unknown=self.text.unknown,
                dropped=self.text.dropped,
                notes=(*self.text.notes, *captured.notes, *self._notes(calls, states)),
            ),
            attention_outputs=attention_outputs,
            names=self.text.names,
            changed_outputs=calls.changed_outputs(),
            patches=self.text.patches if isinstance(self.text, ModelInput) else None,
            turns=self.text.turns,
            labels=() if own_logits is None or own_logits.shape[-1] != len(captured.labels) else captured.labels,
        )

    def _notes(self, calls: "_Calls", states: Mapping[int, Tensor]) -> Iterator[str]:
        """Yield notes for the status: what was left out, which layers have attention, and model peculiarities."""
        capture, depth, recorded = self.captured.capture, calls.depth, list(calls.calls.values())
        keep, model, comparison = capture.keep, self.captured.model, capture.comparison
        if keep.layers == NO_LAYERS:
            yield "No layers were kept, so no weights were checked."
        elif keep.layers is not None:
            yield f"The trace has only layers {', '.join(map(str, sorted(keep.layers)))} of {depth}."
        if not keep.attention:
            yield "No attention was kept, so no weights were checked."
        if not keep.logits and model.get_output_embeddings() is not None:
            yield "Logits were left out."
        if not keep.attention_outputs and keep.attention:
            yield NO_OUTPUTS
        counts = Counter(layer for layer, _ in calls.made)
        if len(counts) < depth:  # hybrids
            yield f"Layers with attention: {', '.join(map(str, sorted(counts)))} (of {depth})."
        if several := ", ".join(str(layer) for layer, count in sorted(counts.items()) if count > 1):  # DiffLlama
            yield (
                f"Layers {several} call attention several times: attention[n] is the first call, attention[n, 1] the "
                "second."
            )
        longer = [layer for (layer, _), call in calls.calls.items() if call.weights.shape[-1] != self.longest]
        if longer:
            layers = ", ".join(map(str, dict.fromkeys(longer)))
            yield f"In layers {layers}, some keys are not tokens of the text. The weights include them."
        reported = any(call.kernel == KERNEL for call in recorded)
        if (comparison.weights or 0.0) > WEIGHTS_APART and not reported:
            yield OTHER_WEIGHTS if comparison.outputs <= OUTPUTS_APART else OTHER_OUTPUTS
        streams = next((state.shape[1] for state in states.values() if state.ndim == 3), None)
        if streams is not None:
            yield f"Each token has {streams} residual streams, so hidden states have shape (L, {streams}, M)."
        if capture.contradiction:
            yield CONTRARY
        if reported:
            yield NOTE
            if computing_dtype(model)[0].itemsize < 4:
                yield ROUNDED
        if keep.written_masks:
            yield "Masks are stored as tensors, because this model computes with them."


class _Calls:
    """A side's calls of one kind, self-attention or cross-attention, by (layer, n-th call of the layer).

    depth: the number of layers. made: the keys of all calls, including those that weren't kept.
    """

    def __init__(self, side: _Side, keys: _Side, *, cross: bool | None) -> None:
        """Find a side's calls. keys: the side they attend to. cross: whether that is the other side; None for all."""
        captured, self._side, self._keys, self._cross = side.captured, side, keys, bool(cross)
        counts: Counter[int] = Counter()
        numbers: dict[tuple[str, int], CallNumber] = {}
        for (path, nth), layer in side.stack.calls.items():
            if cross is None or (path in captured.capture.cross_paths) == cross:
                numbers[path, nth] = layer, counts[layer]
                counts[layer] += 1
        self.depth = side.stack.count - 1
        # If no layer is kept, some layers may not have run, so it is unknown which of them have attention.
        nothing = captured.capture.keep.layers == NO_LAYERS
        self.made = tuple((n, 0) for n in range(self.depth)) if nothing else tuple(numbers.values())
        self.calls = {numbers[call.path, call.nth]: call for call in captured.calls if (call.path, call.nth) in numbers}

    def of_text(self, *names: str) -> tuple[Any, Any, Any]:
        """Return the text's maps, values and attention outputs for a trace. names: their attributes in the trace.

        The outputs are None if they weren't kept.
        """
        captured, n, run = self._side.captured, self._side.n, self._side.run
        keep = captured.capture.keep
        maps: dict[CallNumber, AttentionMap] = {}
        values: dict[CallNumber, Tensor | None] = {}
        outputs: dict[CallNumber, AttentionOutput | UnverifiedOutput] = {}
        for number, call in self.calls.items():
            size = call.weights.shape[-1]  # number of keys; padding isn't cropped if there are other keys than tokens
            keys = self._keys.run if size == self._keys.longest else slice(0, size)
            weights = call.weights.crop(n, run, keys)
            if self._cross:
                weights.offset = None  # distances between two sequences have no meaning
            if keep.statistics is not None:  # for texts without padding, they were computed with the call
                weights.keep_statistics(keep.statistics, len(captured.calls))
            maps[number] = weights
            values[number] = None if call.value is None else call.value[n, :, keys]
            if keep.attention_outputs:
                outputs[number] = captured.attention_outputs[call.path, call.nth].crop(n, run)
        kinds: tuple[dict[CallNumber, Any], ...] = (maps, values, outputs)
        by_layer = [Layers(name, self.depth, kind, made=self.made) for name, kind in zip(names, kinds, strict=True)]
        return by_layer[0], by_layer[1], by_layer[2] if keep.attention_outputs else NONE

    def changed_outputs(self) -> dict[tuple[bool, int], Tensor] | None:
        """Return the head outputs of calls with ablated or patched heads. None if they weren't kept."""
        changed: dict[tuple[bool, int], Tensor] = {}
        for (layer, _), call in self.calls.items():
            if any(isinstance(ablation, (HeadAblation, CallPatch)) for ablation in call.ablations):
                if call.output is None:
                    return None
                changed[self._cross, layer] = call.output[self._side.n, :, self._side.run]
        return changed
