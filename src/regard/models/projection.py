"""Watch one forward pass and find what the model does with each attention call's context.

The context is followed through the operations themselves, whatever the modules around them are called: it has to go
straight into one linear map (W_O), what comes out straight into a sum with something that was there before (the
residual), and the sum has to go on as the residual stream itself (pre-norm) or through one layer norm (post-norm).
Anything else is noted as unverified, with the operation that was seen; nobody is refused before contributions are
asked for.
"""

import functools
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from regard.blocks import Block, Norm, Unverified

ODD = "what leaves the block is neither of pre-norm nor of post-norm shape"
ADDS = ("add", "__add__", "__radd__", "add_", "__iadd__")

_watching: ContextVar["_Follower | None"] = ContextVar("regard_projections", default=None)


@contextmanager
def projections() -> Iterator[list[Block | Unverified]]:
    """Follow every context that is announced inside the block. The list is filled at its end, one entry a call."""
    found: list[Block | Unverified] = []
    follower = _Follower()
    token = _watching.set(follower)
    try:
        with follower:
            yield found
    finally:
        _watching.reset(token)
    found.extend(way.block() for way in follower.ways)


def announce(context: Float[Tensor, "B L H E"], module: nn.Module) -> None:
    """Say that a module's attention returns this very tensor; costs nothing where nobody watches."""
    follower = _watching.get()
    if follower is not None:
        follower.start(context, type(module).__name__)


