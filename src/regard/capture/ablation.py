"""Translate the ablations that a person names into those of attention calls, and check that each met what it means.

`attend` knows calls by names; those of a pass are spelled here, by `call_name`, and nowhere taken apart again.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import nn

from regard.attention.ablation import Ablation, EdgeAblation, HeadAblation, OpenAblations, OutOfRangeError, ablating
from regard.attention.recording import Calls
from regard.capture.call_ids import CallId, CallNumbering, KnownCallIds
from regard.capture.hidden_states import LayerStack
from regard.capture.interventions import OF, PARTS, Head, Part, Place, target_of
from regard.capture.state import Capture
from regard.errors import RegardError
from regard.text.tokens import Encoded
from regard.text.words import Word, find_word


@dataclass(frozen=True)
class CallAblation:
    """Heads or edges that are ablated in the attention calls of a part: of some layers, None for all of them.

    heads: None for all. edges: (queries, keys), None where heads are ablated. text: number of the text in its batch.
    nth: which of each layer's calls, None for all of them.
    """

    part: Part | None
    layers: tuple[int, ...] | None
    heads: tuple[int, ...] | None
    edges: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    text: int = 0
    nth: int | None = None

    def for_attend(self) -> Ablation:
        """The same for `regard.attention.ablation`, with calls named by `call_name`."""
        layers = (
            [call_name(self.part)] if self.layers is None else [call_name(self.part, n, self.nth) for n in self.layers]
        )
        if self.edges is None:
            return HeadAblation(layers=layers, heads=self.heads, batch={self.text})
        queries, keys = self.edges
        return EdgeAblation(layers=layers, heads=self.heads, queries=queries, keys=keys, batch={self.text})


def call_ablations(
    interventions: Sequence[Any], source: Encoded, target: Encoded | None, number: int, name: str
) -> list[CallAblation]:
    """The ablations of attention calls that interventions mean, for text number of a batch.

    target: of an encoder-decoder, the text that its decoder reads; None for any other model. name: of the model.

    Raises:
        RegardError: something that is no ablation, a word or token that does not exist, or a part that is missing or
            not wanted; what was given and what there is are named.
    """
    ablations: list[CallAblation] = []
    for intervention in interventions:
        place = target_of(intervention)
        part = place.part
        if target is None and part is not None:
            raise RegardError(f"interventions: {name} is no encoder-decoder, leave out part={part!r}")
        if target is not None and part is None:
            ways = ", ".join(f"part={each!r}" for each in PARTS)
            raise RegardError(
                f"interventions: {name} is an encoder-decoder: say which attention is meant, one of {ways}"
            )
        if isinstance(place, Head):
            ablations.append(CallAblation(part, (place.layer,), (place.head,), text=number, nth=place.nth))
            continue
        query_text = source if target is None or part == "encoder" else target
        key_text = source if target is None or part in ("encoder", "cross") else target
        edges = _tokens(query_text, place.query), _tokens(key_text, place.key)
        ablations.append(CallAblation(part, place.layers, place.heads, edges, text=number))
    return ablations


class AppliedAblations:
    """The ablations of one forward pass, for `check` after it. call_ids: those of the pass's calls."""

    def __init__(
        self,
        ablations: Sequence[CallAblation],
        opened: OpenAblations,
        call_ids: CallNumbering | KnownCallIds,
        name: str,
    ) -> None:
        self._ablations, self._opened, self.call_ids, self._name = ablations, opened, call_ids, name

    def check(self, stacks: Mapping[str, LayerStack], calls: Calls, lengths: Sequence[int]) -> None:
        """Refuse a pass in which an ablation met something else than what it means.

        lengths: tokens of the padded text, and of the target of an encoder-decoder.

        Raises:
            RegardError: a layer that is out of range; calls that are not numbered as the trace numbers them; edges in
                calls whose queries and keys are not the texts' tokens.
        """
        if not self._ablations:
            return
        if not self.call_ids.matches(stacks):
            raise RegardError(
                f"interventions: which calls of {self._name} make which layer was known only after they were made: "
                "they cannot be ablated"
            )
        for ablation in self._ablations:
            for layer in (None,) if ablation.layers is None else ablation.layers:
                self._check_layer(ablation.part, layer, stacks)
        unmet = self._opened.unmet
        for ablation, opened in zip(self._ablations, self._opened.ablations, strict=True):
            if opened in unmet:
                layers = " and ".join(map(str, ablation.layers or (0,)))
                nth_call = "" if ablation.nth is None else f" call {ablation.nth}"
                raise RegardError(
                    f"interventions: layer {layers} of {self._name} has no attention{nth_call} that could be ablated"
                )
        for (path, nth), call in calls.items():
            call_id = self.call_ids(path, nth)
            if call_id is not None and any(isinstance(each, EdgeAblation) for each in call.ablations):
                self._check_tokens(call_id, tuple(call.weights.shape[-2:]), lengths)

    def _check_layer(self, part: Part | None, layer: int | None, stacks: Mapping[str, LayerStack]) -> None:
        """Raise RegardError for a layer that a part does not have; None: for a part that has no layers at all."""
        depths = [stack.count - 1 for stack in stacks.values()]
        count = max(depths, default=0) if part is None else depths[part != "encoder"]
        if count == 0 or (layer is not None and layer >= count):
            there = f"layers 0 to {count - 1}" if count else "no layers"
            raise RegardError(f"interventions: layer {layer or 0} is out of range, {self._name} has {there}{OF[part]}")

    def _check_tokens(self, call: CallId, shape: tuple[int, ...], lengths: Sequence[int]) -> None:
        """Raise RegardError for an edge in a call whose queries and keys, shape in numbers, are not the tokens."""
        expected = lengths[call.part in ("decoder", "cross")], lengths[call.part == "decoder"]
        if shape != expected:
            raise RegardError(
                f"interventions: layer {call.layer} of {self._name} attends to {shape[-1]} keys for {expected[1]} "
                "tokens: which of them a word is, is not known, so its edges cannot be ablated"
            )


