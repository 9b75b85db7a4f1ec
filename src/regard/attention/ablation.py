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

from regard.attention.patches import CallPatch

Call = tuple[str, int]  # (path, n-th call of that path), as a record numbers them from where it was opened
CallPlace = int | str | Call  # a layer's number, a call's path or the scope around it, or (path, n)
Names = Callable[[str, int], str]  # what the n-th call of a path is called


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
        _sort_numbers(self)


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
        _sort_numbers(self)


Ablation = HeadAblation | EdgeAblation | CallPatch


class OpenAblations:
    """The ablations of one block, and which of them applied to a call so far."""

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


open_blocks: ContextVar[tuple[OpenAblations, ...]] = ContextVar("regard_ablations", default=())  # outermost first


@contextmanager
def ablating(ablations: Sequence[Ablation], names: Names | None = None) -> Iterator[OpenAblations]:
    """Apply ablations to every attention call made inside the block, in this thread or task.

    Blocks nest: their ablations add up.

    names: what the n-th call of a path is called here, where paths do not tell calls apart; the layers of an ablation
    are then such names, or what they begin with, and no numbers. It is asked once for every call, in order.
    """
    token = open_blocks.set((*open_blocks.get(), OpenAblations(ablations, names)))
    try:
        yield open_blocks.get()[-1]
    finally:
        open_blocks.reset(token)


def _applies(ablation: Ablation, path: str, layer: int | None, nth: int) -> bool:
    if ablation.layers is None:
        return True
    for place in ablation.layers:
        if isinstance(place, int):
            applies = place == layer
        elif isinstance(place, str):
            applies = path == place or path.startswith(f"{place}.")
        else:
            applies = place == (path, nth)
        if applies:
            return True
    return False


def _sort_numbers(ablation: Ablation) -> None:
    for field in fields(ablation):
        numbers = getattr(ablation, field.name)
        if numbers is not None:
            own = numbers if field.name == "layers" else sorted(set(numbers))
            object.__setattr__(ablation, field.name, tuple(own))
