"""Turn the mask functions of transformers into mask specifications, so that no L × S tensor is built for them.

transformers describes a mask by a function of (batch, head, query, key) that is put together from a few known ones.
Those are recognised by the function that made them; what is not recognised is evaluated as it stands. A family that
computes with its mask, as if it were a tensor, is recognised by `TensorMaskError`, which the specification raises.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, NoReturn

from transformers import masking_utils as patterns

from regard.attention import masks
from regard.attention.masks import Mask
from regard.capture.options import TensorMaskError

MaskFunction = Callable[..., Any]


def _refuse_mask_as_tensor(*_: Any, **__: Any) -> NoReturn:
    raise TensorMaskError("a Mask is a specification of positions, no tensor to compute with")


@dataclass(frozen=True, eq=False)
class ModelMask(Mask):
    """A mask specification that is handed to a model, which may only hand it on to the attention function.

    key_count: how many keys it is for. skippable: whether PyTorch's kernels would do without it where it allows all.
    """

    key_count: int = 0
    skippable: bool = False

    @classmethod
    def of(cls, mask: Mask, *, key_count: int, skippable: bool = False) -> "ModelMask":
        """The same mask, to be handed to a model."""
        same = {item.name: getattr(mask, item.name) for item in fields(Mask)}
        return cls(**same, key_count=key_count, skippable=skippable)

    def __bool__(self) -> bool:
        return True  # where a family asks whether there is a mask

    def __and__(self, other: Any) -> Mask:
        return super().__and__(other) if isinstance(other, Mask) else _refuse_mask_as_tensor()

    @classmethod
    def __torch_function__(cls, *_: Any, **__: Any) -> NoReturn:
        _refuse_mask_as_tensor()

    # attributes that it does not have, indexing, arithmetic and comparison
    __getattr__ = __getitem__ = __setitem__ = __len__ = __float__ = __int__ = _refuse_mask_as_tensor
    __neg__ = __invert__ = __abs__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse_mask_as_tensor
    __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = __matmul__ = _refuse_mask_as_tensor
    __or__ = __xor__ = __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rpow__ = __rmatmul__ = __rand__ = __ror__ = (
        __rxor__
    ) = _refuse_mask_as_tensor


def specification(function: MaskFunction, query_start: int, key_start: int) -> Mask | None:
    """The mask that a transformers mask function means, where it is put together from known patterns; else None.

    query_start, key_start: the positions of the first query and the first key of the call.
    """
    shift = query_start - key_start
    if function is patterns.bidirectional_mask_function:
        return Mask()
    if function is patterns.causal_mask_function:
        return masks.causal(shift)
    cells = getattr(function, "__closure__", None) or ()
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    variables = {name: cell.cell_contents for name, cell in zip(names, cells, strict=True)}
    made = getattr(function, "__qualname__", "").split(".")[0]
    if made == "and_masks":
        joined = Mask()
        for part in variables["mask_functions"]:
            mask = specification(part, query_start, key_start)
            if mask is None:
                return None
            joined = joined & mask
        return joined
    if made == "sliding_window_overlay":
        return Mask(low=shift + 1 - int(variables["sliding_window"]))
    if made == "sliding_window_bidirectional_overlay":
        return masks.window(int(variables["sliding_window"]), int(variables["sliding_window"]), shift)
    return None


def as_function(function: MaskFunction, query_start: int, key_start: int) -> Mask:
    """A mask function of one text, evaluated tile by tile as it stands."""

    def predicate(i: Any, j: Any) -> Any:
        batch = i.new_zeros(())
        return function(batch, batch, i + query_start, j + key_start)

    return masks.function(predicate)
