"""Follow each attention call's context through a forward pass, to find what the model does with it.

The context is followed through the operations themselves, whatever the modules around them are called:

    followed tensor    is read by                                        then
    -----------------  ------------------------------------------------  -----------------------------------------
    the context        one linear map (W_O), all of the context          follow the projection
    the context        anything else after that, as an adapter does      unverified, naming that operation
    the projection     a factor for each token or component (RMS norm)   follow the product
    the projection     a sum with something older than the call: the     follow the sum
                       residual
    the projection     a sum with something computed since the call      follow what joined it
    what joined it     a sum with the residual                           parallel
    the sum            a sum, and something read it before               pre-norm: it is the residual stream itself
    the sum            a sum with something computed since the call      parallel
    the sum            one layer norm                                    follow the normed sum
    the normed sum     a sum                                             post-norm, unless the sum itself is read on
    any of them        any other operation that writes or makes new      unverified, naming that operation

What is unverified is noted; nothing is refused before contributions are asked for.

Between a call's verdict and the next call nothing is followed, so no operation is looked at: seven of eight are there.
"""

import functools
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal

from jaxtyping import Float
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode, _get_current_function_mode

from regard.attention.recording import current_call_path
from regard.capture import operations
from regard.capture.operations import ADDS, Factors, Operation, storage_of, tensors_within
from regard.trace.attention_output import AttentionOutput, Norm, Scaling, UnverifiedOutput

ODD = "what leaves the block is neither of pre-norm nor of post-norm shape"
BESIDE = "a parallel block, where something computed beside the attention joins it"

_Act = Callable[["_ContextPath", Operation], None]  # what to do when a followed tensor is read
_open: ContextVar["_Follower | None"] = ContextVar("regard_follower", default=None)


@contextmanager
def follow_outputs() -> Iterator[list[AttentionOutput | UnverifiedOutput]]:
    """Follow every context inside the block that `follow_context` names; the list is filled at its end, in order."""
    outputs: list[AttentionOutput | UnverifiedOutput] = []
    follower = _Follower()
    token = _open.set(follower)
    try:
        yield outputs
    finally:
        follower.stop()
        _open.reset(token)
    outputs.extend(path.result() for path in follower.paths)


def follow_context(context: Float[Tensor, "B L H E"], module: nn.Module) -> None:
    """Follow this very tensor, which a module's attention returns; does nothing outside `follow_outputs`."""
    follower = _open.get()
    if follower is not None:
        batch, length, heads, width = context.shape
        path = _ContextPath(type(module).__name__, batch, length, heads * width)
        follower.paths.append(path)
        follower.follow(path, context, follower.context_read)
        follower.start()


def pause_following() -> None:
    """Look at no operation until the next context, if nothing is followed now: to be called after each layer."""
    follower = _open.get()
    if follower is not None and follower.idle:
        follower.stop()


