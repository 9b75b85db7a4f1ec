"""The mask patterns of transformers as mask specifications, so that no L × S tensor is built for them.

transformers describes a mask by a function of (batch, head, query, key) that is put together from a few known ones.
Those are recognised by the function that made them; what is not recognised is evaluated as it stands.
"""

from collections.abc import Callable
from typing import Any

from transformers import masking_utils as patterns

from regard.attention import masks
from regard.attention.masks import Mask

MaskFunction = Callable[..., Any]


def specification(function: MaskFunction, query_start: int, key_start: int) -> Mask | None:
    """The mask that a transformers mask function means, where it is put together from known patterns; else None.

    query_start, key_start: the positions of the first query and the first key of the call.
    """
    shift = query_start - key_start
    if function is patterns.bidirectional_mask_function:
        return Mask()
    if function is patterns.causal_mask_function:
        return masks.causal(shift)
    held = _closure(function)
    made = getattr(function, "__qualname__", "").split(".")[0]
    if made == "and_masks":
        whole = Mask()
        for part in held["mask_functions"]:
            one = specification(part, query_start, key_start)
            if one is None:
                return None
            whole = whole & one
        return whole
    if made == "sliding_window_overlay":
        return Mask(low=shift + 1 - int(held["sliding_window"]))
    if made == "sliding_window_bidirectional_overlay":
        return masks.window(int(held["sliding_window"]), int(held["sliding_window"]), shift)
    return None


def as_function(function: MaskFunction, query_start: int, key_start: int) -> Mask:
    """A mask function of one text, evaluated tile by tile as it stands."""

    def predicate(i: Any, j: Any) -> Any:
        batch = i.new_zeros(())
        return function(batch, batch, i + query_start, j + key_start)

    return masks.function(predicate)


def _closure(function: MaskFunction) -> dict[str, Any]:
    """What a function made by another one remembers, by name."""
    cells = getattr(function, "__closure__", None) or ()
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    return {name: cell.cell_contents for name, cell in zip(names, cells, strict=True)}
