"""Take from traces the rows that a patch puts into a run: what they had at its place, or their mean."""

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.kernels import dispatch
from regard.capture.interventions.names import Part
from regard.capture.interventions.patch import Patch
from regard.capture.interventions.places import tokens_at, written
from regard.errors import RegardError, control_name
from regard.text.tokens import shortened
from regard.trace.layer_subset import calls_made
from regard.trace.trace import PairTrace, Trace, asks_for_cross_attention

# The heads' outputs that were computed of a trace: of (layer, whether of cross-attention).
_outputs: WeakKeyDictionary[Trace, dict[tuple[int, bool], Tensor]] = WeakKeyDictionary()

FeedForward = Callable[[Trace | PairTrace, Part | None, int], Float[Tensor, "L M"]]


def rows_of(patch: Patch, count: int, size: int, feed_forward: FeedForward) -> Float[Tensor, "n k w"]:
    """The rows that a patch puts in, (heads or 1, positions or 1, width).

    count: how many positions are patched. size: how many keys they have, for weights. feed_forward: gives the
    feed-forward outputs that a trace had, which traces do not hold.
    """
    if patch.sources is None:
        return torch.zeros(1, 1, 1)
    rows = [_patch_rows_from_source(patch, source, count, size, feed_forward) for source in patch.sources]
    shapes = {tuple(each.shape[::2]) for each in rows}
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
        alike = control_name("at", "give at= and source_at= of as many tokens")
        raise RegardError(
            f"patch: {written(patch.at)} is {count} tokens, in the source {shortened(at_text.text)} {where} is "
            f"{len(tokens)}: they cannot be aligned, {alike}"
        )
    index = torch.tensor(tokens)
    if patch.what == "hidden_states":
        return side.hidden_states[patch.state][index.to(side.last_hidden_state.device)][None]
    assert isinstance(patch.layer, int)
    if patch.what == "feed_forward":
        found = feed_forward(source, patch.part, patch.layer)
        return found[index.to(found.device)][None]
    cross = patch.part == "cross"
    maps = side.cross if cross else side.attention
    if cross and not len(maps):
        raise RegardError('source: it has no cross-attention, part="cross" needs the pair of an encoder-decoder')
    several = [nth for layer, nth in calls_made(maps) if layer == patch.layer]
    if len(several) > 1:
        raise RegardError(
            f"patch: layer {patch.layer} makes {len(several)} attention calls, its heads cannot be patched"
        )
    if patch.what == "values":
        values = (side.cross_values if cross else side.values)[patch.layer]
        if values is None:
            raise RegardError(f"source: it does not hold the values of layer {patch.layer}")
        rows = values[:, index.to(values.device)]
    elif patch.what == "weights":
        weights = maps[patch.layer]
        if weights.shape[-1] != size:
            raise RegardError(
                f"patch: rows of weights need as many keys: the source has {weights.shape[-1]}, this text {size}"
            )
        rows = weights[:, index.to(weights.device)]
    else:
        outputs = head_outputs(side, patch.layer, part="cross" if cross else None)
        rows = outputs[:, index.to(outputs.device)]
    if patch.head is None:
        return rows
    if patch.head >= rows.shape[0]:
        what = "key heads" if patch.what == "values" else "heads"
        raise RegardError(f"patch: head {patch.head} is out of range, the source has {what} 0 to {rows.shape[0] - 1}")
    return rows[patch.head : patch.head + 1]


def head_outputs(trace: Trace, layer: int, *, part: Part | None = None) -> Float[Tensor, "H L E"]:
    """The outputs of a layer's heads in a trace, weights @ values, by the kernel that computed them there.

    part: "cross" for those of a decoder's cross-attention, None for those of attention among its own tokens.
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
        raise RegardError(f"source: it does not hold the values of layer {layer}")
    elif changed is None and any(note.startswith(("ablated: ", "patched: ")) for note in trace.status.notes):
        raise RegardError("source: a saved trace does not hold the outputs of heads that were ablated or patched in it")
    else:
        with torch.no_grad():
            output = dispatch.compute(weights.query, weights.key, values[None], weights.rule).output[0]
    known[layer, cross] = output
    return output


def _sides_of_patch_source(source: Trace | PairTrace, part: Part | None) -> tuple[Trace, Trace]:
    """(the trace whose tokens are queries, the one whose tokens are keys) of a part."""
    if isinstance(source, Trace):
        if part == "cross":
            raise RegardError('source: given the trace of one text, part="cross" needs the pair of an encoder-decoder')
        return source, source
    if part is None:
        raise RegardError("source: given the pair of an encoder-decoder, this model reads a single text")
    if part == "cross":
        return source.decoder, source.encoder
    side = source.encoder if part == "encoder" else source.decoder
    return side, side


def check_patch_source_states(found: Sequence[Any], source: Trace, name: str) -> None:
    """Refuse a source whose states are not those that running its tokens again gives."""
    for own, again in zip(source.hidden_states, found, strict=False):
        scale = max(1.0, float(own.abs().max()))
        # padding and other kernels round otherwise; other weights, or an intervention, show far beyond that
        if own.shape != again.shape or not float((own - again.to(own)).abs().max()) <= 1e-3 * scale:
            raise RegardError(
                f"source: traces do not hold feed-forward outputs, and {name} gives other states to "
                f"{shortened(source.text)}: it was traced with interventions, or by another model"
            )
