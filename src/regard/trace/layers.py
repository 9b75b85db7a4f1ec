"""A sequence with one item per layer, which raises errors for missing layers.

The index is always the layer number, even if some layers have no attention (hybrids) or make several calls
(DiffLlama). `maps[n]` is the map of layer n, and `maps[n, k]` is the map of its k-th call.
"""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, SupportsIndex, TypeVar, overload

from regard.checks import is_whole
from regard.errors import OutOfRangeError, RegardError

T = TypeVar("T")
U = TypeVar("U")

# reasons why an item is missing, for messages after its name and number
NOT_CAPTURED = (
    "was not kept: of {count} this trace holds {kept}; trace with that layer in layers=, or without layers= for all"
)
NOT_SAVED = "was not saved: the file has {kept} of {count}"
NO_ATTENTION = "is not there: layer {layer} has no such attention; of {count} layers these have: {having}"

SHOWN = 12  # maximum number of layers in a notebook
CallNumber = tuple[int, int]  # (layer, number of the call in the layer)


def kept_numbers(items: Sequence[Any]) -> tuple[int, ...]:
    """Return the numbers of the layers for which a sequence has items."""
    return items.kept if isinstance(items, Layers) else tuple(range(len(items)))


class Layers(Sequence[T]):
    """Items of all or some layers, or several per layer. len() counts all layers. Missing items raise RegardError.

    To iterate with the numbers of layers, use `for n, weights in maps.items()`, which skips missing items,
    `for n in maps.kept: maps[n]`, or `for n, k in maps.calls: maps[n, k]`.

    what: the name of the items, for error messages. items: by layer, or by (layer, call number). reason: why others
    are missing, `NOT_CAPTURED` or `NOT_SAVED`. made: all calls that the layers made. Default: one per layer.
    kept: the numbers of the layers with items. calls: (layer, call number) of each item.
    """

    def __init__(
        self,
        what: str,
        size: int,
        items: Mapping[int, T] | Mapping[CallNumber, T],
        *,
        reason: str = NOT_CAPTURED,
        made: Sequence[CallNumber] | None = None,
    ) -> None:
        self.what, self._size, self._reason = what, size, reason
        numbered = {key if isinstance(key, tuple) else (key, 0): item for key, item in items.items()}
        self._items: dict[CallNumber, T] = dict(sorted(numbered.items()))
        self._one_call_each: tuple[CallNumber, ...] = tuple((n, 0) for n in range(size))
        self.made = self._one_call_each if made is None else tuple(made)
        self.kept = tuple(dict.fromkeys(layer for layer, _ in self._items))
        self.calls = tuple(self._items)

    @staticmethod
    def of(what: str, items: Sequence[T]) -> "Layers[T]":
        """Make a sequence of all layers."""
        return Layers(what, len(items), dict(enumerate(items)))

    def items(self) -> Iterator[tuple[int, T]]:
        """Iterate over (layer number, item): `for n, weights in trace.attention.items()`.

        A layer with several calls occurs several times.
        """
        return ((layer, item) for (layer, _), item in self._items.items())

    def map(self, function: Callable[[T], U]) -> "Layers[U]":
        """Apply a function to each item. Returns a subset with the same layers and calls."""
        items = {call: function(item) for call, item in self._items.items()}
        return Layers(self.what, self._size, items, reason=self._reason, made=self.made)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[T]:
        """Iterate over the items if each layer has exactly one, otherwise raise RegardError."""
        if self.calls == self._one_call_each:
            return iter(self._items.values())
        reason = f"of {self._size} it holds {', '.join(map(str, self.kept)) or 'none'}"
        walk, index = ("n in {0}.kept", "{0}[n]")
        if len(self.kept) < len(self._items):
            reason, walk, index = "its layers make several calls", "n, k in {0}.calls", "{0}[n, k]"
        walk, index = walk.format(self.what), index.format(self.what)
        raise RegardError(
            f"{self.what} cannot be walked along, for {reason}, and their numbers would be lost: [{index} for {walk}]"
        )

    @overload
    def __getitem__(self, number: SupportsIndex | CallNumber) -> T: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[T]: ...
    def __getitem__(self, number: SupportsIndex | CallNumber | slice) -> T | Sequence[T]:
        if isinstance(number, slice):
            return tuple(self[n] for n in range(self._size)[number])
        if isinstance(number, tuple) and len(number) != 2:
            index = ", ".join(map(repr, number))
            raise RegardError(f"{self.what}[{index}]: needs a layer, or a layer and one of its calls")
        layer, nth = number if isinstance(number, tuple) else (number, 0)
        if not is_whole(layer):
            words = f", and words after it: {self.what}[0][{layer!r}]" if isinstance(layer, str) else ""
            raise RegardError(f"{self.what}[{layer!r}]: needs the number of a layer{words}")
        layer, size = operator.index(layer), self._size
        if not -size <= layer < size:
            valid = f"{-size} to {size - 1}" if size else "none"
            raise OutOfRangeError(f"{self.what}[{layer}]: there is no such layer; there are {size} ({valid})")
        layer %= size
        if (layer, nth) in self._items:
            return self._items[layer, nth]
        layers = [layer for layer, _ in self.made]
        if layer in layers:
            _check_nth(self.what, layer, nth, layers.count(layer))
        reason, having = (self._reason if layer in layers else NO_ATTENTION), dict.fromkeys(layers)
        listed = {"kept": ", ".join(map(str, self.kept)) or "none", "having": ", ".join(map(str, having)) or "none"}
        raise RegardError(f"{self.what}[{layer}] {reason.format(count=self._size, layer=layer, **listed)}")

    def __repr__(self) -> str:
        if self.calls != self._one_call_each:
            return f"Layers({self.what!r}, {len(self.kept)} of {self._size} kept: {', '.join(map(str, self.kept))})"
        kinds = ", ".join(dict.fromkeys(type(item).__name__ for item in self._items.values()))
        return f"Layers({self.what!r}, {self._size} × {kinds})"

    def _repr_html_(self) -> str | None:
        """Return HTML of the first items for a notebook, or None if the items have no HTML."""
        parts = [(n, getattr(item, "_repr_html_", lambda: None)()) for n, item in [*self.items()][:SHOWN]]
        left = f"<p>… and {len(self.calls) - SHOWN} more</p>" if len(self.calls) > SHOWN else ""
        return "".join(f"<b>{self.what}[{n}]</b>{html}" for n, html in parts if html) + left or None


def _check_nth(name: str, layer: int, nth: SupportsIndex, count: int) -> None:
    """Raise OutOfRangeError if the layer doesn't make a call with this number."""
    if not is_whole(nth):
        words = f": words stand after both, {name}[{layer}][{nth!r}]" if isinstance(nth, str) else ""
        raise RegardError(f"{name}[{layer}, {nth!r}]: needs the number of one of the layer's calls{words}")
    if not 0 <= operator.index(nth) < count:
        calls = "one attention call" if count == 1 else f"{count} attention calls (0 to {count - 1})"
        raise OutOfRangeError(f"{name}[{layer}, {nth}]: there is no such call; layer {layer} makes {calls}")
