"""Say which attention calls of a pass are ablated and patched, apply that, and check that each met what it means.

`attend` knows calls by names; those of a pass are spelled here, by `call_name`, and nowhere taken apart again.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from regard.attention.ablation import Ablation, CallPatch, EdgeAblation, OpenAblations, PatchError, ablating
from regard.attention.recording import Calls
from regard.capture.interventions.names import OF, CallNumbering, KnownCallIds, Part
from regard.capture.state import Capture, LayerStack
from regard.checks import numbers_there
from regard.errors import OutOfRangeError, RegardError


@dataclass(frozen=True, eq=False)
class CallChange:
    """What is done to the attention calls of a part: of some layers, None for all of them.

    change: as `attend` takes it, of one text of the batch, without layers; its queries, keys and positions are that
    text's tokens. nth: which of each layer's calls, None for all of them.
    """

    part: Part | None
    layers: tuple[int, ...] | None
    change: Ablation
    nth: int | None = None

    def for_attend(self, past: int = 0) -> Ablation:
        """The change of the calls that are meant, named by `call_name`.

        past: how many tokens stand before the queries of the calls; nothing is done to these.
        """
        layers = [None] if self.layers is None else self.layers
        names = tuple(call_name(self.part, layer, self.nth) for layer in layers)
        change = self.change
        moved: dict[str, Any] = {}
        if isinstance(change, EdgeAblation) and change.queries is not None:
            moved = {"queries": tuple(place - past for place in change.queries)}
        elif isinstance(change, CallPatch) and change.what != "values":  # of keys there are all
            moved = {"positions": tuple(place - past for place in change.positions)}
        return replace(change, layers=names, **moved)


class AppliedAblations:
    """The ablations of one forward pass, for `check` after it.

    call_ids: those of the pass's calls. past: how many tokens of the text the pass begins after.
    """

    def __init__(
        self,
        ablations: Sequence[CallChange],
        opened: OpenAblations,
        call_ids: CallNumbering | KnownCallIds,
        name: str,
        past: int = 0,
    ) -> None:
        self._ablations, self._opened, self.call_ids, self._name = ablations, opened, call_ids, name
        self._past = past

    def check(self, stacks: Mapping[str, LayerStack], calls: Calls, lengths: Sequence[int]) -> None:
        """Refuse a pass in which an ablation met something else than what it means.

        lengths: tokens of the padded text, and of the target of an encoder-decoder.
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
                    f"interventions: layer {layers} of {self._name} has no attention{nth_call} that could be ablated "
                    "or patched"
                )
        for (path, nth), call in calls.items():
            call_id = self.call_ids(path, nth)
            if call_id is not None and any(isinstance(change, (EdgeAblation, CallPatch)) for change in call.ablations):
                shape, part = tuple(call.weights.shape[-2:]), call_id.part
                expected = lengths[part in ("decoder", "cross")], lengths[part == "decoder"] + self._past
                if shape != expected:
                    raise RegardError(
                        f"interventions: layer {call_id.layer} of {self._name} attends to {shape[-1]} keys for "
                        f"{expected[1]} tokens: which of them a word is, is not known, so nothing can be done to it by "
                        "tokens"
                    )

    def _check_layer(self, part: Part | None, layer: int | None, stacks: Mapping[str, LayerStack]) -> None:
        """Raise RegardError for a layer that a part does not have; None: for a part that has no layers at all."""
        depths = [stack.count - 1 for stack in stacks.values()]
        count = max(depths, default=0) if part is None else depths[part != "encoder"]
        if count == 0 or (layer is not None and layer >= count):
            there = numbers_there("layer", count, f"{self._name} has") if count else f"{self._name} has no layers"
            raise RegardError(f"interventions: layer {layer or 0} is out of range, {there}{OF[part]}")


@contextmanager
def applied(
    ablations: Sequence[CallChange],
    model: nn.Module,
    capture: Capture,
    *,
    pairs: bool,
    name: str,
    call_ids: KnownCallIds | None = None,
    past: int = 0,
) -> Iterator[AppliedAblations]:
    """Apply ablations to the forward pass inside the block."""
    numbering = call_ids or CallNumbering(model, capture, pairs=pairs)

    def name_of(path: str, nth: int) -> str:
        call = numbering(path, nth)
        return "" if call is None else call_name(call.part, call.layer, call.nth)

    try:
        with ablating([change.for_attend(past) for change in ablations], name_of) as opened:
            yield AppliedAblations(ablations, opened, numbering, name, past)
    except (OutOfRangeError, PatchError) as error:
        raise of_model(error, name) from error


def of_model(error: OutOfRangeError | PatchError, name: str) -> RegardError:
    """Word what `attend` refused, or a patch, for who asked it of a model."""
    if isinstance(error, PatchError):
        return RegardError(f"patch: {error}")
    if error.axis != "heads" or error.size is None:
        return error
    there = numbers_there("head", error.size, f"{name} has")
    return RegardError(f"interventions: head {error.given} is out of range, {there}")


def call_name(part: Part | None, layer: int | None = None, nth: int | None = None) -> str:
    """The name under which `attend` knows the calls of a part, those of one of its layers, or one of these."""
    return ".".join([part or "attention", *(str(number) for number in (layer, nth) if number is not None)])
