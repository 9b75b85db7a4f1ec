"""What was kept of some layers only: a sequence of all of them that refuses, by name, those that were not."""

import operator
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, overload

from regard.errors import OutOfRangeError, RegardError

T = TypeVar("T")


class Layers(tuple[T, ...]):
    """One item a layer, all of them kept. A number beyond them raises an error that names the range.

    what: how the items are called, for messages.
    """

    what = "layers"

    @staticmethod
    def of(what: str, items: "tuple[T, ...]") -> "Layers[T]":
        """The items of a tuple, called so."""
        layers = Layers(items)
        layers.what = what
        return layers

    def __getitem__(self, number: Any) -> Any:
        return super().__getitem__(number if isinstance(number, slice) else _place(self.what, number, len(self)))


class LayerSubset(Sequence[T]):
    """One item a layer, some of them not kept. len() counts all; an item that was not kept raises RegardError.

    what: how the items are called, for messages. kept: their numbers, in order.
    """

    def __init__(self, what: str, size: int, items: Mapping[int, T]) -> None:
        self._what, self._size, self._items = what, size, dict(sorted(items.items()))

    @property
    def kept(self) -> tuple[int, ...]:
        """The numbers of the items that there are."""
        return tuple(self._items)

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, number: int) -> T: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[T]: ...
    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return tuple(self[n] for n in range(self._size)[number])
        place = _place(self._what, number, self._size)
        if place not in self._items:
            there = ", ".join(map(str, self._items)) or "none"
            raise RegardError(
                f"{self._what}[{place}] was not kept: of {self._size} this trace holds {there}; trace with that layer "
                "in layers=, or without layers= for all"
            )
        return self._items[place]

    def __repr__(self) -> str:
        return (
            f"LayerSubset({self._what!r}, {len(self._items)} of {self._size} kept: {', '.join(map(str, self._items))})"
        )


def _place(what: str, number: Any, size: int) -> int:
    """The number counted from 0. Raises OutOfRangeError, an IndexError, where there is no such item."""
    place = operator.index(number)
    if not -size <= place < size:
        there = f"{-size} to {size - 1}" if size else "none"
        raise OutOfRangeError(f"{what}[{place}]: there is no such layer; there are {size} ({there})")
    return place % size
