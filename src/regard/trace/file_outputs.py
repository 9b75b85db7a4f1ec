"""What stands around attention (W_O, residual, norm) to a description and back, field by field."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, get_args

from torch import Tensor

from regard.errors import RegardError
from regard.tensor_files import exactly, finite, typed
from regard.tensor_files.values import short
from regard.trace.attention_output import AttentionOutput, Norm, Scaling, UnverifiedOutput
from regard.trace.file_checks import Fit
from regard.trace.file_tensors import Named

# The shapes of each dataclass's tensors, and the dataclasses inside it.
SHAPES: dict[type, dict[str, str]] = {
    AttentionOutput: {"weight": "M X", "bias": "M", "residual": "L M", "projected": "L M"},
    Norm: {"weight": "M", "bias": "M"},
    Scaling: {"scale": "#L 1", "gain": "M", "added": "L M"},
}
NEEDED = {AttentionOutput: ("weight", "residual", "projected"), Norm: (), Scaling: ("scale", "gain", "added")}
WITHIN: dict[str, type] = {"norm": Norm, "scaling": Scaling}
KINDS = get_args(AttentionOutput.__annotations__["kind"])


def describe_output(block: AttentionOutput | UnverifiedOutput, add: Callable[[str, Tensor], Named]) -> dict[str, Any]:
    """The description of a block; add stores one of its tensors and says how to find it."""
    if isinstance(block, UnverifiedOutput):
        return {"unverified": block.reason}
    return _described(block, add, "")


def rebuild_output(told: Any, fit: Fit) -> AttentionOutput | UnverifiedOutput:
    """A block from its description.

    Raises:
        RegardError: a tensor of another shape, or a block of another kind, than there are.
    """
    if "unverified" in typed("an attention output", told, dict):
        exactly("an attention output", told, ("unverified",))
        return UnverifiedOutput(typed("why an attention output is unverified", told["unverified"], str))
    if not isinstance(told.get("kind"), str) or told["kind"] not in KINDS:
        raise RegardError(
            f"an attention output of the kind {short(told.get('kind'))} is described, known are {', '.join(KINDS)}"
        )
    heads, width = fit.sizes["H"], fit.sizes.get("E")
    block: AttentionOutput = _rebuilt(AttentionOutput, told, fit)
    columns = block.weight.shape[1]
    if columns % heads or (width is not None and columns != heads * width):
        needs = f"{heads} heads" if width is None else f"{heads} heads of {width}"
        raise RegardError(f"tensor {told['weight']!r} has {columns} columns, needs those of {needs}")
    return block


def _described(thing: Any, add: Callable[[str, Tensor], Named], prefix: str) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for each in fields(thing):
        value, name = getattr(thing, each.name), prefix + each.name
        if value is not None and each.name in SHAPES[type(thing)]:
            told[each.name] = add(name, value)
        elif value is not None and each.name in WITHIN:
            told[each.name] = _described(value, add, f"{name}.")
        else:
            told[each.name] = value
    return told


def _rebuilt(kind: type, told: Any, fit: Fit) -> Any:
    name = "an attention output" if kind is AttentionOutput else f"a {kind.__name__.lower()}"
    exactly(name, told, [each.name for each in fields(kind)])
    given: dict[str, Any] = {}
    for each in fields(kind):
        value = told[each.name]
        if value is None and each.name in NEEDED[kind]:
            raise RegardError(f"an attention output without {each.name} is described")
        if each.name == "eps":
            value = finite("eps", value)
            if value < 0:
                raise RegardError(f"eps is {value}, needs 0 or more")
        if value is not None and each.name in SHAPES[kind]:
            value = fit.take(value, SHAPES[kind][each.name])
        elif value is not None and each.name in WITHIN:
            value = _rebuilt(WITHIN[each.name], value, fit)
        given[each.name] = value
    return kind(**given)