@dataclass(eq=False)
class _ContextPath:
    """How far one context, (batch, length, ..., width), was followed, and what was found there. name: of its module.

    parts: the residual, what is added to it, and that before its factors; versions: how often each was written to.
    norm: the one reader of residual + added, as long as it is that. read: whether something has read that sum.
    newer: storages of tensors computed since the attention call. followed: what is followed now: a tensor, or a weak
    reference to it, by its storage.
    """

    name: str
    batch: int
    length: int
    width: int
    reason: str | None = "its context is never used"
    kind: Literal["post-norm", "pre-norm", "parallel"] | None = None
    weight: Tensor | None = None
    bias: Tensor | None = None
    residual: Tensor | None = None
    projected: Tensor | None = None
    scaling: Scaling | None = None
    parts: tuple[Tensor | None, ...] = ()
    versions: tuple[int, ...] = ()
    norm: Norm | None = None
    read: bool = False
    newer: set[int] = field(default_factory=set)
    followed: dict[int, Any] = field(default_factory=dict)

    def result(self) -> AttentionOutput | UnverifiedOutput:
        """The verified output, or why it could not be verified."""
        if self.reason is None and operations.write_counts_of_tensors(*self.parts) != self.versions:
            self.reason = "its residual or its projection is overwritten later"
        if self.reason is not None:
            return UnverifiedOutput(f"{self.name}: {self.reason}")
        assert self.kind is not None
        assert self.weight is not None
        assert self.residual is not None
        assert self.projected is not None
        weight, residual, projected = self.weight.detach(), self.residual.detach(), self.projected.detach()
        bias, norm = None if self.bias is None else self.bias.detach(), self.norm if self.kind == "post-norm" else None
        return AttentionOutput(self.kind, weight, bias, residual, projected, norm, self.scaling)

    def add_to_residual(self, residual: Tensor, added: Tensor, factors: Factors) -> str | None:
        """Take the terms of a sum for the residual and for what attention adds to it; returns why they cannot be."""
        if residual.shape != added.shape or residual.shape[:-1] != (self.batch, self.length):
            return f"projection and residual have the shapes {tuple(added.shape)} and {tuple(residual.shape)}"
        self.residual = residual
        if factors.plain:
            self.projected = added  # not what was kept before: a sum may have been written into it
        else:
            assert self.projected is not None
            self.projected = self.projected.reshape(added.shape)
            scale, gain = (added.detach().new_ones(()) * x for x in (factors.scale, factors.gain))
            scale = scale.reshape(*added.shape[:-1], 1) if scale.ndim else scale.expand(*added.shape[:-1], 1)
            self.scaling = Scaling(scale.detach(), gain.expand(added.shape[-1:]).detach(), added.detach())
        self.parts = residual, self.projected, None if self.scaling is None else self.scaling.added
        self.versions = operations.write_counts_of_tensors(*self.parts)
        return None


