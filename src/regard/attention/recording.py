"""Record the attention calls inside a block, or wrap each of them in a hook. Outside a block, nothing is kept.

with regard.record() as calls:
    with scope("encoder.layer.3"):
        regard.attend(query, key, value)
calls["encoder.layer.3", 0].weights[0, :, 5]

Records keep detached tensors. A `CallHook` receives query and key with their autograd graph and may replace the
output. Gradient passes need this.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from regard.attention.ablation import Ablation
from regard.attention.attention_map import AttentionMap
from regard.attention.map_statistics import Statistics
from regard.errors import RegardError
from regard.lazy import from_above
from regard.shown import Showable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HOW = {  # descriptions of calls that `regard.watch` recorded, by kernel
    "sdpa": "scaled_dot_product_attention",
    "flex": "flex_attention",
    "softmax(q·k)": "by hand, softmax of q·k",
    "softmax(learned)": "by hand, softmax of learned scores",
    "softmax": "by hand, softmax",
    "file": "read from a file",
}
KEEPABLE = ("value", "output", "logsumexp")

_path: ContextVar[tuple[str, ...]] = ContextVar("regard_path", default=())
call_namer: ContextVar[Callable[[], str] | None] = ContextVar("regard_call_namer", default=None)  # outside scopes
open_records: ContextVar[tuple["Calls", ...]] = ContextVar("regard_records", default=())  # outermost first


class LazyMap:
    """A map that is created when you first read it. shape: the map's shape.

    Reading it raises an error if one of its tensors has changed since the call.
    """

    def __init__(
        self, path: str, shape: Sequence[int], tensors: Sequence[Tensor], make: Callable[[], AttentionMap]
    ) -> None:
        self._path, self.shape, self._tensors, self._make = path, tuple(shape), tensors, make
        self._versions = self._tensor_versions()
        self._map: AttentionMap | None = None

    def read(self) -> AttentionMap:
        """Return the attention map, created on first read. Raises RegardError if one of its tensors has changed."""
        if self._versions != self._tensor_versions():
            raise RegardError(f"{self._path}: its tensors changed after the call: watch with copy=True")
        self._map = self._map or self._make()
        return self._map

    def _tensor_versions(self) -> list[int]:
        return [0 if tensor.is_inference() else tensor._version for tensor in self._tensors]


@dataclass(frozen=True, eq=False)
class Call(Showable):
    """One recorded attention call, detached. Tensors that weren't kept are None.

    weights: a map that refers to query and key. value (B, G, S, E), output (B, H, L, E), logsumexp (B, H, L).
    ablations: the ablations of this call. Ablated edges have weight 0. An ablated head keeps its weights and has
    output 0. where: file and line of the call, if `regard.watch` recorded it. labels: the query and key labels
    (`regard.trace.labelled_map.Labels`), if the call was read from a file with labels.
    """

    path: str
    nth: int
    kernel: str
    source: AttentionMap | LazyMap = field(repr=False)
    value: Float[Tensor, "..."] | None
    output: Float[Tensor, "..."] | None
    logsumexp: Float[Tensor, "..."] | None
    ablations: tuple[Ablation, ...] = ()
    where: str = ""
    labels: Sequence[Any] = (None, None)

    def __repr__(self) -> str:
        return f"Call({self.path!r}, {self.nth}: {self.kernel}, weights {self.source.shape})"

    @property
    def weights(self) -> AttentionMap:
        """Return the attention map of the recorded call."""
        return self.source.read() if isinstance(self.source, LazyMap) else self.source

    @property
    def how(self) -> str:
        """Describe how the attention call was computed."""
        return HOW.get(self.kernel, f"regard.attend ({self.kernel})")

    @property
    def layer(self) -> int | None:
        """Return the layer number of the call: the first number in its path, or None without a number."""
        return layer_of_call_path(self.path)


MAX_LISTED_CALLS = 8


class Calls(Showable, dict[tuple[str, int], Call]):
    """The recorded calls in execution order, keyed by (path, n-th call of that path).

    If a path has a single call, `calls["layers.3"]` returns it.
    """

    def __init__(
        self, layers: Collection[int] | None, keep: Collection[str], statistics: Statistics | None = None
    ) -> None:
        super().__init__()
        self._layers, self._keep = layers, keep
        self.statistics = statistics
        self._seen: dict[str, int] = {}

    def __repr__(self) -> str:
        lines = [f"  {key}: {call.kernel}, weights {call.source.shape}" for key, call in self.items()]
        return "\n".join([f"Calls: {len(self)}", *lines[:MAX_LISTED_CALLS], *["  …"] * (len(lines) > MAX_LISTED_CALLS)])

    def __missing__(self, key: str | tuple[str, int]) -> Call:
        calls = [call for call in self.values() if call.path == key]
        if len(calls) == 1:
            return calls[0]
        if calls:
            raise KeyError(f"{key!r} made {len(calls)} calls: use ({key!r}, 0) for its first")
        paths = list(dict.fromkeys(call.path for call in self.values()))
        names = ", ".join(map(repr, paths[:MAX_LISTED_CALLS])) + ", …" * (len(paths) > MAX_LISTED_CALLS)
        raise KeyError(f"{key!r} has no recorded call; these have calls: {names or 'none'}")

    def plot(self, key: Any, head: int | None = None, **options: Any) -> "Axes":  # type: ignore[override]
        """Draw the weights of one call like `Call.plot`. key: its path, or (path, n-th call)."""
        call = self[key] if isinstance(key, tuple) else self.__missing__(key)
        return call.plot(head, **options)

    def save(
        self, file: str | Path, *, tokens: Sequence[Any] | None = None, key_tokens: Sequence[Any] | None = None
    ) -> None:
        """Write queries, keys, masks and biases, or given weights, to a safetensors file for `regard.open`.

        Values and outputs are left out. tokens, key_tokens: labels, as in `regard.plot`. Raises RegardError if labels
        don't fit a call or there are no calls, ValueError if a mask function covers too many scores to save.
        """
        from_above("save_calls")(self, file, tokens, key_tokens)

    def _repr_html_(self) -> str:
        """Return a table of the recorded attention calls as HTML."""
        return from_above("calls_html")(self)

    def lines_below(self) -> list[str]:
        """Return the lines below the table of the recorded calls."""
        return []

    def wants(self, path: str) -> bool:
        """Return whether calls with this path are recorded."""
        return self._layers is None or layer_of_call_path(path) in self._layers

    def add(
        self, path: str, kernel: str, weights: AttentionMap | LazyMap, ablations: tuple[Ablation, ...] = (),
        where: str = "", **tensors: Tensor | None,
    ) -> None:  # fmt: skip
        """Record one call. Skipped calls are counted too, so call numbers don't depend on the selected layers.

        Args:
            path: of the module that made the call.
            kernel: the name of the kernel that computed the call.
            weights: its attention map, or a `LazyMap` that creates it.
            ablations: the ablations of this call.
            where: the file and line of the call.
            tensors: the available tensors, by their `KEEPABLE` names.
        """
        nth = self._seen.get(path, 0)
        self._seen[path] = nth + 1
        if self.wants(path):
            detached = {name: tensor.detach() for name, tensor in tensors.items() if tensor is not None}
            requested: dict[str, Any] = {name: detached.get(name) if name in self._keep else None for name in KEEPABLE}
            self.take(Call(path, nth, kernel, weights, **requested, ablations=ablations, where=where))

    def take(self, call: Call) -> None:
        """Keep a recorded call."""
        self[call.path, call.nth] = call


@contextmanager
def record(
    layers: Collection[int] | None = None, keep: Collection[str] | None = None, statistics: bool | Statistics = False
) -> Iterator[Calls]:
    """Record all attention calls inside the block, in this thread or task.

    layers: the layer numbers to record (the first number of a call's path), None for all. keep: which of "value",
    "output" and "logsumexp" to keep by reference, in addition to query and key. None means only value.

    statistics: to compute with each recorded call, as in `attend`.

    Raises:
        TypeError, ValueError: keep or statistics has an invalid value.
    """
    keep = ("value",) if keep is None else tuple(keep)
    unknown = [name for name in keep if name not in KEEPABLE]
    if unknown:
        raise ValueError(f"record: keep: got {unknown[0]!r}, expected one of {', '.join(KEEPABLE)}")
    calls = Calls(None if layers is None else frozenset(layers), keep, Statistics.of(statistics))
    token = open_records.set((*open_records.get(), calls))
    try:
        yield calls
    finally:
        open_records.reset(token)


@contextmanager
def scope(path: str) -> Iterator[None]:
    """Set the path of the calls inside the block. Nested scopes are joined by dots."""
    token = _path.set((*_path.get(), path))
    try:
        yield
    finally:
        _path.reset(token)


def wanted_statistics() -> Statistics | None:
    """Return the statistics requested by the innermost `record` block that records the current call, or None."""
    records = open_records.get()
    if not any(calls.statistics for calls in records):
        return None
    path = current_call_path()
    return next((calls.statistics for calls in reversed(records) if calls.statistics and calls.wants(path)), None)


def current_call_path() -> str:
    """Return the path of the current attention call."""
    scopes, namer = _path.get(), call_namer.get()
    return namer() if namer is not None and not scopes else ".".join(scopes)


def layer_of_call_path(path: str) -> int | None:
    """Return the first component of a dotted path that is a number; None if there is none."""
    match = re.search(r"(?:^|\.)(\d+)(?:\.|$)", path)
    return int(match[1]) if match else None


@runtime_checkable
class CallHook(Protocol):
    """A hook around a call."""

    def before(
        self, query: Float[Tensor, "B H L D"], key: Float[Tensor, "B G S D"], value: Float[Tensor, "B G S E"]
    ) -> tuple[Float[Tensor, "B H L D"], Float[Tensor, "B G S D"], Float[Tensor, "B G S E"]]:
        """Return the query, key and value to compute the attention call with."""

    def after(
        self, weights: AttentionMap, value: Float[Tensor, "B G S E"], output: Float[Tensor, "B H L E"]
    ) -> Float[Tensor, "B H L E"]:
        """Return the attention call's output, unchanged or replaced."""


open_hook: ContextVar[CallHook | None] = ContextVar("regard_call_hook", default=None)  # the innermost


@contextmanager
def hooked_calls(hook: CallHook) -> Iterator[None]:
    """Put a hook around all attention calls inside the block, in this thread or task. Only the innermost is used."""
    token = open_hook.set(hook)
    try:
        yield
    finally:
        open_hook.reset(token)