@contextmanager
def applied(
    ablations: Sequence[CallAblation],
    model: nn.Module,
    capture: Capture,
    *,
    pairs: bool,
    name: str,
    call_ids: KnownCallIds | None = None,
) -> Iterator[AppliedAblations]:
    """Apply ablations to the forward pass inside the block.

    call_ids: those of its calls, where they are known from an earlier pass.

    Raises:
        RegardError: a head that the model does not have.
    """
    numbering = call_ids or CallNumbering(model, capture, pairs=pairs)

    def name_of(path: str, nth: int) -> str:
        call = numbering(path, nth)
        return "" if call is None else call_name(call.part, call.layer, call.nth)

    try:
        with ablating([each.for_attend() for each in ablations], name_of) as opened:
            yield AppliedAblations(ablations, opened, numbering, name)
    except OutOfRangeError as error:
        if error.axis != "heads":
            raise
        raise RegardError(
            f"interventions: head {error.given} is out of range, {name} has heads 0 to {error.size - 1}"
        ) from error


def call_name(part: Part | None, layer: int | None = None, nth: int | None = None) -> str:
    """The name under which `attend` knows the calls of a part, those of one of its layers, or one of these."""
    return ".".join([part or "attention", *(str(number) for number in (layer, nth) if number is not None)])


def _tokens(text: Encoded, place: Place) -> tuple[int, ...]:
    """The numbers of the tokens that an end of an edge names."""
    if isinstance(place, int):
        if not 0 <= place < len(text.tokens):
            raise RegardError(
                f"interventions: token {place} is out of range, the text has tokens 0 to {len(text.tokens) - 1}"
            )
        return (place,)
    words = [place] if isinstance(place, Word) else find_word(text.text, text.tokens, place)
    return tuple(sorted({token for word in words for token in word.tokens}))
