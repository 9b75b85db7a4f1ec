"""Translate the ablations that a person names into those of attention calls, and check that each met what it means."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from torch import nn

from regard.attention.ablation import Ablation, EdgeAblation, HeadAblation, OpenAblations, OutOfRangeError, ablating
from regard.attention.recording import Calls
from regard.capture.call_ids import ALONE, Known, Numbering
from regard.capture.hf_attention import Capture
from regard.capture.hidden_states import LayerStack
from regard.capture.interventions import OF, PARTS, Head, Place, target_of
from regard.errors import RegardError
from regard.text.tokens import Encoded
from regard.text.words import Word, find_word


def ablations_of(
    interventions: Sequence[Any], source: Encoded, target: Encoded | None, number: int, name: str
) -> list[Ablation]:
    """The ablations of attention calls for text number of a batch, by the names that `Numbering` gives calls.

    target: of an encoder-decoder, the text that its decoder reads; None for any other model.

    Raises:
        RegardError: something that is no ablation, a word or token that does not exist, or a part that is missing or
            not wanted; what was given and what there is are named.
    """
    ablations: list[Ablation] = []
    for intervention in interventions:
        each = target_of(intervention)
        if target is None and each.part is not None:
            raise RegardError(f"interventions: {name} is no encoder-decoder, leave out part={each.part!r}")
        if target is not None and each.part is None:
            ways = ", ".join(f"part={part!r}" for part in PARTS)
            raise RegardError(
                f"interventions: {name} is an encoder-decoder: say which attention is meant, one of {ways}"
            )
        part = each.part or ALONE
        if isinstance(each, Head):
            ablations.append(HeadAblation(layers={f"{part}.{each.layer}"}, heads={each.head}, batch={number}))
            continue
        asking = source if target is None or part == "encoder" else target
        asked = source if target is None or part in ("encoder", "cross") else target
        layers = [part] if each.layers is None else [f"{part}.{layer}" for layer in each.layers]
        queries, keys = _tokens(asking, each.query), _tokens(asked, each.key)
        ablations.append(EdgeAblation(layers=layers, heads=each.heads, queries=queries, keys=keys, batch={number}))
    return ablations


class Applied:
    """The ablations of one forward pass, for `check` after it."""

    def __init__(self, opened: OpenAblations, numbers: Numbering | Known, name: str) -> None:
        self._opened, self.numbers, self._name = opened, numbers, name

    def check(self, stacks: Mapping[str, LayerStack], calls: Calls, lengths: Sequence[int]) -> None:
        """Refuse a pass in which an ablation met something else than what it means.

        lengths: tokens of the padded text, and of the target of an encoder-decoder.

        Raises:
            RegardError: a layer that is out of range; calls that are not numbered as the trace numbers them; edges in
                calls whose queries and keys are not the texts' tokens.
        """
        if not self._opened.ablations:
            return
        if not self.numbers.agrees(stacks):
            raise RegardError(
                f"interventions: which calls of {self._name} make which layer was known only after they were made: "
                "they cannot be ablated"
            )
        for ablation in self._opened.ablations:
            for place in ablation.layers or ():
                self._check_layer(str(place))
        if self._opened.unmet:
            unmet = " and ".join(str(place).partition(".")[2] or "0" for place in self._opened.unmet[0].layers or ())
            raise RegardError(f"interventions: layer {unmet} of {self._name} has no attention that could be ablated")
        for (path, nth), call in calls.items():
            part, _, layer = self.numbers(path, nth).partition(".")
            if part and any(
                isinstance(ablation, EdgeAblation) and ablation in self._opened.ablations for ablation in call.ablations
            ):
                expected = lengths[part in ("decoder", "cross")], lengths[part == "decoder"]
                if call.weights.shape[-2:] != expected:
                    raise RegardError(
                        f"interventions: layer {layer} of {self._name} attends to {call.weights.shape[-1]} keys for "
                        f"{expected[1]} tokens: which of them a word is, is not known, so its edges cannot be ablated"
                    )

    def _check_layer(self, place: str) -> None:
        part, _, layer = place.partition(".")
        count = self.numbers.counts[part]
        if count == 0 or (layer and int(layer) >= count):
            there = f"layers 0 to {count - 1}" if count else "no layers"
            whose = _whose(part)
            raise RegardError(f"interventions: layer {layer or 0} is out of range, {self._name} has {there}{whose}")


@contextmanager
def applied(
    ablations: Sequence[Ablation],
    model: nn.Module,
    watch: Capture,
    *,
    pairs: bool,
    name: str,
    names: Known | None = None,
) -> Iterator[Applied]:
    """Apply ablations to the forward pass inside the block.

    names: what its calls are called, where that is known from an earlier pass.

    Raises:
        RegardError: a head that the model does not have.
    """
    numbers = names or Numbering(model, watch, pairs=pairs)
    try:
        with ablating(ablations, numbers) as opened:
            yield Applied(opened, numbers, name)
    except OutOfRangeError as error:
        if error.axis != "heads":
            raise
        raise RegardError(
            f"interventions: head {error.given} is out of range, {name} has heads 0 to {error.size - 1}"
        ) from error


def _whose(part: str) -> str:
    return "" if part == ALONE else next(told for each, told in OF.items() if each == part)


def _tokens(text: Encoded, place: Place) -> list[int]:
    if isinstance(place, int):
        if not 0 <= place < len(text.tokens):
            raise RegardError(
                f"interventions: token {place} is out of range, the text has tokens 0 to {len(text.tokens) - 1}"
            )
        return [place]
    words = [place] if isinstance(place, Word) else find_word(text.text, text.tokens, place)
    return sorted({token for word in words for token in word.tokens})
