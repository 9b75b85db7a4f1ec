"""Ablate heads and edges of the attention calls inside a block, or patch them: `attend` applies what is open.

with ablating([HeadAblation(layers={3}, heads={5}), EdgeAblation(queries=(11,), keys=(10,))]) as block:
    model(**inputs)
block.unmet          # ablations that applied to no call: a layer or path that does not exist

An ablated head still attends, its output is zero. An ablated edge has the score -inf, so that the softmax shares
its weight out among what is left, sinks included; a query that loses every key has output and weights 0. A
`patches.CallPatch` stands in the same list; what is done to the same place is done in the list's order.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from operator import index
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.edges import AXES, Edges
from regard.attention.patches import CallPatch, GivenWeights
from regard.errors import OutOfRangeError

Call = tuple[str, int]  # (path, n-th call of that path), as a record numbers them from where it was opened
CallPlace = int | str | Call  # a layer's number, a call's path or the scope around it, or (path, n)
Names = Callable[[str, int], str]  # what the n-th call of a path is called
Shape = tuple[int, int, int, int]  # (B, H, L, S)


@dataclass(frozen=True, kw_only=True)
class HeadAblation:
    """The output of heads is zero.

    layers: which calls: a layer's number, a call's path or the scope around it ("decoder"), or (path, n) for the n-th
    call of a path since the block was opened (layers that share their weights have one path). heads, and batch for the
    texts of a batch: numbers from 0. None is all of them.
    """

    layers: Collection[CallPlace] | None = None
    heads: Collection[int] | None = None
    batch: Collection[int] | None = None

    def __post_init__(self) -> None:
        _check_fields(self)


@dataclass(frozen=True, kw_only=True)
class EdgeAblation:
    """The scores from every one of the queries to every one of the keys are -inf.

    queries, keys: rows and columns of the call's own matrix, padding counted, from 0. The rest is as in `HeadAblation`.
    """

    layers: Collection[CallPlace] | None = None
    heads: Collection[int] | None = None
    queries: Collection[int] | None = None
    keys: Collection[int] | None = None
    batch: Collection[int] | None = None

    def __post_init__(self) -> None:
        _check_fields(self)


Ablation = HeadAblation | EdgeAblation | CallPatch

PIECE = 1 << 14  # numbers set to zero at once: from twice as many on, torch would wait for its other threads


class OpenAblations:
    """The ablations of one block, and which of them applied to a call so far.

    names: as in `ablating`.
    """

    def __init__(self, ablations: Sequence[Ablation], names: Names | None = None) -> None:
        self.ablations, self._names = tuple(ablations), names
        self._seen: dict[str, int] = {}
        self._met: set[int] = set()

    @property
    def unmet(self) -> tuple[Ablation, ...]:
        """The ablations that applied to no call so far."""
        return tuple(ablation for n, ablation in enumerate(self.ablations) if n not in self._met)

    def match(self, path: str, layer: int | None) -> list[Ablation]:
        """Count a call, which is made now, and return the ablations that apply to it."""
        nth = self._seen.get(path, 0)
        self._seen[path] = nth + 1
        if self._names is not None:
            path, layer = self._names(path, nth), None
        matches = [n for n, ablation in enumerate(self.ablations) if _applies(ablation, path, layer, nth)]
        self._met.update(matches)
        return [self.ablations[n] for n in matches]


class CallAblations(NamedTuple):
    """The ablations and patches that apply to one call, every number of them checked against its shape.

    outputs: those of the heads' outputs, in their order. weights: the rows of weights that are given, None for none.
    """

    ablations: tuple[Ablation, ...] = ()
    values: tuple[CallPatch, ...] = ()
    removed: tuple[Edges, ...] = ()
    weights: GivenWeights | None = None
    outputs: tuple[HeadAblation | CallPatch, ...] = ()


_open: ContextVar[tuple[OpenAblations, ...]] = ContextVar("regard_ablations", default=())


@contextmanager
def ablating(ablations: Sequence[Ablation], names: Names | None = None) -> Iterator[OpenAblations]:
    """Apply ablations to every attention call made inside the block, in this thread or task.

    Blocks nest: their ablations add up.

    names: what the n-th call of a path is called here, where paths do not tell calls apart; the layers of an ablation
    are then such names, or what they begin with, and no numbers. It is asked once for every call, in order.

    Raises:
        TypeError: something else than an ablation. A call with fewer texts, heads or positions than one of its
            ablations names raises `regard.errors.OutOfRangeError`.
    """
    for ablation in ablations:
        if not isinstance(ablation, Ablation):
            raise TypeError(
                f"ablating: given {type(ablation).__name__}, needs HeadAblation, EdgeAblation and CallPatch objects"
            )
    token = _open.set((*_open.get(), OpenAblations(ablations, names)))
    try:
        yield _open.get()[-1]
    finally:
        _open.reset(token)


def open_blocks() -> tuple[OpenAblations, ...]:
    """Return the open blocks, outermost first; none where nothing is ablated."""
    return _open.get()


def ablations_of_call(
    blocks: tuple[OpenAblations, ...], path: str, layer: int | None, shape: Shape, key_heads: int
) -> CallAblations:
    """Count a call, which is made now, in every block; return what is done to it.

    blocks: those open now, as `open_blocks` gives them. path, layer, shape (B, H, L, S), key_heads: of the call.

    Raises:
        OutOfRangeError: an ablation that applies names a text, head or position that the call does not have.
        PatchError: a patch has other sizes than the call.
    """
    ablations = tuple(ablation for block in blocks for ablation in block.match(path, layer))
    for ablation in ablations:
        of_values = isinstance(ablation, CallPatch) and ablation.what == "values"
        _check_range(ablation, path, (shape[0], key_heads, *shape[2:]) if of_values else shape)
    edges = [ablation for ablation in ablations if isinstance(ablation, EdgeAblation)]
    removed = tuple(Edges(shape, *(getattr(ablation, axis) for axis in AXES)) for ablation in edges)
    patches = [each for each in ablations if isinstance(each, CallPatch)]
    values = tuple(each for each in patches if each.what == "values")
    outputs = tuple(
        each
        for each in ablations
        if isinstance(each, HeadAblation) or (isinstance(each, CallPatch) and each.what == "head_outputs")
    )
    return CallAblations(ablations, values, removed, _given_weights(ablations, shape), outputs)


def change_outputs(
    output: Float[Tensor, "B H L E"], changes: tuple[HeadAblation | CallPatch, ...]
) -> Float[Tensor, "B H L E"]:
    """Set the output of ablated heads to zero and put patched rows in, in order; in place, except where gradients flow.

    Raises:
        PatchError: a patch has other sizes than the output.
    """
    if output.requires_grad and not all(isinstance(each, HeadAblation) for each in changes):
        output = output.clone()
    for change in changes:
        if isinstance(change, HeadAblation):
            output = _zero_heads(output, change)
        else:
            change.put(output)
    return output


def _zero_heads(output: Float[Tensor, "B H L E"], ablation: HeadAblation) -> Float[Tensor, "B H L E"]:
    """Set the output of heads to zero: in place, except where a graph of gradients may hold on to it."""
    zeroed = [
        (text, head)
        for text in (range(output.shape[0]) if ablation.batch is None else ablation.batch)
        for head in (range(output.shape[1]) if ablation.heads is None else ablation.heads)
    ]
    if output.requires_grad:
        left = torch.ones(*output.shape[:2], 1, 1, dtype=torch.bool)
        for text_head in zeroed:
            left[text_head] = False
        return output.masked_fill(~left.to(output.device), 0.0)
    lines = max(1, PIECE // max(1, output.shape[3]))
    for text_head in zeroed:
        for piece in output[text_head].split(lines):
            piece.zero_()
    return output


def _given_weights(ablations: tuple[Ablation, ...], shape: Shape) -> GivenWeights | None:
    """The rows of weights that patches give, without the edges that are ablated after them."""
    if not any(isinstance(each, CallPatch) and each.what == "weights" for each in ablations):
        return None
    given = GivenWeights()
    for each in ablations:
        if isinstance(each, EdgeAblation):
            edges = Edges(shape, *(getattr(each, axis) for axis in AXES))
            given.remove(*(edges.numbers(axis) for axis in AXES))
        elif isinstance(each, CallPatch) and each.what == "weights":
            given.take(each, shape)
    return given


def _applies(ablation: Ablation, path: str, layer: int | None, nth: int) -> bool:
    if ablation.layers is None:
        return True
    for place in ablation.layers:
        if isinstance(place, int):
            held = place == layer
        elif isinstance(place, str):
            held = path == place or path.startswith(f"{place}.")
        else:
            held = place == (path, nth)
        if held:
            return True
    return False


def _check_fields(ablation: Ablation) -> None:
    """Sort an ablation's numbers; raise TypeError or ValueError for what no call could have."""
    for field in fields(ablation):
        name, given = field.name, getattr(ablation, field.name)
        if given is None:
            continue
        if isinstance(given, str) or not isinstance(given, Collection):
            raise TypeError(f"{name}: given {given!r}, needs a collection such as {{3, 5}}, or None for all")
        if len(given) == 0:
            raise ValueError(f"{name}: given none, needs at least one, or None for all")
        layers = name == "layers"
        kept = (
            (_check_place(each) for each in given) if layers else sorted({_check_number(name, each) for each in given})
        )
        object.__setattr__(ablation, name, tuple(kept))


def _check_place(place: Any) -> CallPlace:
    if isinstance(place, tuple) and len(place) == 2 and isinstance(place[0], str):
        return place[0], _check_number("layers", place[1])
    return place if isinstance(place, str) else _check_number("layers", place)


def _check_number(name: str, given: Any) -> int:
    try:
        number = index(given)
    except TypeError:
        number = None
    if number is None or isinstance(given, bool):
        raise TypeError(f"{name}: given {given!r}, needs integers{' or paths' if name == 'layers' else ''}")
    if number < 0:
        raise ValueError(f"{name}: given {number}, needs numbers from 0 on")
    return number


def _check_range(ablation: Ablation, path: str, shape: Shape) -> None:
    for axis, size in zip(AXES, shape, strict=True):
        numbers = getattr(ablation, axis, None)
        if numbers and numbers[-1] >= size:
            where = f"the call {path!r}" if path else "this call"
            there = f"0 to {size - 1}" if size else "none, it is empty"
            message = f"{axis}: given {numbers[-1]}, needs numbers that {where} has: {there}"
            raise OutOfRangeError(message, axis=axis, given=numbers[-1], size=size)
