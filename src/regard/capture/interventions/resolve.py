"""Resolve a user's interventions to changes of attention calls and states of a pass."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.ablation import CallPatch, EdgeAblation, HeadAblation, What
from regard.attention.attention_map import AttentionMap
from regard.attention.kernels import dispatch
from regard.capture.interventions.ablation import CallChange
from regard.capture.interventions.activations import OF_HEADS, Patch, Steer
from regard.capture.interventions.names import OF, PARTS, Ablate, Edge, Head, Part, tokens_at, written
from regard.capture.interventions.states import Stacks, StateChange
from regard.checks import numbers_there
from regard.errors import RegardError, control_name
from regard.text.tokens import Encoded, shortened
from regard.text.words import Place, Word
from regard.trace.trace import PairTrace, Trace, asks_for_cross_attention

# The computed head outputs of each trace, by (layer, whether it is cross-attention).
_outputs: WeakKeyDictionary[Trace, dict[tuple[int, bool], Tensor]] = WeakKeyDictionary()

FeedForward = Callable[[Trace | PairTrace, Part | None, int], Float[Tensor, "L M"]]


def rows_of(patch: Patch, count: int, size: int, feed_forward: FeedForward) -> Float[Tensor, "n k w"]:
    """Return the rows that a patch inserts, (heads or 1, positions or 1, width).

    count: the number of patched positions. size: the number of keys, for weights. feed_forward: computes the
    feed-forward outputs of a trace, because traces don't store them.
    """
    if patch.sources is None:
        return torch.zeros(1, 1, 1)
    rows = [_patch_rows_from_source(patch, source, count, size, feed_forward) for source in patch.sources]
    shapes = {tuple(row.shape[::2]) for row in rows}
    if len(shapes) > 1:
        raise RegardError(f"source: the traces are of different models: {' and '.join(map(str, sorted(shapes)))}")
    return rows[0] if len(rows) == 1 else torch.stack(rows).mean(0)


def _patch_rows_from_source(
    patch: Patch, source: Trace | PairTrace, count: int, size: int, feed_forward: FeedForward
) -> Float[Tensor, "n k w"]:
    side, keys_of = _sides_of_patch_source(source, patch.part)
    at_text = keys_of if patch.what == "values" else side
    places = patch.at if patch.source_at is None else patch.source_at
    name = "source" if patch.source_at is None else control_name("source_at", "source_at")
    tokens = tokens_at(name, at_text.text, at_text.tokens, places)
    if len(tokens) != count:
        where = "all positions" if places is None else written(places)
        alike = control_name("at", "pass at= and source_at= with as many tokens")
        raise RegardError(
            f"patch: {written(patch.at)} is {count} tokens, in the source {shortened(at_text.text)} {where} is "
            f"{len(tokens)}: they cannot be aligned, {alike}"
        )
    rows: Any
    if patch.what == "hidden_states":
        rows = side.hidden_states[patch.state][None]
    elif patch.what == "feed_forward":
        assert isinstance(patch.layer, int)
        rows = feed_forward(source, patch.part, patch.layer)[None]
    else:
        rows = _head_rows_from_source(patch, side, size)
    rows = rows[:, torch.tensor(tokens).to(rows.device)]
    if patch.head is None:
        return rows
    if patch.head >= rows.shape[0]:
        kind = "key heads" if patch.what == "values" else "heads"
        raise RegardError(f"patch: head {patch.head} is out of range: the source has {kind} 0 to {rows.shape[0] - 1}")
    return rows[patch.head : patch.head + 1]


def _head_rows_from_source(patch: Patch, side: Trace, size: int) -> Tensor | AttentionMap:
    """Return the values, weights or outputs of all heads and tokens of a patch's layer."""
    assert isinstance(patch.layer, int)
    cross = patch.part == "cross"
    maps = side.cross if cross else side.attention
    if cross and not len(maps):
        raise RegardError('source: it has no cross-attention: part="cross" needs the trace of an encoder-decoder')
    several = [nth for layer, nth in maps.made if layer == patch.layer]
    if len(several) > 1:
        raise RegardError(
            f"patch: layer {patch.layer} makes {len(several)} attention calls, so its heads cannot be patched"
        )
    if patch.what == "values":
        values = (side.cross_values if cross else side.values)[patch.layer]
        if values is None:
            raise RegardError(f"source: the trace has no values for layer {patch.layer}")
        return values
    if patch.what == "head_outputs":
        return head_outputs(side, patch.layer, part="cross" if cross else None)
    weights = maps[patch.layer]
    if weights.shape[-1] != size:
        raise RegardError(
            f"patch: rows of weights need as many keys: the source has {weights.shape[-1]}, this text {size}"
        )
    return weights


