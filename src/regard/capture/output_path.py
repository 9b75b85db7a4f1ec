"""Follow each attention call's context through a forward pass, to find what the model does with it.

The context is followed through the operations themselves, whatever the modules around them are called: it has to go
straight into one linear map (W_O), what comes out into a sum with something that was there before (the residual): as it
is, or multiplied by factors of tokens and components, which is all that an RMS norm does. The sum has to go on as the
residual stream itself (pre-norm), through one layer norm (post-norm), or into a sum with what something beside the
attention gives (parallel). Anything else is noted as unverified, with the operation that was seen; nobody is refused
before contributions are asked for.
"""

import functools
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

from jaxtyping import Float
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from regard.attention.recording import current_path
from regard.capture import tensor_ops
from regard.capture.tensor_ops import ADDS, Factors, Operation, storage_of
from regard.trace.attention_output import AttentionOutput, Norm, Scaling, UnverifiedOutput

ODD = "what leaves the block is neither of pre-norm nor of post-norm shape"
BESIDE = "a parallel block, where something computed beside the attention joins it"

_open: ContextVar["_Follower | None"] = ContextVar("regard_follower", default=None)


@contextmanager
def follow_outputs() -> Iterator[list[AttentionOutput | UnverifiedOutput]]:
    """Follow every context inside the block that `follow_context` names; the list is filled at its end, in order."""
    found: list[AttentionOutput | UnverifiedOutput] = []
    follower = _Follower()
    token = _open.set(follower)
    try:
        with follower:
            yield found
    finally:
        _open.reset(token)
    found.extend(way.block() for way in follower.ways)


def follow_context(context: Float[Tensor, "B L H E"], module: nn.Module) -> None:
    """Follow this very tensor, which a module's attention returns; does nothing outside `follow_outputs`."""
    follower = _open.get()
    if follower is not None:
        follower.start(context, type(module).__name__)


class _Way:
    """How far one context was followed, and what was found on the way."""

    def __init__(self, context: Tensor, name: str) -> None:
        self.name = name
        self.batch, self.length, heads, width = context.shape
        self.width = heads * width
        self.reason: str | None = "its context is never used"
        self.kind: Literal["post-norm", "pre-norm", "parallel"] | None = None
        self.weight: Tensor | None = None
        self.bias: Tensor | None = None
        self.residual: Tensor | None = None
        self.projected: Tensor | None = None
        self.scaling: Scaling | None = None
        self.versions: tuple[int, ...] = ()
        self.norm: Norm | None = None  # the one reader of residual + added, as long as it is that
        self.read = False  # whether something has read residual + added
        self.made: set[int] = set()  # storages that came about since the attention call
        self.held: dict[int, Any] = {}  # what is followed now: storage -> tensor, or a weak reference to it

    def block(self) -> AttentionOutput | UnverifiedOutput:
        """What was found, all in all."""
        if self.reason is None and self._versions() != self.versions:
            self.reason = "its residual or its projection is overwritten later"
        if self.reason is not None:
            return UnverifiedOutput(f"{self.name}: {self.reason}")
        assert self.kind is not None
        assert self.weight is not None
        assert self.residual is not None
        assert self.projected is not None
        return AttentionOutput(
            self.kind,
            self.weight.detach(),
            None if self.bias is None else self.bias.detach(),
            self.residual.detach(),
            self.projected.detach(),
            self.norm if self.kind == "post-norm" else None,
            self.scaling,
        )

    def meets(self, residual: Tensor, added: Tensor, given: Factors) -> str | None:
        """Take what meets in a sum for the residual and for what attention adds to it; returns why it cannot be."""
        if residual.shape != added.shape or residual.shape[:-1] != (self.batch, self.length):
            return f"projection and residual have the shapes {tuple(added.shape)} and {tuple(residual.shape)}"
        self.residual = residual
        if given.plain:
            self.projected = added  # not what was kept before: a sum may have been written into it
        else:
            assert self.projected is not None
            self.projected = self.projected.reshape(added.shape)
            scale, gain = (added.detach().new_ones(()) * x for x in (given.scale, given.gain))
            scale = scale.reshape(*added.shape[:-1], 1) if scale.ndim else scale.expand(*added.shape[:-1], 1)
            self.scaling = Scaling(scale.detach(), gain.expand(added.shape[-1:]).detach(), added.detach())
        self.versions = self._versions()
        return None

    def _versions(self) -> tuple[int, ...]:
        added = None if self.scaling is None else self.scaling.added
        return tensor_ops.versions(self.residual, self.projected, added)


