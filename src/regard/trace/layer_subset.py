"""Sequences of one item a layer: `Layers`, which has them all, and `LayerSubset`, which refuses those it has not."""

import operator
from collections.abc import Mapping, Sequence
from typing import Any, SupportsIndex, TypeVar, overload

from regard.errors import OutOfRangeError, RegardError

T = TypeVar("T")

# why an item of a LayerSubset is missing, after its name and number
NOT_CAPTURED = (
    "was not kept: of {count} this trace holds {kept}; trace with that layer in layers=, or without layers= for all"
)
NOT_SAVED = "was not saved: of {count} the file holds {kept}"


def kept_numbers(items: Sequence[Any]) -> tuple[int, ...]:
    """The numbers of the layers that a sequence has items of."""
    return items.kept if isinstance(items, LayerSubset) else tuple(range(len(items)))


def _from_zero(what: str, number: SupportsIndex, size: int) -> int:
    """The number counted from 0. Raises OutOfRangeError, an IndexError, where there is no such item."""
    place = operator.index(number)
    if not -size <= place < size:
        there = f"{-size} to {size - 1}" if size else "none"
        raise OutOfRangeError(f"{what}[{place}]: there is no such layer; there are {size} ({there})")
    return place % size


class Layers(tuple[T, ...]):
    """A tuple of one item a layer. A number out of range raises an OutOfRangeError that names the range.

    what: how the items are called, for messages.
    """

    what = "layers"

    @staticmethod
    def of(what: str, items: "tuple[T, ...]") -> "Layers[T]":
        """The items of a tuple, under a name."""
        layers = Layers(items)
        layers.what = what
        return layers

    @overload
    def __getitem__(self, number: SupportsIndex) -> T: ...
    @overload
    def __getitem__(self, number: slice) -> tuple[T, ...]: ...
    def __getitem__(self, number: SupportsIndex | slice) -> T | tuple[T, ...]:
        return super().__getitem__(number if isinstance(number, slice) else _from_zero(self.what, number, len(self)))


class LayerSubset(Sequence[T]):
    """One item a layer, of some layers alone. len() counts all; an item that is missing raises a RegardError.

    what: how the items are called, for messages. kept: the numbers of those that there are, in order. reason: why the
    others are missing, `NOT_CAPTURED` or `NOT_SAVED`.
    """

    def __init__(self, what: str, size: int, items: Mapping[int, T], *, reason: str = NOT_CAPTURED) -> None:
        self._what, self._size, self._items, self._reason = what, size, dict(sorted(items.items())), reason

    @property
    def kept(self) -> tuple[int, ...]:
        """The numbers of the items that there are."""
        return tuple(self._items)

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, number: SupportsIndex) -> T: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[T]: ...
    def __getitem__(self, number: SupportsIndex | slice) -> T | Sequence[T]:
        if isinstance(number, slice):
            return tuple(self[n] for n in range(self._size)[number])
        place = _from_zero(self._what, number, self._size)
        if place not in self._items:
            kept = ", ".join(map(str, self._items)) or "none"
            raise RegardError(f"{self._what}[{place}] {self._reason.format(count=self._size, kept=kept)}")
        return self._items[place]

    def __repr__(self) -> str:
        return (
            f"LayerSubset({self._what!r}, {len(self._items)} of {self._size} kept: {', '.join(map(str, self._items))})"
        )