def head_outputs(trace: Trace, layer: int, *, part: Part | None = None) -> Float[Tensor, "H L E"]:
    """Compute the outputs of a layer's heads in a trace, weights @ values, with the same kernel as in the traced pass.

    part: "cross" for a decoder's cross-attention, None for self-attention.
    """
    cross, known = asks_for_cross_attention("head_outputs", part), _outputs.setdefault(trace, {})
    if (layer, cross) in known:
        return known[layer, cross]
    maps, all_values = (trace.cross, trace.cross_values) if cross else (trace.attention, trace.values)
    weights, values = maps[layer], all_values[layer]
    changed = trace.changed_outputs
    if changed is not None and (cross, layer) in changed:
        output = changed[cross, layer]
    elif values is None:
        raise RegardError(f"source: the trace has no values for layer {layer}")
    elif changed is None and any(note.startswith(("ablated: ", "patched: ")) for note in trace.status.notes):
        raise RegardError("source: a saved trace doesn't have the outputs of heads that were ablated or patched")
    else:
        with torch.no_grad():
            output = dispatch.compute(weights.query, weights.key, values[None], weights.rule).output[0]
    known[layer, cross] = output
    return output


def _sides_of_patch_source(source: Trace | PairTrace, part: Part | None) -> tuple[Trace, Trace]:
    """Return two traces, (queries, keys): those whose tokens are the part's queries and its keys."""
    if isinstance(source, Trace):
        if part == "cross":
            raise RegardError('source: part="cross" needs the trace of an encoder-decoder, with both of its texts')
        return source, source
    if part is None:
        raise RegardError("source: got the trace of an encoder-decoder, but this model reads a single text")
    if part == "cross":
        return source.decoder, source.encoder
    side = source.encoder if part == "encoder" else source.decoder
    return side, side


def check_patch_source_states(states: Sequence[Any], source: Trace, name: str) -> None:
    """Check that a source trace has the same states as a new run of its tokens."""
    for state, again in zip(source.hidden_states, states, strict=False):
        scale = max(1.0, float(state.abs().max()))
        # padding and kernels only affect rounding; other weights or an intervention make far larger differences
        if state.shape != again.shape or not float((state - again.to(state)).abs().max()) <= 1e-3 * scale:
            raise RegardError(
                f"source: traces do not hold feed-forward outputs, and {name} gives other states to "
                f"{shortened(source.text)}: it was traced with interventions, or by another model"
            )


Intervention = Ablate | Patch | Steer


@dataclass
class Changes:
    """Changes to a pass, in list order, to its attention calls and to its states."""

    calls: list[CallChange] = field(default_factory=list)
    states: list[StateChange] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.calls or self.states)


@dataclass(frozen=True)
class Pass:
    """The pass, of one text of a batch, for which interventions are resolved.

    target: for an encoder-decoder, the text of its decoder, else None. stacks: the model's stacks of layers, empty if
    they aren't needed. feed_forward: computes the feed-forward outputs of a trace.
    """

    source: Encoded
    target: Encoded | None
    number: int
    name: str
    stacks: Stacks
    feed_forward: FeedForward

    def check_part(self, part: Part | None) -> None:
        """Check that a part is given for encoder-decoders and for no other model."""
        if self.target is None and part is not None:
            raise RegardError(f"interventions: {self.name} is not an encoder-decoder: leave out part={part!r}")
        if self.target is not None and part is None:
            ways = ", ".join(f"part={name!r}" for name in PARTS)
            raise RegardError(f"interventions: {self.name} is an encoder-decoder: choose the attention, one of {ways}")

    def queries(self, part: Part | None) -> Encoded:
        """Return the text whose tokens are the queries of a part's attention."""
        return self.source if self.target is None or part == "encoder" else self.target

    def keys(self, part: Part | None) -> Encoded:
        """Return the text whose tokens are the keys of a part's attention."""
        return self.source if self.target is None or part in ("encoder", "cross") else self.target

    def stack(self, layer: Any, part: Part | None) -> int:
        """Return the number of a part's stack after checking that the layer exists in it."""
        stack = 1 if part == "decoder" and len(self.stacks) > 1 else 0
        count = self.stacks[stack][1] if stack < len(self.stacks) else 0
        if layer != "input" and layer >= count:
            available = numbers_there("layer", count, f"{self.name} has")
            raise RegardError(f"interventions: layer {layer} is out of range, {available}{OF[part]}")
        return stack


