"""Translate the interventions that a person names into what is done to attention calls and to states of a pass."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from regard.attention.ablation import EdgeAblation, HeadAblation
from regard.attention.patches import CallPatch, What
from regard.capture.interventions.ablation import CallChange
from regard.capture.interventions.names import OF, PARTS, Ablate, Edge, Head, Part
from regard.capture.interventions.patch import OF_HEADS, Patch
from regard.capture.interventions.places import tokens_at
from regard.capture.interventions.sources import FeedForward, rows_of
from regard.capture.interventions.states import Stacks, StateChange
from regard.capture.interventions.steer import Steer
from regard.checks import numbers_there
from regard.errors import RegardError
from regard.text.tokens import Encoded
from regard.text.words import Place, Word

Intervention = Ablate | Patch | Steer


@dataclass
class Changes:
    """What is done to a pass: calls, to its attention calls; states, to its states. Each in list order."""

    calls: list[CallChange] = field(default_factory=list)
    states: list[StateChange] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.calls or self.states)


@dataclass(frozen=True)
class Pass:
    """What interventions are translated for: text number of a batch, and its model.

    target: of an encoder-decoder, the text that its decoder reads; None for any other model. stacks: of the model's
    layers, empty where they are not needed. feed_forward: gives the feed-forward outputs that a trace had.
    """

    source: Encoded
    target: Encoded | None
    number: int
    name: str
    stacks: Stacks
    feed_forward: FeedForward

    def check_part(self, part: Part | None) -> None:
        """Refuse a part that is missing, or not wanted."""
        if self.target is None and part is not None:
            raise RegardError(f"interventions: {self.name} is not an encoder-decoder, leave out part={part!r}")
        if self.target is not None and part is None:
            ways = ", ".join(f"part={each!r}" for each in PARTS)
            raise RegardError(
                f"interventions: {self.name} is an encoder-decoder: say which attention is meant, one of {ways}"
            )

    def queries(self, part: Part | None) -> Encoded:
        """The text whose tokens are a part's queries."""
        return self.source if self.target is None or part == "encoder" else self.target

    def keys(self, part: Part | None) -> Encoded:
        """The text whose tokens are a part's keys."""
        return self.source if self.target is None or part in ("encoder", "cross") else self.target

    def stack(self, layer: Any, part: Part | None) -> int:
        """The number of a part's stack of layers. Refuses a layer that it does not have."""
        stack = 1 if part == "decoder" and len(self.stacks) > 1 else 0
        count = self.stacks[stack][1] if stack < len(self.stacks) else 0
        if layer != "input" and layer >= count:
            there = numbers_there("layer", count, f"{self.name} has")
            raise RegardError(f"interventions: layer {layer} is out of range, {there}{OF[part]}")
        return stack


def resolve(interventions: Sequence[Any], of: Pass) -> Changes:
    """Translate interventions, in order."""
    changes = Changes()
    for given in interventions:
        each = checked(given)
        if isinstance(each, Ablate):
            of.check_part(each.target.part)
            changes.calls.append(_ablation(each, of))
        elif isinstance(each, Steer):
            of.check_part(each.part)
            stack, positions = of.stack(each.layer, each.part), None
            if each.at is not None:
                text = of.queries(each.part)
                positions = tokens_at("at", text.text, text.tokens, each.at)
            push = (each.vector * each.strength)[None]
            changes.states.append(StateChange(stack, each.state, of.number, positions, push, adds=True))
        else:
            of.check_part(each.part)
            _add_patch(each, of, changes)
    return changes


def needs_stacks(interventions: Sequence[Any]) -> bool:
    """Whether interventions change states, so that the model's stacks of layers have to be known before the pass."""
    return any(
        isinstance(each, Steer) or (isinstance(each, Patch) and each.what not in OF_HEADS)
        for each in map(checked, interventions)
    )


def _ablation(each: Ablate, of: Pass) -> CallChange:
    place, batch = each.target, (of.number,)
    if isinstance(place, Head):
        return CallChange(place.part, (place.layer,), HeadAblation(heads=(place.head,), batch=batch), place.nth)
    queries, keys = (
        _tokens_of_edge_end(of.queries(place.part), place.query),
        _tokens_of_edge_end(of.keys(place.part), place.key),
    )
    change = EdgeAblation(heads=place.heads, queries=queries, keys=keys, batch=batch)
    return CallChange(place.part, place.layers, change)


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


def _tokens_of_edge_end(text: Encoded, place: Place) -> tuple[int, ...]:
    """The numbers of the tokens that an end of an edge names; of a word, those of all its occurrences."""
    if isinstance(place, Word):  # one that `removal` made stands for tokens, not for characters
        return tuple(sorted(set(place.tokens)))
    return tuple(sorted(tokens_at("interventions", text.text, text.tokens, (place,))))


def checked(intervention: Any) -> Intervention:
    """The intervention itself."""
    if isinstance(intervention, (Head, Edge)):
        name = type(intervention).__name__.lower()
        raise RegardError(f"interventions: given regard.{name}(...), needs regard.ablate(regard.{name}(...))")
    if not isinstance(intervention, (Ablate, Patch, Steer)):
        needs = "regard.ablate(...), regard.patch(...) or regard.steer(...)"
        raise RegardError(f"interventions: given {type(intervention).__name__}, needs {needs}")
    return intervention


def check_interventions(given: Any) -> None:
    """Check that interventions are given, several of them, before a pass begins."""
    if not isinstance(given, Sequence) or isinstance(given, str):
        listed = "[regard.ablate(...)]"
        raise RegardError(f"interventions: given {type(given).__name__}, needs a list of what is done: {listed}")
    for each in given:
        checked(each)


def intervention_names_tokens(intervention: Any) -> bool:
    """Whether an intervention means tokens of one text, so that it has no meaning in a window of it."""
    each = checked(intervention)
    if isinstance(each, Ablate):
        return isinstance(each.target, Edge)
    return isinstance(each, Patch) or each.at is not None
