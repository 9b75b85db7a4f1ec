"""Check ablations, patches and steering against the model's own eager code with the same thing changed in it."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.capture.interventions.given import Intervention
from regard.capture.interventions.names import ablate, edge, head
from regard.capture.interventions.patch import What, patch
from regard.capture.interventions.steer import steer
from regard.errors import RegardError
from regard.questions.check.changing import AREA, AttentionCall, Changing
from regard.questions.check.claims import VECTORS, Apart, Claim, claim
from regard.questions.check.differences import result_apart
from regard.questions.check.own_code import Changes, OwnPass, changed_pass
from regard.trace.trace import PairTrace, Trace

PATCHED = 2  # attention calls whose edges are ablated, and that are patched


def heads_are_ablated(changing: Changing) -> Iterator[Claim]:
    """Check heads whose outputs are zero, each in a pass of its own and all in one batch."""
    sets: list[tuple[list[Intervention], OwnPass]] = []
    for each in changing.chosen:
        which = _some_head(each)
        ablation: list[Intervention] = [ablate(head(each.layer, which, part=each.part, nth=each.nth))]
        changes = Changes(after={each.number: _silent(which)})
        yield changing.claim("results with a head ablated", _named(each, which), ablation, changes)
        sets.append((ablation, changing.own(changes)))
    worst = Apart(0.0)
    asked = dict(changing.read.reading.asked)
    for number, trace in changing.model.ablated(asked.pop("text", None), [one for one, _ in sets], **asked):
        apart = result_apart(trace, sets[number][1])
        if apart is None:
            raise RegardError("its own code reports no result to compare with")
        worst = max(worst, apart._replace(where=str(sets[number][0][0])), key=lambda each: each.difference)
    said, of, read = "results with heads ablated at once", f"{len(sets)} heads", changing.read
    yield claim(AREA, said, of, worst, read.rounded(VECTORS), changing.rounding, half=read.half)


def edges_are_ablated(changing: Changing) -> Iterator[Claim]:
    """Check edges that are left out of the softmax: in one head, and in all heads of a layer."""
    for each in changing.chosen[:PATCHED]:
        if each.keys < 2:
            raise RegardError("a text of one token has no edge to spare")
        query, which = each.queries - 1, _some_head(each)
        key = int(_held(changing.read.trace, each)[0][which, query].argmax())  # where there is something to lose
        for heads, of in (((which,), f"{_named(each, which)}"), (None, f"{_named(each)}, all heads")):
            cut = edge(query, key, layers=each.layer, heads=heads, part=each.part)
            alike = [call.number for call in changing.calls if (call.part, call.layer) == (each.part, each.layer)]
            changes = Changes(before=dict.fromkeys(alike, _without(heads, query, key, each.heads)))
            yield changing.claim("results with an edge ablated", f"{of}: {query} to {key}", [ablate(cut)], changes)


def states_are_patched(changing: Changing) -> Iterator[Claim]:
    """Check states that leave a layer, taken from another text, and states that a vector is added to."""
    here = changing.ids
    at, source = here.place(), here.other.trace
    states = source.sides[-1].hidden_states
    for layer in _ends(len(here.paths)):
        put = patch("hidden_states", layer=layer, source=source, at=at, part=here.part)
        changes = Changes(layers={here.paths[layer]: _writing(at, states[layer + 1][at])})
        yield here.claim("results with a state patched", f"layer {layer}, token {at}", [put], changes)
    layer, vector = len(here.paths) // 2, states[0][at] - states[0][0]
    added = steer(vector, layer=layer, part=here.part)
    changes = Changes(layers={here.paths[layer]: lambda states: states + vector.to(states)})
    yield here.claim("results with all states steered", f"layer {layer}", [added], changes)


def attention_is_patched(changing: Changing) -> Iterator[Claim]:
    """Check head outputs, values and rows of weights that are taken from another text."""
    here = changing.ids
    source = here.other.trace
    whats: tuple[What, ...] = ("head_outputs", "values", "weights")  # the last is refused where scores have a softcap
    for what in whats:
        for each in here.chosen[:PATCHED]:
            of_keys = what == "values" and each.part == "cross"
            at, which = here.place(0 if of_keys or each.part == "encoder" else -1), _some_head(each)
            maps, values = _held(source, each)
            group = which * len(values) // each.heads
            row, value = maps[which, at if not of_keys else 0].to(values), values[group]
            changes = {
                "head_outputs": Changes(after={each.number: _output_at(at, which, row @ value)}),
                "values": Changes(before={each.number: _value_at(at, group, value[at if what == "values" else 0])}),
                "weights": Changes(after={each.number: _output_by(at, which, row, group)}),
            }[what]
            number = group if what == "values" else which
            put = patch(what, layer=each.layer, source=source, at=at, head=number, part=each.part)
            yield here.claim(f"results with {what} patched", f"{_named(each, number)}, token {at}", [put], changes)


def feed_forwards_are_patched(changing: Changing) -> Iterator[Claim]:
    """Check what a feed-forward block gives, taken from another text's pass of the model's own code."""
    here = changing.ids
    found, stack = here.model._session.layout.feed_forwards(*here.other.encoded), int(here.model.pairs)
    at = here.place()
    for layer in _ends(len(here.paths)):
        if (stack, layer) not in found:
            raise RegardError(f"no module gives what the feed-forward block of layer {layer} adds")
        path, given = f"{here.paths[layer]}.{found[stack, layer]}", list[Tensor]()

        def seen(states: Tensor, given: list[Tensor] = given) -> Tensor:
            given.append(states.clone())  # now: more may be added to it
            return states

        changed_pass(here.model.model, here.other.inputs, Changes(layers={path: seen}))
        if len(given) != 1:
            raise RegardError(f"its own code runs {path} {len(given)} times in a pass")
        vector = given[0].reshape(-1, given[0].shape[-1])[at]
        put = patch("feed_forward", layer=layer, source=here.other.trace, at=at, part=here.part)
        changes = Changes(layers={path: _writing(at, vector)})
        yield here.claim("results with feed_forward patched", f"layer {layer}, token {at}", [put], changes)


def _held(trace: Trace | PairTrace, call: AttentionCall) -> tuple[Float[Tensor, "H L S"], Float[Tensor, "G S E"]]:
    """The weights and values that a trace has of a call."""
    side = trace.sides[-1] if call.part in ("decoder", "cross") else trace.sides[0]
    maps, values = (side.cross, side.cross_values) if call.part == "cross" else (side.attention, side.values)
    value = values[call.layer, call.nth]
    if value is None:
        raise RegardError("the trace does not hold its values")
    return maps[call.layer, call.nth].dense(), value


def _ends(layers: int) -> list[int]:
    return sorted({0, layers // 2, layers - 1})


def _some_head(call: AttentionCall) -> int:
    return (7 * call.layer + 1) % call.heads


def _named(call: AttentionCall, which: int | None = None) -> str:
    of = "" if call.part is None else f"{call.part} "
    return f"{of}layer {call.layer}" + ("" if which is None else f", head {which}")


def _filled(output: Tensor, place: Any, value: Any) -> Tensor:
    output[(slice(None), *place)] = value
    return output


def _silent(which: int) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda output, _: _filled(output, (slice(None), which), 0.0)


def _writing(at: int, vector: Float[Tensor, " M"]) -> Callable[[Tensor], Tensor]:
    """Puts a vector in the place of a token's, of states (B, L, M) or, of experts, (B · L, M)."""

    def change(states: Tensor) -> Tensor:
        changed = states.clone()
        changed.view(-1, states.shape[-1])[at] = vector.to(states)
        return changed

    return change


def _output_at(at: int, which: int, vector: Float[Tensor, " E"]) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda output, _: _filled(output, (at, which), vector.to(output))


def _output_by(at: int, which: int, row: Float[Tensor, " S"], group: int) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda output, value: _filled(output, (at, which), row.to(value) @ value[0, group])


def _value_at(at: int, group: int, vector: Float[Tensor, " E"]) -> Callable[..., tuple[Tensor, Tensor | None]]:
    return lambda value, mask: (_filled(value.clone(), (group, at), vector.to(value)), mask)


def _without(
    heads: tuple[int, ...] | None, query: int, key: int, count: int
) -> Callable[..., tuple[Tensor, Tensor | None]]:
    """An additive mask that takes one key from one query, in some heads or in all."""

    def change(value: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
        cut = value.new_zeros(1, count, query + 1, value.shape[2])
        cut[:, list(heads) if heads is not None else slice(None), query, key] = -torch.inf
        if mask is None:
            return value, cut
        return value, mask[..., : value.shape[2]].expand(-1, count, -1, -1) + cut

    return change