def resolve(interventions: Sequence[Any], of: Pass) -> Changes:
    """Resolve interventions, in order, to changes of a forward pass."""
    changes = Changes()
    for intervention in interventions:
        of.check_part(intervention.target.part if isinstance(intervention, Ablate) else intervention.part)
        if isinstance(intervention, Ablate):
            changes.calls.append(_ablation(intervention.target, of))
        elif isinstance(intervention, Steer):
            stack, positions = of.stack(intervention.layer, intervention.part), None
            if intervention.at is not None:
                text = of.queries(intervention.part)
                positions = tokens_at("at", text.text, text.tokens, intervention.at)
            push = (intervention.vector * intervention.strength)[None]
            changes.states.append(StateChange(stack, intervention.state, of.number, positions, push, adds=True))
        else:
            _add_patch(intervention, of, changes)
    return changes


def needs_stacks(interventions: Sequence[Any]) -> bool:
    """Return whether any intervention changes states. Then the model's stacks must be known before the pass."""
    return any(
        isinstance(intervention, Steer) or (isinstance(intervention, Patch) and intervention.what not in OF_HEADS)
        for intervention in interventions
    )


def _ablation(target: Head | Edge, of: Pass) -> CallChange:
    batch = (of.number,)
    if isinstance(target, Head):
        return CallChange(target.part, (target.layer,), HeadAblation(heads=(target.head,), batch=batch), target.nth)
    queries = _tokens_of_edge_end(of.queries(target.part), target.query)
    keys = _tokens_of_edge_end(of.keys(target.part), target.key)
    change = EdgeAblation(heads=target.heads, queries=queries, keys=keys, batch=batch)
    return CallChange(target.part, target.layers, change)


def _add_patch(patch: Patch, of: Pass, changes: Changes) -> None:
    text = of.keys(patch.part) if patch.what == "values" else of.queries(patch.part)
    positions = tokens_at("at", text.text, text.tokens, patch.at)
    if patch.what not in OF_HEADS:
        stack = of.stack(patch.layer, patch.part)
        rows = rows_of(patch, len(positions), 0, of.feed_forward)[0]
        fed = patch.what == "feed_forward"
        assert not fed or isinstance(patch.layer, int)
        number = int(patch.layer) if fed else patch.state
        changes.states.append(StateChange(stack, number, of.number, positions, rows, feed_forward=fed))
        return
    rows = rows_of(patch, len(positions), len(of.keys(patch.part).tokens), of.feed_forward)
    assert isinstance(patch.layer, int)
    heads = None if patch.head is None else (patch.head,)
    change = CallPatch(what=cast(What, patch.what), rows=rows, positions=positions, heads=heads, batch=(of.number,))
    changes.calls.append(CallChange(patch.part, (patch.layer,), change))


def _tokens_of_edge_end(text: Encoded, position: Place) -> tuple[int, ...]:
    """Return the token numbers at one end of an edge. For a word, these are all its occurrences."""
    if isinstance(position, Word):  # words from `removal` have tokens but no characters
        return tuple(sorted(set(position.tokens)))
    return tuple(sorted(tokens_at("interventions", text.text, text.tokens, (position,))))


def check_interventions(interventions: object) -> None:
    """Check, before a forward pass, that `interventions` is a list of interventions."""
    if not isinstance(interventions, Sequence) or isinstance(interventions, str):
        kind = type(interventions).__name__
        raise RegardError(f"interventions: got {kind}, expected a list of interventions: [regard.ablate(...)]")
    for intervention in interventions:
        name = type(intervention).__name__
        if isinstance(intervention, (Head, Edge)):
            call = f"regard.{name.lower()}(...)"
            raise RegardError(f"interventions: got {call}, expected regard.ablate({call})")
        if not isinstance(intervention, (Ablate, Patch, Steer)):
            needs = "regard.ablate(...), regard.patch(...) or regard.steer(...)"
            raise RegardError(f"interventions: got {name}, expected {needs}")


def intervention_names_tokens(intervention: Intervention) -> bool:
    """Return whether an intervention refers to tokens of a text. It can't be applied to windows of the text then."""
    if isinstance(intervention, Ablate):
        return isinstance(intervention.target, Edge)
    return isinstance(intervention, Patch) or intervention.at is not None
