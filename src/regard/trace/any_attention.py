"""Any attention, to plot or put on a page: a map, recorded calls, a tensor, or the layers that transformers returns."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.attention.recording import Call, Calls
from regard.checks import from_zero
from regard.errors import RegardError
from regard.text.tokens import Token
from regard.trace.display import plot_map
from regard.trace.labelled_map import LabelledMap

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NEEDS = (
    "needs an AttentionMap, a recorded call or several, a tensor of weights (L, S), (H, L, S) or (B, H, L, S), or a "
    "tuple of these, one per layer"
)
OF_SCORES = "queries and keys make a map with regard.AttentionMap.of_query_key(q, k, causal=...)"
MAX_NAMED = 4  # maps that a message names
ONE_MAP = AttentionMap, Call, Tensor, np.ndarray


@dataclass(frozen=True, eq=False)
class ShownMap:
    """A map (H, L, S) to show, with its labels. name: of its call or layer; layer: its number, 0 if it has none."""

    name: str
    layer: int
    weights: AttentionMap
    queries: tuple[str, ...] | None = None
    keys: tuple[str, ...] | None = None


def is_attention(given: object) -> bool:
    """Return whether this is attention that `plot` and pages take, and no trace."""
    several = isinstance(given, tuple | list) and any(isinstance(each, (*ONE_MAP, type(None))) for each in given)
    return several or isinstance(given, (*ONE_MAP, Calls))


def plot(
    attention: Any,
    tokens: Iterable[Any] | None = None,
    key_tokens: Iterable[Any] | None = None,
    *,
    layer: int | None = None,
    head: int | None = None,
    batch: int = 0,
    axes: "Axes | None" = None,
) -> "Axes":
    """Draw attention as a heat map with its labels into matplotlib axes, and return the axes.

    Args:
        attention: an `AttentionMap`, a recorded call or several, weights (L, S), (H, L, S) or (B, H, L, S), or a tuple
            of layers such as `model(..., output_attentions=True).attentions`.
        tokens: a label for each query, also for each key if L = S. Default: positions.
        key_tokens: a label for each key.
        layer: which of several layers or calls.
        head: Default: the mean of all heads.
        batch: which item of a batch. Default: 0.
        axes: where to draw. Default: new axes of pyplot.

    Raises:
        RegardError: labels that don't fit the shape, several maps and no layer, no such head, or no attention.
    """
    maps = named_maps(attention, None if layer is None else [layer])
    if len(maps) > 1:
        names = ", ".join(each.name for each in maps[:MAX_NAMED]) + ", …" * (len(maps) > MAX_NAMED)
        index = ", or pass one call, as in seen[path]" if isinstance(attention, Calls) else ""
        raise RegardError(f"plot: given {len(maps)} maps ({names}): choose with layer={index}")
    shown = labelled(maps[0], tokens, key_tokens, batch)
    return plot_map(shown.weights, shown.queries, shown.keys, head, axes, shown.name or "attention weights")


def named_maps(attention: Any, layers: Sequence[int] | None = None) -> list[ShownMap]:
    """Name the maps of any attention, of all layers or of these. Nothing is computed."""
    if isinstance(attention, Calls):
        items = [
            (f"{path}, {nth}" if (path, 1) in attention else path, call.layer, call)
            for (path, nth), call in attention.items()
        ]
    elif isinstance(attention, tuple | list):
        items = [(f"layer {n}", n, each) for n, each in enumerate(attention)]
        for name, _, each in items if len(items) == 2 else ():
            if isinstance(each, Tensor) and bool((each < 0).any()):
                raise RegardError(f"{name} of 2: its weights are below 0; {OF_SCORES}")
    elif isinstance(attention, Call):
        items = [(attention.path, attention.layer, attention)]
    else:
        items = [("", None, attention)]
    if layers is not None:
        numbers = sorted({layer for _, layer, _ in items if layer is not None})
        if missing := [layer for layer in layers if layer not in numbers]:
            raise RegardError(f"layer {missing[0]}: there is none, these layers have numbers: {numbers}")
        items = [each for each in items if each[1] in layers]
    if not items:
        raise RegardError("given no attention, needs at least one map")
    return [ShownMap(name, layer or 0, _as_map(name, each)) for name, layer, each in items]


def labelled(
    shown: ShownMap, tokens: Iterable[Any] | None = None, key_tokens: Iterable[Any] | None = None, batch: int = 0
) -> ShownMap:
    """Take one item of a map's batch, and label it. Raises RegardError if the labels don't fit."""
    weights, name = shown.weights, shown.name or "the map"
    items, _, length, size = weights.full_shape
    queries, keys = _labels("tokens", tokens), _labels("key_tokens", key_tokens)
    if isinstance(weights, LabelledMap):
        own = (
            tuple(token.text for token in each.tokens) if each is not None and len(each.tokens) == count else None
            for each, count in ((weights.query_labels, length), (weights.key_labels, size))
        )
        queries, keys = (given or known for given, known in zip((queries, keys), own, strict=True))
    keys = queries if keys is None and length == size else keys
    for what, labels, count, axis in (("tokens", queries, length, "queries"), ("key_tokens", keys, size, "keys")):
        if labels is not None and len(labels) != count:
            raise RegardError(f"{what}: {len(labels)} labels for {count} {axis} of {name}, weights {weights.shape}")
    batch = from_zero("batch item", batch, items, f"{name} has")
    of_batch = f", batch item {batch} of {items}" if items > 1 else ""
    cropped = weights.crop(batch, slice(None), slice(None))
    return ShownMap(
        f"{shown.name or 'attention weights' * bool(of_batch)}{of_batch}", shown.layer, cropped, queries, keys
    )


def _as_map(name: str, given: Any) -> AttentionMap:
    """Return a map of what was given for one."""
    where = f"{name}: " if name else ""
    if given is None:
        raise RegardError(f"{where}it is None: load the transformers model with attn_implementation='eager'")
    if isinstance(given, tuple | list):
        raise RegardError(f"{where}it is a {type(given).__name__}: generate() returns one for each step, pass one step")
    if isinstance(given, Call):
        return given.weights
    if isinstance(given, AttentionMap):
        return given
    if not isinstance(given, Tensor | np.ndarray):
        raise RegardError(f"{where}given {type(given).__name__}, {NEEDS}")
    try:
        return AttentionMap.of_weights(torch.as_tensor(given))
    except (TypeError, ValueError) as error:
        raise RegardError(f"{where}{error}") from None


def _labels(what: str, given: Iterable[Any] | None) -> tuple[str, ...] | None:
    if given is None:
        return None
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise RegardError(f"{what}: given {type(given).__name__}, needs one label per position, as text.split() gives")
    return tuple(each.text if isinstance(each, Token) else str(each) for each in given)