class _Follower(TorchFunctionMode):
    """Sees every operation of the pass, and acts on those that read a followed tensor (known by its storage)."""

    def __init__(self) -> None:
        super().__init__()
        self.ways: list[_Way] = []
        self._outside = current_path()  # attention calls are made under paths of their own
        self._followed: dict[int, tuple[_Way, Any]] = {}  # storage -> whose it is, and what to do when it is read

    def start(self, context: Tensor, name: str) -> None:
        way = _Way(context, name)
        self.ways.append(way)
        self._follow(way, context, self._context_read)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if (
            not self._followed or name == "__get__" or current_path() != self._outside
        ):  # an attribute; inside an attention call
            return func(*args, **kwargs)
        given = [storage_of(a) for a in tensor_ops.tensors_in((*args, *kwargs.values()))]
        hits = [p for p in dict.fromkeys(given) if p in self._followed]
        writes = tensor_ops.writes(name)
        before = (args[0].clone(), *args[1:]) if hits and writes and name in ADDS else args
        result = func(*args, **kwargs)
        results = list(tensor_ops.tensors_in([result]))
        made = {storage_of(r) for r in results}
        for storage in hits:
            if (writes or not made <= {storage}) and storage in self._followed:  # else nothing came of it, or a view
                way, act = self._followed[storage]
                act(way, Operation(name, before, kwargs, results[0] if len(results) == 1 else None, storage, given))
        new = made if writes else made - set(given)  # a view was there before
        for way in {id(way): way for way, _ in self._followed.values()}.values():
            if tensor_ops.multiplies_by_number(name, args) and way.made.isdisjoint(given):
                way.made -= new  # a multiple of what was there before is not new, wherever its numbers lie
            else:
                way.made |= new
        return result

    def _context_read(self, way: _Way, seen: Operation) -> None:
        found = tensor_ops.linear(seen)
        if found is None or seen.result is None or found[0].shape[-1] != way.width:
            return self._give_up(way, f"{seen.name!r} stands between the attention and an output projection")
        if found[0].numel() != way.batch * way.length * way.width:
            return self._give_up(way, "only a part of the context goes into an output projection")
        _, way.weight, way.bias = found
        way.projected = seen.result
        way.reason = "its output projection is not added to a residual"
        self._drop(way)
        return self._follow(way, seen.result, functools.partial(self._projected_read, Factors()))

    def _projected_read(self, given: Factors, way: _Way, seen: Operation) -> None:
        if seen.measures:
            return None
        if (after := tensor_ops.factors(seen, given)) is not None and seen.result is not None:
            return self._follow(way, seen.result, functools.partial(self._projected_read, after))
        if not seen.adds or seen.result is None or seen.storages[0] == seen.storages[1]:
            return self._give_up(way, f"{seen.name!r} stands between the output projection and the residual")
        mine = seen.storages.index(seen.storage)
        added, other = seen.args[mine], seen.args[1 - mine]
        self._drop(way)
        if seen.storages[1 - mine] in way.made:  # no residual: that one may come next
            way.reason = BESIDE
            return self._follow(way, seen.result, functools.partial(self._joined_read, given, added))
        if (reason := way.meets(other, added, given)) is not None:
            return self._give_up(way, reason)
        way.reason = ODD
        return self._follow(way, seen.result, self._sum_read)

    def _joined_read(self, given: Factors, added: Tensor, way: _Way, seen: Operation) -> None:
        """What attention and something beside it gave was read: by the sum with the residual?"""
        if seen.adds and seen.storages[0] != seen.storages[1]:
            mine = seen.storages.index(seen.storage)
            if seen.storages[1 - mine] not in way.made:
                way.reason, way.kind = way.meets(seen.args[1 - mine], added, given), "parallel"
        self._drop(way)

    def _sum_read(self, way: _Way, seen: Operation) -> None:
        if seen.name in ADDS:
            if way.read:
                way.reason, way.kind = None, "pre-norm"
            elif seen.adds and seen.storages[1 - seen.storages.index(seen.storage)] in way.made:
                way.reason, way.kind = None, "parallel"
            else:
                way.reason = BESIDE
            return self._drop(way)
        way.norm = None if way.read else tensor_ops.layer_norm(seen)  # a second reader: the sum goes on beside its norm
        way.read = True
        if way.kind is not None:
            return self._give_up(way, ODD)
        if way.norm is not None and seen.result is not None:
            self._follow(way, seen.result, self._normed_read)
        return None

    def _normed_read(self, way: _Way, seen: Operation) -> None:
        if seen.name not in ADDS or way.norm is None:
            return
        # The stream goes on from the norm: post-norm. Were the sum itself added later on, it would be pre-norm after
        # all: it stays followed as long as the model keeps it, but not longer.
        way.reason, way.kind = None, "post-norm"
        self._forget(way, seen.storage)
        for storage, tensor in [*way.held.items()]:
            way.held[storage] = weakref.ref(tensor, functools.partial(self._gone, way, storage))

    def _follow(self, way: _Way, tensor: Tensor, act: Any) -> None:
        storage = storage_of(tensor)
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
