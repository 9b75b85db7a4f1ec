"""Prepare attention for a plot or page: a map, recorded calls, a tensor, or layers from transformers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.attention.recording import Call, Calls
from regard.checks import from_zero, is_whole
from regard.errors import RegardError
from regard.images import patch_tokens
from regard.text.tokens import Token
from regard.trace.labelled_map import LabelledMap, Labels
from regard.trace.layers import Layers

NEEDS = (
    "expected an AttentionMap, recorded calls, a tensor (L, S), (H, L, S) or (B, H, L, S), or a tuple with one "
    "per layer"
)
OF_SCORES = "make a map of queries and keys with regard.AttentionMap.of_query_key(q, k, causal=...)"
EAGER = "load a transformers model with attn_implementation='eager'"
MAX_OTHER_TOKENS = 16  # maximum number of keys before the image patches: class token and registers
ONE_MAP, SEVERAL = (AttentionMap, Call, Tensor, np.ndarray), (tuple, list, Layers)


@dataclass(frozen=True, eq=False)
class ShownMap:
    """A map to plot. name: of its call or layer. labels: of queries and keys. item: describes the item of a batch.

    Before `labelled` is called, labels are those of its call, or None if unknown.
    """

    name: str
    layer: int | None
    weights: AttentionMap
    labels: Sequence[Any] = (None, None)
    item: str = ""


@dataclass(frozen=True)
class PatchGrid:
    """The grid of image patches in the last keys of a map. first: the number of keys before the patches."""

    rows: int
    columns: int
    first: int

    @staticmethod
    def of(shown: ShownMap, grid: Sequence[int] | None) -> "PatchGrid":
        """Fit a grid of patches to the keys of a map. grid: None for a square, with or without a class token."""
        size, max_others = shown.weights.full_shape[3], 1 if grid is None else MAX_OTHER_TOKENS
        if grid is not None and not (isinstance(grid, Sequence) and len(grid) == 2 and all(map(is_whole, grid))):
            raise RegardError(f"grid: got {grid!r}, expected (rows, columns)")
        rows, columns = (math.isqrt(size),) * 2 if grid is None else grid
        if min(rows, columns) < 1 or not 0 <= (first := size - rows * columns) <= max_others:
            keys = f"{size} keys of {shown.name or 'the map'}, weights {shown.weights.shape}, are no {rows} × {columns}"
            raise RegardError(f"grid: {keys} patches with up to {max_others} before them: pass grid=(rows, columns)")
        return PatchGrid(rows, columns, first)

    def __str__(self) -> str:
        after = " after 1 class token" if self.first == 1 else f" after {self.first} other tokens" * (self.first > 0)
        return f"{self.rows} × {self.columns}{after}"

    def tokens(self) -> Sequence[Token]:
        """Return tokens that name the keys: [CLS], registers, and "row,column" of each patch, counted from 0."""
        others = SimpleNamespace(num_register_tokens=max(0, self.first - 1))
        return patch_tokens(others, (self.rows, self.columns), self.rows * self.columns + self.first) or ()


def is_attention(value: object) -> bool:
    """Return whether an object is attention that `plot` and pages accept, but not a trace."""
    several = isinstance(value, SEVERAL) and any(isinstance(item, (*ONE_MAP, type(None))) for item in value)
    return several or isinstance(value, (*ONE_MAP, Calls))


def named_maps(attention: Any, layers: Sequence[int] | None = None) -> list[ShownMap]:
    """Return named maps for any attention, without computing weights. layers: None for all layers."""
    several = isinstance(attention, SEVERAL)
    items: list[tuple[str, int | None, Any]] = []
    entries = attention.values() if isinstance(attention, Calls) else attention if several else [attention]
    for n, entry in enumerate(entries):
        if isinstance(entry, Call):
            again = isinstance(attention, Calls) and (entry.path, 1) in attention
            items.append((f"{entry.path}, {entry.nth}" if again else entry.path, entry.layer, entry))
            continue
        if several and len(attention) == 2 and isinstance(entry, Tensor) and bool((entry < 0).any()):
            raise RegardError(f"layer {n} of 2: its weights are below 0; {OF_SCORES}")
        items.append((f"layer {n}", n, entry) if several else ("", None, entry))
    if not items:  # transformers returns () with attn_implementation="sdpa"
        raise RegardError(f"got no attention: {EAGER}")
    numbers = {layer for _, layer, _ in items}
    if missing := [layer for layer in layers or () if layer not in numbers]:
        raise RegardError(f"layer {missing[0]} isn't in {sorted(numbers - {None})}")  # type: ignore[type-var]
    return [
        ShownMap(name, layer, _as_map(f"{name}: " if name else "", entry), getattr(entry, "labels", (None, None)))
        for name, layer, entry in items
        if layers is None or layer in layers
    ]


def labelled(
    shown: ShownMap, tokens: Sequence[Any] | None = None, key_tokens: Sequence[Any] | None = None, batch: int = 0
) -> ShownMap:
    """Return one item of a map's batch with token labels. Raises RegardError if the labels don't fit."""
    weights, name, labels = shown.weights, shown.name or "the map", []
    items, _, *counts = weights.full_shape
    known = (weights.query_labels, weights.key_labels) if isinstance(weights, LabelledMap) else shown.labels
    key_tokens = tokens if key_tokens is None and counts[0] == counts[1] else key_tokens
    for role, names, of_call, count in zip(("tokens", "key_tokens"), (tokens, key_tokens), known, counts, strict=True):
        if names is None and of_call is not None and len(of_call.tokens) == count:
            labels.append(of_call)
            continue
        labels.append(_as_labels(role, range(count) if names is None else names))
        if (length := len(labels[-1].tokens)) != count:
            axis = "queries" if role == "tokens" else "keys"
            raise RegardError(f"{role}: {length} labels for {count} {axis} of {name}, weights {weights.shape}")
    batch = from_zero("batch item", batch, items, f"{name} has")
    cropped, item = weights.crop(batch, slice(None), slice(None)), f", batch item {batch} of {items}" * (items > 1)
    return replace(shown, weights=cropped, labels=labels, item=item)


def _as_map(where: str, attention: Any) -> AttentionMap:
    """Convert a map, a call, a tensor or an array to an attention map."""
    if isinstance(attention, Call | AttentionMap):
        return attention.weights if isinstance(attention, Call) else attention
    if attention is None:
        raise RegardError(f"{where}it is None: {EAGER}")
    if isinstance(attention, SEVERAL):
        raise RegardError(f"{where}it is a {type(attention).__name__}: generate() returns one per step, pass one step")
    if not isinstance(attention, Tensor | np.ndarray):
        raise RegardError(f"{where}got {type(attention).__name__}, {NEEDS}")
    try:
        return AttentionMap.of_weights(torch.as_tensor(attention))
    except (TypeError, ValueError) as error:
        raise RegardError(f"{where}{error}") from None


def _as_labels(argument: str, labels: Sequence[Any]) -> Labels:
    """Convert labels to the tokens of a text in which each label is a word."""
    if isinstance(labels, str | dict | set) or not hasattr(labels, "__len__"):
        kind = type(labels).__name__
        raise RegardError(f"{argument}: got {kind}, expected one label per position, as text.split() gives")
    names = [label.text if isinstance(label, Token) else str(label) for label in labels]
    text, start, tokens = " ".join(names), 0, []
    for n, name in enumerate(names):
        special = isinstance(labels[n], Token) and labels[n].special
        tokens.append(Token(n, name, start, start + len(name), n, special, text))
        start += len(name) + 1
    return Labels(text, tokens)