@dataclass
class _Seen:
    """One operation that read a followed tensor. args are as they were before it, also where it wrote into one."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Tensor | None
    storage: int  # the followed one
    storages: list[int]  # of the arguments, as given

    @property
    def adds(self) -> bool:
        """Whether it is the plain sum of two tensors."""
        return self.name in ADDS and len(self.storages) == 2 and 0 not in self.storages and not self.kwargs


class _Way:
    """How far one context was followed, and what was found on the way."""

    def __init__(self, context: Tensor, name: str) -> None:
        self.name = name
        self.batch, self.length, heads, width = context.shape
        self.width = heads * width
        self.reason: str | None = "its context is never used"
        self.weight: Tensor | None = None
        self.bias: Tensor | None = None
        self.residual: Tensor | None = None
        self.projected: Tensor | None = None
        self.versions: tuple[int, ...] = ()
        self.norm: Norm | None = None  # the one reader of residual + projected, as long as it is that
        self.read = self.post = False  # read: something has read residual + projected
        self.made: set[int] = set()  # storages that came about since the attention call
        self.held: dict[int, Any] = {}  # what is followed now: storage -> tensor, or a weak reference to it

    def block(self) -> Block | Unverified:
        """What was found, all in all."""
        if self.reason is None and _versions(self.residual, self.projected) != self.versions:
            self.reason = "its residual or its projection is overwritten later"
        if self.reason is not None:
            return Unverified(f"{self.name}: {self.reason}")
        assert self.weight is not None
        assert self.residual is not None
        assert self.projected is not None
        return Block(
            "post-norm" if self.post else "pre-norm",
            self.weight.detach(),
            None if self.bias is None else self.bias.detach(),
            self.residual.detach(),
            self.projected.detach(),
            self.norm if self.post else None,
        )


class _Follower(TorchFunctionMode):
    """Sees every operation of the pass, and acts on those that read a followed tensor (known by its storage)."""

    def __init__(self) -> None:
        super().__init__()
        self.ways: list[_Way] = []
        self._followed: dict[int, tuple[_Way, Any]] = {}  # storage -> whose it is, and what to do when it is read

    def start(self, context: Tensor, name: str) -> None:
        way = _Way(context, name)
        self.ways.append(way)
        self._follow(way, context, self._context_read)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if not self._followed or name == "__get__":  # an attribute
            return func(*args, **kwargs)
        given = [_storage(a) for a in _tensors((*args, *kwargs.values()))]
        hits = [p for p in dict.fromkeys(given) if p in self._followed]
        writes = _writes(name)
        before = (args[0].clone(), *args[1:]) if hits and writes and name in ADDS else args
        result = func(*args, **kwargs)
        results = list(_tensors([result]))
        made = {_storage(r) for r in results}
        for storage in hits:
            if (writes or not made <= {storage}) and storage in self._followed:  # else nothing came of it, or a view
                way, act = self._followed[storage]
                act(way, _Seen(name, before, kwargs, results[0] if len(results) == 1 else None, storage, given))
        for way, _ in self._followed.values():
            if way.residual is None:
                way.made |= made
        return result

    def _context_read(self, way: _Way, seen: _Seen) -> None:
        found = _linear(seen)
        if found is None or seen.result is None or found[0].shape[-1] != way.width:
            return self._give_up(way, f"{seen.name!r} stands between the attention and an output projection")
        if found[0].numel() != way.batch * way.length * way.width:
            return self._give_up(way, "only a part of the context goes into an output projection")
        _, way.weight, way.bias = found
        way.reason = "its output projection is not added to a residual"
        self._drop(way)
        return self._follow(way, seen.result, self._projected_read)

    def _projected_read(self, way: _Way, seen: _Seen) -> None:
        if not seen.adds or seen.result is None or seen.storages[0] == seen.storages[1]:
            return self._give_up(way, f"{seen.name!r} stands between the output projection and the residual")
        mine = seen.storages.index(seen.storage)
        projected, residual = seen.args[mine], seen.args[1 - mine]
        if seen.storages[1 - mine] in way.made:
            return self._give_up(way, "a parallel block, where something computed beside the attention joins it")
        if residual.shape != projected.shape or residual.shape[:-1] != (way.batch, way.length):
            shapes = f"{tuple(projected.shape)} and {tuple(residual.shape)}"
            return self._give_up(way, f"projection and residual have the shapes {shapes}")
        way.residual, way.projected = residual, projected
        way.versions = _versions(residual, projected)
        way.reason = ODD
        self._drop(way)
        return self._follow(way, seen.result, self._sum_read)

    def _sum_read(self, way: _Way, seen: _Seen) -> None:
        if seen.name in ADDS:
            if not way.read:
                return self._give_up(way, "a parallel block, where attention and feed-forward share one residual")
            way.reason, way.post = None, False
            return self._drop(way)
        way.norm = None if way.read else _layer_norm(seen)  # a second reader: the sum goes on beside its norm
        way.read = True
        if way.post:
            return self._give_up(way, ODD)
        if way.norm is not None and seen.result is not None:
            self._follow(way, seen.result, self._normed_read)
        return None

    def _normed_read(self, way: _Way, seen: _Seen) -> None:
        if seen.name not in ADDS or way.norm is None:
            return
        # The stream goes on from the norm: post-norm. Were the sum itself added later on, it would be pre-norm after
        # all: it stays followed as long as the model keeps it, but not longer.
        way.reason, way.post = None, True
        self._forget(way, seen.storage)
        for storage, tensor in [*way.held.items()]:
            way.held[storage] = weakref.ref(tensor, functools.partial(self._gone, way, storage))

    def _follow(self, way: _Way, tensor: Tensor, act: Any) -> None:
        storage = _storage(tensor)
        way.held[storage] = tensor  # alive, so that no other tensor gets its storage
        self._followed[storage] = way, act

    def _gone(self, way: _Way, storage: int, _: Any) -> None:
        self._forget(way, storage)

    def _forget(self, way: _Way, storage: int) -> None:
        way.held.pop(storage, None)
        if storage in self._followed and self._followed[storage][0] is way:
            del self._followed[storage]

    def _drop(self, way: _Way) -> None:
        for storage in [*way.held]:
            self._forget(way, storage)

    def _give_up(self, way: _Way, reason: str) -> None:
        way.reason = reason
        self._drop(way)


def _linear(seen: _Seen) -> tuple[Tensor, Tensor, Tensor | None] | None:
    """(input, weight (M, C), bias) of a linear map: nn.Linear's call, or addmm as GPT-2's Conv1D writes it."""
    if seen.name == "linear":
        both = dict(zip(("input", "weight", "bias"), seen.args, strict=False)) | seen.kwargs
        found = both["input"], both["weight"], both.get("bias")
    elif seen.name == "addmm" and len(seen.args) == 3 and not seen.kwargs and seen.args[0].ndim == 1:
        found = seen.args[1], seen.args[2].T, seen.args[0]
    else:
        return None
    return found if _storage(found[0]) == seen.storage else None


def _layer_norm(seen: _Seen) -> Norm | None:
    """The layer norm, where it is one over the last axis."""
    if seen.name != "layer_norm":
        return None
    both = dict(zip(("input", "normalized_shape", "weight", "bias", "eps"), seen.args, strict=False)) | seen.kwargs
    if len(both["normalized_shape"]) != 1 or _storage(both["input"]) != seen.storage:
        return None
    weight, bias = both.get("weight"), both.get("bias")
    return Norm(
        None if weight is None else weight.detach(), None if bias is None else bias.detach(), both.get("eps", 1e-5)
    )


def _tensors(values: Any) -> Iterator[Tensor]:
    """The tensors among values, and in lists of them."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from (each for each in value if isinstance(each, Tensor))


def _storage(tensor: Tensor) -> int:
    """Where a tensor's numbers lie; 0 for one that has none (inside vmap, without elements)."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return 0


def _writes(name: str) -> bool:
    """Whether an operation of this name writes into its first argument."""
    return (name.endswith("_") and not name.endswith("__")) or name.startswith("__i") or name == "__setitem__"


def _versions(*tensors: Tensor | None) -> tuple[int, ...]:
    """How often tensors were written to. Inference tensors do not say."""
    return tuple(0 if t is None or t.is_inference() else t._version for t in tensors)
