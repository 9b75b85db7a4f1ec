"""Cuts in the words of a person: a head of a layer, an edge from one word to another."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal, get_args

from regard.errors import RegardError
from regard.text.words import Word

Place = str | Word | int
Part = Literal["encoder", "decoder", "cross"]
PARTS: tuple[Part, ...] = get_args(Part)

OF: dict[Part | None, str] = {
    None: "",
    "encoder": " of the encoder",
    "decoder": " of the decoder",
    "cross": " of the cross-attention",
}


@dataclass(frozen=True)
class Head:
    """The output of one head of one layer is zero. part: of an encoder-decoder, which attention is meant."""

    layer: int
    head: int
    part: Part | None = None

    def __str__(self) -> str:
        return f"head {self.head} of layer {self.layer}{OF[self.part]}"


@dataclass(frozen=True)
class Edge:
    """What one word or token may not look at: in some layers and heads, None for all of them.

    part: of an encoder-decoder, which attention is meant. Words are of the text in the encoder, of the target in the
    decoder; in cross-attention the query is of the target and the key of the text.
    """

    query: Place
    key: Place
    layers: tuple[int, ...] | None = None
    heads: tuple[int, ...] | None = None
    part: Part | None = None

    def __str__(self) -> str:
        where = "all layers" if self.layers is None else f"layers {', '.join(map(str, self.layers))}"
        whose = "" if self.heads is None else f", heads {', '.join(map(str, self.heads))}"
        query, key = (p.text if isinstance(p, Word) else p for p in (self.query, self.key))
        return f"{query!r} may not look at {key!r} in {where}{OF[self.part]}{whose}"


def head(layer: int, head: int, *, part: Part | None = None) -> Head:
    """A head to cut, for `model.trace(text, without=[...])`; layers count as in `trace.attention`, from 0, as heads do.

    part: of an encoder-decoder "encoder" or "decoder" (self-attention), or "cross", numbered as `decoder.cross`.

    Raises:
        RegardError: a layer or head that is no number from 0 on, or a part of another name.
    """
    _part(part)
    return Head(_number("layer", layer), _number("head", head), part)


def edge(
    query: Place,
    key: Place,
    *,
    layers: int | Collection[int] | None = None,
    heads: int | Collection[int] | None = None,
    part: Part | None = None,
) -> Edge:
    """An edge to cut: query and key are words (all their occurrences), occurrences, or numbers of tokens.

    layers, heads, part: as in `head`; without layers and heads in all of them. In "cross" the query is a word of the
    target and the key one of the text.

    Raises:
        RegardError: a layer or head that is no number from 0 on, or a part of another name.
    """
    _part(part)
    return Edge(query, key, _numbers("layer", layers), _numbers("head", heads), part)


def _part(part: Any) -> None:
    if part is not None and part not in PARTS:
        raise RegardError(f"part: given {part!r}, needs one of {', '.join(map(repr, PARTS))}")


def _number(what: str, given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise RegardError(f"{what}: given {given!r}, needs a number from 0 on")
    return given


def _numbers(what: str, given: Any) -> tuple[int, ...] | None:
    if given is None:
        return None
    found = tuple(_number(what, each) for each in ((given,) if isinstance(given, (int, str)) else given))
    if not found:
        raise RegardError(f"{what}s: given none, needs at least one, or None for all")
    return found
