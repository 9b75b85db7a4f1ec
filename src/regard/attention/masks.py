"""Masks: the keys that a query can attend to, without an L × S tensor.

A `Mask` is a conjunction of up to five kinds of conditions: a band of positions (causal, sliding window), padding
(keys that exist), boolean tensors of any broadcastable shape, functions of positions, and ablated edges. It is
evaluated tile by tile. True means "may attend" everywhere.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

Index = slice | Tensor  # a range start:stop or a vector of positions

AXES = ("batch", "heads", "queries", "keys")


@dataclass(frozen=True)
class Edges:
    """All edges from the selected queries to the selected keys, in the selected heads and texts.

    The numbers of each axis are sorted; None means all. They stay in CPU memory, so regard can skip tiles without such
    edges without synchronizing with a GPU. shape: (B, H, L, S) of the call with these edges.
    """

    shape: tuple[int, int, int, int]
    batch: tuple[int, ...] | None = None
    heads: tuple[int, ...] | None = None
    queries: tuple[int, ...] | None = None
    keys: tuple[int, ...] | None = None

    def numbers(self, axis: str) -> tuple[int, ...]:
        """Return the numbers along one of `AXES`, listing all of them if the field is None."""
        numbers: tuple[int, ...] | None = getattr(self, axis)
        return tuple(range(self.shape[AXES.index(axis)])) if numbers is None else numbers

    def tile(
        self, batch: Index, heads: Index, rows: Index, cols: Index, device: torch.device
    ) -> Bool[Tensor, "#b #h #r #c"] | None:
        """Compute a tensor that is True at these edges of a tile. Each axis has its size or 1. None without edges.

        batch, heads, rows, cols: the tile's texts, heads, queries and keys. device: of the result.
        """
        result = torch.ones(1, 1, 1, 1, dtype=torch.bool, device=device)
        for axis, (name, index) in enumerate(zip(AXES, (batch, heads, rows, cols), strict=True)):
            numbers: tuple[int, ...] | None = getattr(self, name)
            if numbers is None:
                continue
            hit = _edge_positions_in_index(numbers, index, self.shape[axis], device)
            if hit is None:
                return None
            result = result & hit.reshape(*(-1 if other == axis else 1 for other in range(4)))
        return result

    def crop(self, batch: int, rows: slice, cols: slice) -> "Edges | None":
        """Return the edges of one text, with queries and keys renumbered from 0, or None if none is left."""
        queries, keys = _edge_numbers_in_run(self.queries, rows), _edge_numbers_in_run(self.keys, cols)
        if queries == () or keys == () or (self.batch is not None and batch not in self.batch):
            return None
        shape = (1, self.shape[1], rows.stop - rows.start, cols.stop - cols.start)
        return Edges(shape, None, self.heads, queries, keys)

    def of_heads(self, heads: Sequence[int]) -> "Edges | None":
        """Return the edges of some heads, renumbered from 0, or None if these heads have none."""
        shape = (self.shape[0], len(heads), *self.shape[2:])
        if self.heads is None:
            return replace(self, shape=shape)
        numbers = tuple(new for new, old in enumerate(heads) if old in self.heads)
        return replace(self, shape=shape, heads=numbers) if numbers else None


def _edge_positions_in_index(numbers: tuple[int, ...], index: Index, size: int, device: torch.device) -> Tensor | None:
    """Return which positions of an index are among the numbers. None if the index is a slice without any of them."""
    if isinstance(index, Tensor):
        return torch.isin(index, torch.tensor(numbers, device=device))
    start, stop, _ = index.indices(size)
    selected = numbers[bisect_left(numbers, start) : bisect_left(numbers, stop)]
    if not selected:
        return None
    hit = torch.zeros(stop - start, dtype=torch.bool)
    hit[torch.tensor(selected) - start] = True
    return hit.to(device)


def _edge_numbers_in_run(numbers: tuple[int, ...] | None, run: slice) -> tuple[int, ...] | None:
    if numbers is None:
        return None
    return tuple(n - run.start for n in numbers[bisect_left(numbers, run.start) : bisect_left(numbers, run.stop)])


Positions = Int[Tensor, "..."]
Predicate = Callable[[Positions, Positions], Tensor | bool]


@dataclass(frozen=True, eq=False)
class Mask:
    """Conditions for a query to attend to a key. All must hold. Combine masks with `&`.

    low, high: smallest and largest allowed j - i (key position minus query position), inclusive.
    keys: (B, S) or (1, S), False for keys that don't exist.
    dense: boolean tensors of four axes, each B|1, H|1, L|1, S|1.
    functions: f(i, j) -> bool for query positions i (r, 1) and key positions j (1, c).
    removed: sets of ablated edges, all for calls of the same shape.
    """

    low: int | None = None
    high: int | None = None
    keys: Bool[Tensor, "#B #S"] | None = None
    dense: tuple[Bool[Tensor, "#B #H #L #S"], ...] = ()
    functions: tuple[Predicate, ...] = ()
    removed: tuple[Edges, ...] = ()

    def __and__(self, other: "Mask") -> "Mask":
        """Return the mask that allows what both masks allow."""
        lows = [x for x in (self.low, other.low) if x is not None]
        highs = [x for x in (self.high, other.high) if x is not None]
        keys = other.keys if self.keys is None else self.keys if other.keys is None else self.keys & other.keys
        low, high, functions = max(lows, default=None), min(highs, default=None), self.functions + other.functions
        return Mask(low, high, keys, self.dense + other.dense, functions, self.removed + other.removed)

    @property
    def only_band(self) -> bool:
        """Return whether this mask is only a band of positions."""
        return self.keys is None and not self.dense and not self.functions and not self.removed

    @property
    def is_causal(self) -> bool:
        """Return whether the only condition is key j <= query i, which fused kernels call causal if L <= S."""
        return self.only_band and self.low is None and self.high == 0

    @property
    def by_head(self) -> bool:
        """Return whether the mask differs between heads."""
        return any(tensor.shape[1] > 1 for tensor in self.dense) or any(e.heads is not None for e in self.removed)

    def simplified(self, length: int, size: int) -> "Mask | None":
        """Drop band limits that have no effect on `length` queries and `size` keys. None if no condition is left."""
        low = None if self.low is None or self.low <= 1 - length else self.low
        high = None if self.high is None or self.high >= size - 1 else self.high
        if low is None and high is None and self.only_band:
            return None
        return self if (low, high) == (self.low, self.high) else replace(self, low=low, high=high)

    def key_range(self, start: int, stop: int, size: int) -> tuple[int, int]:
        """Return the keys [first, last) that the band allows for queries [start, stop); first == last if none."""
        first = 0 if self.low is None else min(size, max(0, start + self.low))
        last = size if self.high is None else max(0, min(size, stop + self.high))
        return first, max(first, last)

    def keys_of_rows(self, rows: Index, size: int) -> slice:
        """Return the keys that the band allows for some of these queries, or all keys if it allows none."""
        if not isinstance(rows, slice) and len(rows) == 0:
            return slice(0, size)
        run = rows if isinstance(rows, slice) else slice(int(rows.min()), int(rows.max()) + 1)
        first, last = self.key_range(run.start, run.stop, size)
        return slice(first, last) if first < last else slice(0, size)

    def tile(
        self, batch: Index, heads: Index, rows: Index, cols: Index, device: torch.device
    ) -> Bool[Tensor, "b h r c"] | None:
        """Compute the mask of a tile. Each axis has its size or 1. None if everything is allowed.

        Args:
            batch, heads, rows, cols: the tile's texts, heads, queries and keys.
            device: of the result.
        """
        allowed: Tensor | None = None

        def require(condition: Tensor) -> None:
            nonlocal allowed
            allowed = condition if allowed is None else allowed & condition

        i, j = positions(rows, device)[:, None], positions(cols, device)[None, :]
        if self.low is not None:
            require((j - i >= self.low)[None, None])
        if self.high is not None:
            require((j - i <= self.high)[None, None])
        if self.keys is not None:
            require(select(self.keys[:, None, None, :], batch, heads, rows, cols))
        for tensor in self.dense:
            require(select(tensor, batch, heads, rows, cols))
        for function in self.functions:
            require(_evaluate_mask_function(function, i, j)[None, None])
        for edges in self.removed:
            ablated = edges.tile(batch, heads, rows, cols, device)
            if ablated is not None:
                require(~ablated)
        return allowed

    def materialise(
        self, batch: int, heads: int, length: int, size: int, device: torch.device
    ) -> Bool[Tensor, "b h L S"]:
        """Compute the whole mask as a boolean tensor on device, (batch or 1, heads or 1, length, size).

        Use it for small sizes and tests.
        """
        mask = self.tile(slice(0, batch), slice(0, heads), slice(0, length), slice(0, size), device)
        if mask is None:
            return torch.ones(1, 1, length, size, dtype=torch.bool, device=device)
        return mask.expand(-1, -1, length, size)

    def crop(self, batch: int, rows: slice, cols: slice) -> "Mask":
        """Return the mask of one text of a batch, for the queries rows and keys cols, renumbered from 0."""
        shift = rows.start - cols.start
        keys = None
        if self.keys is not None:
            keys = self.keys[batch if self.keys.shape[0] > 1 else 0][None, cols]
            keys = None if bool(keys.all()) else keys
        dense = tuple(crop_axes(t, batch, rows, cols) for t in self.dense)
        functions = tuple(_shifted_mask_function(f, rows.start, cols.start) for f in self.functions)
        low, high = (None if end is None else end + shift for end in (self.low, self.high))
        removed = tuple(e for e in (edges.crop(batch, rows, cols) for edges in self.removed) if e is not None)
        return Mask(low, high, keys, dense, functions, removed)

    def to(self, device: torch.device | str | int) -> "Mask":
        """Return the same mask with its tensors on another device."""
        keys = None if self.keys is None else self.keys.to(device)
        return replace(self, keys=keys, dense=tuple(t.to(device) for t in self.dense))


def causal(offset: int = 0) -> Mask:
    """Allow key j for query i if j <= i + offset."""
    return Mask(high=offset)


def window(left: int | None, right: int | None, offset: int = 0) -> Mask:
    """Allow key j for query i if i + offset - left <= j <= i + offset + right. None leaves a side open."""
    for name, side in (("left", left), ("right", right)):
        if side is not None and side < 0:
            raise ValueError(f"window: {name} is {side}, expected 0 or more, or None for an open side")
    return Mask(None if left is None else offset - left, None if right is None else offset + right)


def padding(keys: Bool[Tensor, "B S"]) -> Mask:
    """Allow the keys that exist: True for a token, False for padding."""
    if not isinstance(keys, Tensor) or keys.dtype != torch.bool or keys.ndim != 2:
        raise TypeError(f"padding: got {_mask_given(keys)}, expected a boolean (B, S) tensor, True for keys that exist")
    return Mask(keys=keys)


def dense(tensor: Bool[Tensor, "..."]) -> Mask:
    """Make a mask from a boolean tensor broadcastable to (B, H, L, S). True means "may attend"."""
    if not isinstance(tensor, Tensor) or tensor.dtype != torch.bool or tensor.ndim > 4:
        raise TypeError(
            f"mask: got {_mask_given(tensor)}, expected a boolean tensor of at most 4 axes (True means may attend); an "
            "additive mask goes into bias"
        )
    return Mask(dense=(tensor[(None,) * (4 - tensor.ndim)],))


def function(predicate: Predicate) -> Mask:
    """Make a mask from a function of positions: predicate(i, j) -> booleans, i of shape (r, 1), j of shape (1, c)."""
    if not callable(predicate):
        raise TypeError(f"mask function: got {_mask_given(predicate)}, expected a function of query and key positions")
    return Mask(functions=(predicate,))


def positions(index: Index, device: torch.device) -> Int[Tensor, " n"]:
    """Return the query or key positions of an index as a vector."""
    return torch.arange(index.start, index.stop, device=device) if isinstance(index, slice) else index


def run_of_index(index: Index, start: int, count: int) -> Index:
    """Return the part of an index with up to `count` positions from its entry `start` on."""
    if not isinstance(index, slice):
        return index[start : start + count]
    return slice(index.start + start, min(index.start + start + count, index.stop))


def select(tensor: Tensor, batch: Index, heads: Index, rows: Index, cols: Index) -> Tensor:
    """Return a tile's part of a broadcastable (B|1, H|1, L|1, S|1) tensor. Axes of size 1 stay 1.

    batch, heads, rows, cols: the tile's texts, heads, queries and keys. Slices return views, vectors copies.
    """
    for axis, index in enumerate((batch, heads, rows, cols)):
        if tensor.shape[axis] > 1:
            tensor = tensor[(slice(None),) * axis + (index,)]
    return tensor


def crop_axes(tensor: Tensor, batch: int, rows: slice, cols: slice) -> Tensor:
    """Return one text's part of a (B|1, H|1, L|1, S|1) tensor, (1, H|1, rows|1, cols|1). batch: the text's index."""
    tensor = tensor[batch : batch + 1] if tensor.shape[0] > 1 else tensor
    tensor = tensor[:, :, rows] if tensor.shape[2] > 1 else tensor
    return tensor[..., cols] if tensor.shape[3] > 1 else tensor


def _evaluate_mask_function(function: Predicate, i: Positions, j: Positions) -> Bool[Tensor, "r c"]:
    """Evaluate a mask function on a tile. A single True or False applies to the whole tile."""
    answer: Any = function(i, j)
    if isinstance(answer, bool):
        answer = torch.tensor(answer, device=i.device)
    shape = i.shape[0], j.shape[1]
    if not isinstance(answer, Tensor) or answer.dtype != torch.bool:
        kind = answer.dtype if isinstance(answer, Tensor) else type(answer).__name__
        raise TypeError(f"mask function: returned {kind}, expected a boolean tensor")
    tail = zip(reversed(answer.shape), reversed(shape), strict=False)
    if answer.ndim > 2 or any(a not in (1, b) for a, b in tail):
        got = tuple(answer.shape)
        raise ValueError(f"mask function: returned shape {got}, expected a shape that broadcasts to {shape}")
    return answer.expand(shape)


def _mask_given(value: Any) -> str:
    """Describe an argument for a mask in an error message."""
    return f"{value.dtype} of shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__


def _shifted_mask_function(predicate: Predicate, row: int, col: int) -> Predicate:
    return lambda i, j: predicate(i + row, j + col)
