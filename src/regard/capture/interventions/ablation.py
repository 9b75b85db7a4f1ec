"""Apply ablations and patches to the attention calls of a pass, and check that each was applied to the right call.

`attend` identifies calls by name. The names of a pass's calls come from `call_name`.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from regard.attention.ablation import Ablation, CallPatch, EdgeAblation, PatchError, ablating
from regard.capture.interventions.names import OF, CallNumbering, Part
from regard.capture.state import Capture
from regard.checks import numbers_there
from regard.errors import OutOfRangeError, RegardError


@dataclass(frozen=True, eq=False)
class CallChange:
    """A change to the attention calls of a stack in the given layers (None for all).

    change: as in `attend`, but without layers, for one text of the batch. Its queries, keys and positions are that
    text's tokens. nth: the number of the call in each layer, None for all.
    """

    part: Part | None
    layers: tuple[int, ...] | None
    change: Ablation
    nth: int | None = None

    def for_attend(self, past: int = 0) -> Ablation:
        """Return the ablation or patch for `attend`, with its calls named by `call_name`.

        past: the number of tokens before the calls' queries. These tokens aren't changed.
        """
        layers = [None] if self.layers is None else self.layers
        names = tuple(call_name(self.part, layer, self.nth) for layer in layers)
        change = self.change
        moved: dict[str, Any] = {}
        if isinstance(change, EdgeAblation) and change.queries is not None:
            moved = {"queries": tuple(position - past for position in change.queries)}
        elif isinstance(change, CallPatch) and change.what != "values":  # calls include the keys of earlier tokens
            moved = {"positions": tuple(position - past for position in change.positions)}
        return replace(change, layers=names, **moved)


@contextmanager
def applied(
    changes: Sequence[CallChange], call_ids: CallNumbering, capture: Capture, lengths: Sequence[int], name: str,
    past: int = 0,
) -> Iterator[None]:  # fmt: skip
    """Apply changes to the calls of the pass inside the block, and check that each was applied to the right calls.

    Enter it before the calls and layers are recorded in `capture`, because it checks the complete records.

    Args:
        lengths: the number of tokens of the padded text, and for an encoder-decoder of the target.
        name: the model's name.
        past: the number of tokens before the pass.
    """

    def name_of(path: str, nth: int) -> str:
        call = call_ids(path, nth)
        return "" if call is None else call_name(call.part, call.layer, call.nth)

    try:
        with ablating([change.for_attend(past) for change in changes], name_of) as opened:
            yield
    except PatchError as error:
        raise RegardError(f"patch: {error}") from error
    except OutOfRangeError as error:
        if error.axis != "heads" or error.size is None:
            raise
        available = numbers_there("head", error.size, f"{name} has")
        raise RegardError(f"interventions: head {error.given} is out of range, {available}") from error
    if not changes:
        return
    if not call_ids.matches(capture.stacks):
        raise RegardError(
            f"interventions: which calls of {name} make which layer was known only after they were made: "
            "they cannot be ablated"
        )
    depths = [stack.count - 1 for stack in capture.stacks.values()]
    for change in changes:
        count = max(depths, default=0) if change.part is None else depths[change.part != "encoder"]
        for layer in change.layers or (0,):  # for all layers, check that the stack has any
            if layer >= count:
                available = f"{name} has no layers"
                available = numbers_there("layer", count, f"{name} has") if count else available
                raise RegardError(f"interventions: layer {layer} is out of range, {available}{OF[change.part]}")
    for change, ablation in zip(changes, opened.ablations, strict=True):
        if ablation in opened.unmet:
            layers = " and ".join(map(str, change.layers or (0,)))
            nth_call = "" if change.nth is None else f" call {change.nth}"
            raise RegardError(
                f"interventions: layer {layers} of {name} has no attention{nth_call} that could be ablated or patched"
            )
    for (path, nth), call in capture.calls.items():
        call_id = call_ids(path, nth)
        if call_id is not None and any(isinstance(change, (EdgeAblation, CallPatch)) for change in call.ablations):
            shape, part = tuple(call.weights.shape[-2:]), call_id.part
            expected = lengths[part in ("decoder", "cross")], lengths[part == "decoder"] + past
            if shape != expected:
                raise RegardError(
                    f"interventions: layer {call_id.layer} of {name} attends to {shape[-1]} keys for {expected[1]} "
                    "tokens: which of them a word is, is not known, so nothing can be done to it by tokens"
                )


def call_name(part: Part | None, layer: int | None = None, nth: int | None = None) -> str:
    """Return the name for `attend` of all calls of a stack, the calls of a layer, or a single call."""
    return ".".join([part or "attention", *(str(number) for number in (layer, nth) if number is not None)])
