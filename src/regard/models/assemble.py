"""From what a forward pass of a batch left to the trace of each text, its padding taken away."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.record import Call
from regard.blocks import Block, Unverified
from regard.errors import RegardError
from regard.models.bridge import Watch
from regard.models.embeddings import Parts
from regard.models.layers import Stack
from regard.tokens import Encoded
from regard.trace import PairTrace, Status, Trace

OTHER_WEIGHTS = (
    "the family's own attention function reports weights that its output is not made of; shown are those that it is"
)


@dataclass
class Pass:
    """One forward pass of a batch, and everything that was watched of it.

    last: the base model's last hidden state, and its encoder's, where it has one. parts: one group of embedding parts
    for each sequence that was read.
    """

    name: str
    model: Any
    sources: list[Encoded]
    targets: list[Encoded] | None
    calls: list[Call]
    parts: list[Parts]
    stacks: dict[str, Stack]
    last: dict[str, Tensor]
    logits: Float[Tensor, "B L V"] | None
    watch: Watch
    blocks: dict[tuple[str, int], Block | Unverified]


def trace_of(done: Pass, n: int) -> Trace:
    """The trace of text n of a model that reads one sequence."""
    stack = max(done.stacks.values(), key=lambda each: len(each.states), default=None)
    if stack is None:
        raise RegardError(f"model {done.name!r}: no stack of layers was found around its attention")
    calls = [call for call in done.calls if call.path.startswith(f"{stack.path}.")]
    parts = done.parts[0] if done.parts else Parts()
    trace = _trace(done, n, done.sources[n], calls, parts, stack, done.last.get("last_hidden_state"), done.logits)
    left_out = len(done.calls) - len(calls)
    if left_out:
        trace.status.notes += (f"{left_out} attention calls outside the stack {stack.path!r} are left out",)
    return trace


def pair_of(done: Pass, n: int) -> PairTrace:
    """The traces of text n and its target of an encoder-decoder, cross-attention with the decoder."""
    assert done.targets is not None
    if len(done.stacks) != 2:
        found = ", ".join(done.stacks) or "none"
        raise RegardError(f"model {done.name!r}: needs a stack of encoder and one of decoder layers, found {found}")
    first, second = done.stacks.values()
    crossing = {done.watch.paths[number] for number in done.watch.crossing if number in done.watch.paths}
    parts = [*done.parts, Parts(), Parts()]
    run = slice(0, len(done.sources[n].tokens)), slice(0, len(done.targets[n].tokens))
    own = [call for call in done.calls if call.path.startswith(f"{first.path}.")]
    encoder = _trace(done, n, done.sources[n], own, parts[0], first, done.last.get("encoder_last_hidden_state"), None)
    mine = [call for call in done.calls if call.path.startswith(f"{second.path}.")]
    itself = [call for call in mine if call.path not in crossing]
    last = done.last.get("last_hidden_state")
    decoder = _trace(done, n, done.targets[n], itself, parts[1], second, last, done.logits)
    across = [call for call in mine if call.path in crossing]
    decoder.cross = tuple(call.weights.crop(n, run[1], run[0]) for call in across)
    for weights in decoder.cross:
        weights.offset = None  # of two sequences: distances between them mean nothing, of equal length or not
    decoder.cross_values = tuple(None if call.value is None else call.value[n, :, run[0]] for call in across)
    decoder.cross_blocks = tuple(done.blocks[call.path, call.nth].crop(n, run[1]) for call in across)
    return PairTrace(encoder, decoder)


def _trace(
    done: Pass,
    n: int,
    encoded: Encoded,
    calls: list[Call],
    parts: Parts,
    stack: Stack,
    last: Float[Tensor, "B L M"] | None,
    logits: Float[Tensor, "B L V"] | None,
) -> Trace:
    run = slice(0, len(encoded.tokens))

    def own(batched: Tensor | None) -> Tensor | None:
        return None if batched is None else batched[n, run].clone()

    longest = stack.states[0].shape[1]

    def keys(call: Call) -> slice:
        """Its text's keys; all of them where a family attends to more than the tokens."""
        size = call.weights.shape[-1]
        return run if size == longest else slice(0, size)

    states = tuple(state[n, run].clone() for state in stack.states)
    notes = encoded.notes
    if len(calls) != len(states) - 1:  # two calls a layer (DiffLlama), or layers of another kind between (hybrids)
        layers = ", ".join(str(call.layer) for call in calls)
        notes += (
            f"{len(calls)} attention calls in {len(states) - 1} layers: attention[n] is call n, of layers {layers}",
        )
    for number, state in enumerate(states):
        if not bool(torch.isfinite(state).all()):
            where = "enters layer 0" if number == 0 else f"leaves layer {number - 1}"
            raise RegardError(
                f"model {done.name!r}: what {where} holds NaN or infinity, nothing after it means anything"
            )
    contextual = states[-1] if last is None or torch.equal(last[n, run], states[-1]) else last[n, run].clone()
    more = [number for number, call in enumerate(calls) if call.weights.shape[-1] != longest]
    if more:
        which = ", ".join(map(str, more))
        notes += (f"attention[n] has keys that are no tokens of the text, for n of {which}: all are kept",)
    if (done.watch.difference or 0.0) > 1e-4:
        same = done.watch.output_difference <= 1e-5
        notes += (
            OTHER_WEIGHTS if same else "the weights and outputs differ from the family's own: do not rely on them",
        )
    if done.watch.written_out:
        notes += ("masks were written out as tensors: this family computes with them",)
    status = Status(
        model=done.name,
        kernels=tuple(sorted({call.kernel for call in calls})),
        device=str(done.model.device),
        dtype=str(done.model.dtype).removeprefix("torch."),
        difference=done.watch.difference,
        rows_compared=done.watch.compared,
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
        states=states,
        contextual=contextual,
        logits=own(logits),
        attention=tuple(call.weights.crop(n, run, keys(call)) for call in calls),
        values=tuple(None if call.value is None else call.value[n, :, keys(call)] for call in calls),
        status=status,
        blocks=tuple(done.blocks[call.path, call.nth].crop(n, run) for call in calls),
    )
