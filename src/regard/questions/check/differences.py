"""Measure how far a trace is from what a model's own code reports: weights, states, what it says at the end."""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.explain.wording import numbered
from regard.questions.check.claims import Apart
from regard.questions.check.own_code import OwnPass
from regard.trace.layer_subset import call_numbers
from regard.trace.trace import PairTrace, Trace

NONE = Apart(0.0)
SHAPES = Apart(float("inf"), "their shapes differ")


def weights_apart(trace: Trace | PairTrace, own: OwnPass) -> Apart | None:
    """Find the largest difference of any weight; None where the model's code reports none to compare with."""
    found: list[Apart] = []
    for side, maps, queries, keys in _attention_of_sides(trace):
        theirs = own.weights.get(side, [])
        ours = [(maps[call], call) for call in call_numbers(maps)]
        if not theirs:
            continue
        if ours and len(ours) % len(theirs) == 0:  # several calls a layer, of which one is reported
            ours = ours[:: len(ours) // len(theirs)]
        if len(ours) != len(theirs):
            return Apart(float("inf"), f"{len(ours)} layers have weights here, {len(theirs)} in its own code")
        for (mine, (layer, _)), reported in zip(ours, theirs, strict=True):
            given = reported[0] if reported.ndim == 4 else reported
            if tuple(mine.shape) != tuple(given.shape):
                return SHAPES
            apart = (mine.dense() - given.to(mine.device)).abs()
            head, row, column = _place_of_largest(apart)
            part = {"": "", "cross_": " of the cross-attention"}.get(side, f" of the {side.rstrip('_')}")
            tokens = f"{_token(queries, row)} to {_token(keys, column)}"
            found.append(Apart.of(float(apart[head, row, column]), f"layer {layer}, head {head}{part}: {tokens}"))
    return max(found, key=lambda each: each.difference) if found else None


def own_weights_apart(one: OwnPass, other: OwnPass) -> float | None:
    """Find the largest difference of any weight between two passes of a model's own code."""
    differences = [
        float((mine - theirs).abs().max())
        for side, layers in one.weights.items()
        for mine, theirs in zip(layers, other.weights.get(side, ()), strict=False)
    ]
    return max(differences, default=None)


def states_apart(trace: Trace | PairTrace, own: OwnPass) -> Apart | None:
    """Find the largest difference of what enters any layer; None where the model reports other states than these."""
    found: list[Apart] = []
    for side, each in zip(_sides(trace), trace.sides, strict=True):
        theirs = own.states.get(side)
        if theirs is None or len(theirs) != len(each.hidden_states):
            continue
        for n in range(len(theirs) - 1):
            mine, given = each.hidden_states[n], theirs[n]
            if given.shape[1:] != mine.shape:
                return SHAPES
            part = f" of the {side.rstrip('_')}" if side else ""
            where = f"what enters layer {n}{part}"
            found.append(vectors_apart(mine, given[0], where, each))
    return max(found, key=lambda each: each.difference) if found else None


def own_states_apart(one: OwnPass, other: OwnPass) -> float | None:
    """Find the largest difference of states between two passes of a model's own code."""
    differences = [
        distance(mine, theirs)
        for side, layers in one.states.items()
        for mine, theirs in zip(layers[:-1], other.states.get(side, [])[:-1], strict=False)
    ]
    return max(differences, default=None)


def result_apart(trace: Trace | PairTrace, own: OwnPass) -> Apart | None:
    """Find the largest difference of the last states and of the logits; None where there is nothing to compare with."""
    last = trace.sides[-1]
    found: list[Apart] = []
    if own.last is not None and len(own.last[0]) == len(last.contextual):
        found.append(vectors_apart(last.contextual, own.last[0], "the last state", last))
    if own.logits is not None and last.logits is not None:
        found.append(vectors_apart(last.logits, own.logits[0], "the logits", last))
    return max(found, key=lambda each: each.difference) if found else None


def vectors_apart(ours: Float[Tensor, "L K"], theirs: Float[Tensor, "L K"], what: str, trace: Trace) -> Apart:
    """Find the largest difference of vectors, a part of their largest number where that is above 1, and its token."""
    if ours.shape != theirs.shape:
        return SHAPES
    apart = (ours.to(theirs.device) - theirs).abs()
    row, *_ = _place_of_largest(apart)
    return Apart.of(distance(ours, theirs), f"{what} at {_token(trace, row)}")


def distance(ours: Float[Tensor, "..."], theirs: Float[Tensor, "..."]) -> float:
    """Return the largest difference, as a part of the largest number where that is above 1; infinity for NaN."""
    apart = float((ours.to(theirs.device) - theirs).abs().max()) / max(1.0, float(theirs.abs().max()))
    return apart if apart == apart else float("inf")


def _attention_of_sides(trace: Trace | PairTrace) -> Iterator[tuple[str, Any, Trace, Trace]]:
    """(name of the side, its maps, what the queries are of, what the keys are of)."""
    if isinstance(trace, Trace):
        yield "", trace.attention, trace, trace
        return
    yield "encoder_", trace.encoder.attention, trace.encoder, trace.encoder
    yield "decoder_", trace.decoder.attention, trace.decoder, trace.decoder
    yield "cross_", trace.decoder.cross, trace.decoder, trace.encoder


def _sides(trace: Trace | PairTrace) -> tuple[str, ...]:
    return ("",) if isinstance(trace, Trace) else ("encoder_", "decoder_")


def _place_of_largest(apart: Float[Tensor, "..."]) -> tuple[int, ...]:
    flat = int(torch.nan_to_num(apart, nan=torch.inf).flatten().argmax())
    return tuple(int(n) for n in torch.unravel_index(torch.tensor(flat), apart.shape))


def _token(trace: Trace, number: int) -> str:
    return numbered(trace.tokens, number) if number < len(trace.tokens) else f"key {number}"