class _Follower(TorchFunctionMode):
    """Sees operations of the pass, and acts on those that read a followed tensor (known by its storage)."""

    def __init__(self) -> None:
        super().__init__()
        self.paths: list[_ContextPath] = []
        self._started = False
        self._outside = current_call_path()  # attention calls are made under paths of their own
        self._followed: dict[int, tuple[_ContextPath, _Act]] = {}  # storage -> its path, and what to do when it is read

    @property
    def idle(self) -> bool:
        """Whether nothing is followed, and no other mode was entered since: modes are left in order."""
        return not self._followed and _get_current_function_mode() is self

    def start(self) -> None:
        """Look at operations from here on."""
        if not self._started:
            self._started = True
            self.__enter__()

    def stop(self) -> None:
        """Look at no operation any more."""
        if self._started:
            self._started = False
            self.__exit__(None, None, None)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, kwargs = getattr(func, "__name__", ""), kwargs or {}
        # nothing is followed; an attribute; inside an attention call
        if not self._followed or name == "__get__" or current_call_path() != self._outside:
            return func(*args, **kwargs)
        storages = [storage_of(a) for a in tensors_within((*args, *kwargs.values()))]
        followed = [storage for storage in dict.fromkeys(storages) if storage in self._followed]
        writes = operations.operation_writes_in_place(name)
        before = (args[0].clone(), *args[1:]) if followed and writes and name in ADDS else args
        result = func(*args, **kwargs)
        results = list(tensors_within(result))
        made = {storage_of(r) for r in results}
        for storage in followed:
            if (writes or not made <= {storage}) and storage in self._followed:  # else nothing came of it, or a view
                path, act = self._followed[storage]
                act(path, Operation(name, before, kwargs, results[0] if len(results) == 1 else None, storage, storages))
        new = made if writes else made - set(storages)  # a view was there before
        for path in {id(path): path for path, _ in self._followed.values()}.values():
            numbers = sum(isinstance(argument, (int, float)) for argument in args)
            if name in operations.PRODUCTS and (len(args), numbers) == (2, 1) and path.newer.isdisjoint(storages):
                path.newer -= new  # a multiple of what was there before is not new, wherever its numbers lie
            else:
                path.newer |= new
        return result

    def context_read(self, path: _ContextPath, seen: Operation) -> None:
        projection = operations.followed_linear_map(seen)
        if projection is None or seen.result is None or projection[0].shape[-1] != path.width:
            return self._give_up(path, f"{seen.name!r} stands between the attention and an output projection")
        if projection[0].numel() != path.batch * path.length * path.width:
            return self._give_up(path, "only a part of the context goes into an output projection")
        context, path.weight, path.bias = projection
        path.projected = seen.result
        path.reason = "its output projection is not added to a residual"
        self._drop(path)
        self.follow(path, context, self._context_read_again)
        return self.follow(path, seen.result, functools.partial(self._projected_read, Factors()))

    def _context_read_again(self, path: _ContextPath, seen: Operation) -> None:
        """Something else than the projection reads the context too: an adapter, whose share would be missing."""
        if not seen.measures:
            self._give_up(path, f"{seen.name!r} reads the context beside the output projection")

    def _projected_read(self, factors: Factors, path: _ContextPath, seen: Operation) -> None:
        if seen.measures:
            return None
        if (after := operations.factors(seen, factors)) is not None and seen.result is not None:
            return self.follow(path, seen.result, functools.partial(self._projected_read, after))
        if not seen.adds or seen.result is None or seen.storages[0] == seen.storages[1]:
            return self._give_up(path, f"{seen.name!r} stands between the output projection and the residual")
        mine = seen.storages.index(seen.storage)
        added, other = seen.args[mine], seen.args[1 - mine]
        self._drop(path)
        if seen.storages[1 - mine] in path.newer:  # no residual: that one may come next
            path.reason = BESIDE
            return self.follow(path, seen.result, functools.partial(self._joined_read, factors, added))
        if (reason := path.add_to_residual(other, added, factors)) is not None:
            return self._give_up(path, reason)
        path.reason = ODD
        return self.follow(path, seen.result, self._sum_read)

    def _joined_read(self, factors: Factors, added: Tensor, path: _ContextPath, seen: Operation) -> None:
        """The sum of the projection and something computed beside it was read: by the sum with the residual?"""
        if seen.adds and seen.storages[0] != seen.storages[1]:
            mine = seen.storages.index(seen.storage)
            if seen.storages[1 - mine] not in path.newer:
                path.reason, path.kind = path.add_to_residual(seen.args[1 - mine], added, factors), "parallel"
        self._drop(path)

    def _sum_read(self, path: _ContextPath, seen: Operation) -> None:
        if seen.name in ADDS:
            if path.read:
                path.reason, path.kind = None, "pre-norm"
            elif seen.adds and seen.storages[1 - seen.storages.index(seen.storage)] in path.newer:
                path.reason, path.kind = None, "parallel"
            else:
                path.reason = BESIDE
            return self._drop(path)
        # a second reader: the sum goes on beside its norm
        path.norm, path.read = None if path.read else operations.followed_layer_norm(seen), True
        if path.kind is not None:
            return self._give_up(path, ODD)
        if path.norm is not None and seen.result is not None:
            self.follow(path, seen.result, self._normed_read)
        return None

    def _normed_read(self, path: _ContextPath, seen: Operation) -> None:
        if seen.name not in ADDS or path.norm is None:
            return
        # The stream goes on from the norm: post-norm. Were the sum itself added later on, it would be pre-norm after
        # all: it stays followed as long as the model keeps it, but not longer.
        path.reason, path.kind = None, "post-norm"
        self._forget(path, seen.storage)
        for storage, tensor in [*path.followed.items()]:
            path.followed[storage] = weakref.ref(tensor, functools.partial(self._forget, path, storage))

    def follow(self, path: _ContextPath, tensor: Tensor, act: _Act) -> None:
        storage = storage_of(tensor)
        path.followed[storage] = tensor  # alive, so that no other tensor gets its storage
        self._followed[storage] = path, act

    def _forget(self, path: _ContextPath, storage: int, _gone: Any = None) -> None:
        path.followed.pop(storage, None)
        if storage in self._followed and self._followed[storage][0] is path:
            del self._followed[storage]

    def _drop(self, path: _ContextPath) -> None:
        for storage in [*path.followed]:
            self._forget(path, storage)

    def _give_up(self, path: _ContextPath, reason: str) -> None:
        path.reason = reason
        self._drop(path)
