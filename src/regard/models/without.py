"""Cuts in the words of a person: a head of a layer, an edge from one word to another."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from regard.attention.cuts import Cut, EdgeCut, HeadCut
from regard.errors import RegardError
from regard.tokens import Encoded, Word, find_word

Place = str | Word | int


@dataclass(frozen=True)
class Head:
    """The output of one head of one layer is zero."""

    layer: int
    head: int

    def __str__(self) -> str:
        return f"head {self.head} of layer {self.layer}"


@dataclass(frozen=True)
class Edge:
    """What one word or token may not look at: in some layers and heads, None for all of them."""

    query: Place
    key: Place
    layers: tuple[int, ...] | None = None
    heads: tuple[int, ...] | None = None

    def __str__(self) -> str:
        where = "all layers" if self.layers is None else f"layers {', '.join(map(str, self.layers))}"
        whose = "" if self.heads is None else f", heads {', '.join(map(str, self.heads))}"
        query, key = (p.text if isinstance(p, Word) else p for p in (self.query, self.key))
        return f"{query!r} may not look at {key!r} in {where}{whose}"


def head(layer: int, head: int) -> Head:
    """A head to cut, for `model.trace(text, without=[...])`; layers and heads count from 0."""
    return Head(layer, head)


def edge(
    query: Place, key: Place, *, layers: int | Collection[int] | None = None, heads: int | Collection[int] | None = None
) -> Edge:
    """An edge to cut: query and key are words (all their occurrences), occurrences, or numbers of tokens."""
    return Edge(query, key, _numbers(layers), _numbers(heads))


def cuts_of(without: Sequence[Any], text: Encoded, number: int, sizes: tuple[int, int], name: str) -> list[Cut]:
    """The door's cuts for text number of a batch. sizes: the model's layers and heads.

    Raises:
        RegardError: a layer, head, word or token that does not exist; what was given and the range are named.
    """
    cuts: list[Cut] = []
    for each in without:
        if isinstance(each, Head):
            _in_range("layer", [each.layer], sizes[0], name)
            _in_range("head", [each.head], sizes[1], name)
            cuts.append(HeadCut(layers={each.layer}, heads={each.head}, batch={number}))
        elif isinstance(each, Edge):
            _in_range("layer", each.layers or (), sizes[0], name)
            _in_range("head", each.heads or (), sizes[1], name)
            queries, keys = _tokens(text, each.query), _tokens(text, each.key)
            cuts.append(EdgeCut(layers=each.layers, heads=each.heads, queries=queries, keys=keys, batch={number}))
        else:
            raise RegardError(f"without: given {type(each).__name__}, needs regard.head(...) and regard.edge(...)")
    return cuts


def _tokens(text: Encoded, place: Place) -> list[int]:
    if isinstance(place, int):
        _in_range("token", [place], len(text.tokens), "the text")
        return [place]
    words = [place] if isinstance(place, Word) else find_word(text.text, text.tokens, place)
    return sorted({token for word in words for token in word.tokens})


def _in_range(what: str, numbers: Collection[int], size: int, name: str) -> None:
    for number in numbers:
        if not 0 <= number < size:
            raise RegardError(f"without: {what} {number} is out of range, {name} has {what}s 0 to {size - 1}")


def _numbers(given: int | Collection[int] | None) -> tuple[int, ...] | None:
    if given is None:
        return None
    return (given,) if isinstance(given, int) else tuple(given)
