"""Follow each attention call's context through a forward pass to find how the model uses it.

The context is followed through operations, so module names don't matter:

    followed tensor    read by                                           result
    -----------------  ------------------------------------------------  -----------------------------------------
    the context        one linear map (W_O) of the whole context         follow the projection
    the context        anything else after that, such as an adapter      unverified, with the operation's name
    the projection     a factor for each token or component (RMS norm)   follow the product
    the projection     a sum with a tensor older than the call, which    follow the sum
                       is the residual
    the projection     a sum with a tensor computed since the call       follow the joint output
    the joint output   a sum with the residual                           parallel
    the sum            a sum, after another operation read it            pre-norm: it is the residual stream
    the sum            a sum with a tensor computed since the call       parallel
    the sum            one layer norm                                    follow the normed sum
    the normed sum     a sum                                             post-norm, unless the sum is read again
    any of them        any other operation with a result or a write      unverified, with the operation's name

Unverified outputs are kept with the reason. They raise an error only when you request contributions.

Following an operation takes as long as a small operation itself. So regard follows operations only from an attention
call to the end of the layer, or until the last followed tensor was read.
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
from torch.overrides import _len_torch_function_stack, _pop_mode, _push_mode
from torch.utils._device import DeviceContext

from regard.attention.recording import current_call_path
from regard.capture import operations
from regard.capture.operations import ADDS, Factors, Operation, storage_of, tensors_within
from regard.trace.attention_output import AttentionOutput, Norm, Scaling, UnverifiedOutput

ODD = "what leaves the block is neither of pre-norm nor of post-norm shape"
BESIDE = "a parallel block, where something computed beside the attention joins it"

_Act = Callable[["_ContextPath", Operation], None]  # called when a followed tensor is read
_open: ContextVar["_Follower | None"] = ContextVar("regard_follower", default=None)


@contextmanager
def follow_outputs() -> Iterator[list[AttentionOutput | UnverifiedOutput]]:
    """Follow each context passed to `follow_context` inside the block. The list is filled in order at the end."""
    outputs: list[AttentionOutput | UnverifiedOutput] = []
    follower = _Follower()
    token = _open.set(follower)
    try:
        yield outputs
    finally:
        _open.reset(token)
        follower.stop()
    outputs.extend(path.result() for path in follower.paths)


def follow_context(context: Float[Tensor, "B L H E"], module: nn.Module) -> None:
    """Follow a context tensor that a module's attention returns. Does nothing outside `follow_outputs`."""
    follower = _open.get()
    if follower is not None:
        batch, length, heads, width = context.shape
        path = _ContextPath(len(follower.paths) + 1, type(module).__name__, batch, length, heads * width)
        follower.paths.append(path)
        follower.follow(path, context, follower.context_read)
        follower.start()


def layer_ended() -> None:
    """Stop following operations at the end of a layer if no followed tensor is left to be read."""
    follower = _open.get()
    if follower is not None and not follower.followed:
        follower.stop()


@dataclass(eq=False)
class _ContextPath:
    """The path of the n-th context, (batch, length, ..., width), from 1, as far as it was followed.

    name: of its module's class.

    parts: the residual, the tensor added to it, and that tensor before its factors. versions: their write counts.
    norm: the layer norm of residual + added, while it is the sum's only reader. read: whether the sum was read.
    followed: the followed tensors, or weak references to them, by storage.
    """

    number: int
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
    followed: dict[int, Any] = field(default_factory=dict)

    def result(self) -> AttentionOutput | UnverifiedOutput:
        """Return the verified output, or an unverified output with the reason."""
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
        """Store the terms of a sum as the residual and attention's addition. Returns a reason if they don't fit."""
        if residual.shape != added.shape or residual.shape[:-1] != (self.batch, self.length):
            return f"projection and residual have the shapes {tuple(added.shape)} and {tuple(residual.shape)}"
        self.residual = residual
        if factors.plain:
            self.projected = added  # replaced, because the earlier tensor may have been overwritten by a sum
        else:
            assert self.projected is not None
            self.projected = self.projected.reshape(added.shape)
            scale, gain = (added.detach().new_ones(()) * x for x in (factors.scale, factors.gain))
            scale = scale.reshape(*added.shape[:-1], 1) if scale.ndim else scale.expand(*added.shape[:-1], 1)
            self.scaling = Scaling(scale.detach(), gain.expand(added.shape[-1:]).detach(), added.detach())
        self.parts = residual, self.projected, None if self.scaling is None else self.scaling.added
        self.versions = operations.write_counts_of_tensors(*self.parts)
        return None


class _Follower(operations.OperationMode):
    """Observe operations between `start` and `stop`, and act on those that read a followed tensor.

    followed: by storage, the path of each followed tensor and the function to call when it is read.
    """

    def __init__(self) -> None:
        super().__init__()
        self.paths: list[_ContextPath] = []
        self.followed: dict[int, tuple[_ContextPath, _Act]] = {}
        self._ages: dict[int, int] = {}  # storage -> number of attention calls before the tensor was computed
        self._outside = current_call_path()  # differs inside attention calls
        self._started = False

    def start(self) -> None:
        """Observe all operations from now on.

        Modes that are open around the attention end before this one, so it goes below them.
        """
        if not self._started:
            self._started = True
            above = [_pop_mode() for _ in range(_len_torch_function_stack())]
            if above and isinstance(above[-1], DeviceContext):  # it stays the lowest
                _push_mode(above.pop())
            for mode in (self, *reversed(above)):
                _push_mode(mode)

    def stop(self) -> None:
        """Observe no more operations."""
        if self._started:
            self._started = False
            above = list(iter(_pop_mode, self))
            for mode in reversed(above):
                _push_mode(mode)

    def _operation(self, func: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        # nothing is followed, an attribute is read, or this is inside an attention call
        if not self.followed or name == "__get__" or current_call_path() != self._outside:
            return func(*args, **kwargs)
        storages = [storage_of(a) for a in tensors_within((*args, *kwargs.values()) if kwargs else args)]
        read = [storage for storage in dict.fromkeys(storages) if storage in self.followed]
        if not read and all(path.read for path, _ in self.followed.values()):  # ages don't matter to these paths
            return func(*args, **kwargs)
        writes = operations.operation_writes_in_place(name)
        before = (args[0].clone(), *args[1:]) if read and writes and name in ADDS else args
        result = func(*args, **kwargs)
        results = tensors_within(result)
        ids = {storage_of(r) for r in results}
        for storage in read:
            if (writes or not ids <= {storage}) and storage in self.followed:  # skips views and reads without result
                path, act = self.followed[storage]
                act(path, Operation(name, before, kwargs, results[0] if len(results) == 1 else None, storage, storages))
        age = len(self.paths)
        if name in operations.PRODUCTS and len(args) == 2 and len(storages) == 1:
            age = self._ages.get(storages[0], 0)  # a multiple of a tensor is as old as the tensor
        self._ages |= dict.fromkeys(ids if writes else ids.difference(storages), age)  # views aren't new
        return result

    def _is_newer(self, path: _ContextPath, storage: int) -> bool:
        """Return whether a tensor was computed since a path's attention call."""
        return self._ages.get(storage, 0) >= path.number

    def context_read(self, path: _ContextPath, seen: Operation) -> None:
        projection = operations.followed_linear_map(seen)
        if projection is None or seen.result is None or projection[0].shape[-1] != path.width:
            return self._give_up(path, f"{seen.name!r} is between the attention and an output projection")
        if projection[0].numel() != path.batch * path.length * path.width:
            return self._give_up(path, "only a part of the context goes into an output projection")
        context, path.weight, path.bias = projection
        path.projected = seen.result
        path.reason = "its output projection is not added to a residual"
        self._drop(path)
        self.follow(path, context, self._context_read_again)
        return self.follow(path, seen.result, functools.partial(self._projected_read, Factors()))

    def _context_read_again(self, path: _ContextPath, seen: Operation) -> None:
        """Give up if another operation than the projection reads the context: its contribution would be missing."""
        if not seen.measures:
            self._give_up(path, f"{seen.name!r} reads the context beside the output projection")

    def _projected_read(self, factors: Factors, path: _ContextPath, seen: Operation) -> None:
        if seen.measures:
            return None
        if (after := operations.factors(seen, factors)) is not None and seen.result is not None:
            return self.follow(path, seen.result, functools.partial(self._projected_read, after))
        if not seen.adds or seen.result is None or seen.storages[0] == seen.storages[1]:
            return self._give_up(path, f"{seen.name!r} is between the output projection and the residual")
        n = seen.storages.index(seen.storage)
        added, other = seen.args[n], seen.args[1 - n]
        self._drop(path)
        if self._is_newer(path, seen.storages[1 - n]):  # not the residual, which may be added next
            path.reason = BESIDE
            return self.follow(path, seen.result, functools.partial(self._joined_read, factors, added))
        if (reason := path.add_to_residual(other, added, factors)) is not None:
            return self._give_up(path, reason)
        path.reason = ODD
        return self.follow(path, seen.result, self._sum_read)

    def _joined_read(self, factors: Factors, added: Tensor, path: _ContextPath, seen: Operation) -> None:
        """Classify the block as parallel if the projection plus a parallel output is added to the residual."""
        if seen.adds and seen.storages[0] != seen.storages[1]:
            n = seen.storages.index(seen.storage)
            if not self._is_newer(path, seen.storages[1 - n]):
                path.reason, path.kind = path.add_to_residual(seen.args[1 - n], added, factors), "parallel"
        self._drop(path)

    def _sum_read(self, path: _ContextPath, seen: Operation) -> None:
        if seen.name in ADDS:
            if path.read:
                path.reason, path.kind = None, "pre-norm"
            elif seen.adds and self._is_newer(path, seen.storages[1 - seen.storages.index(seen.storage)]):
                path.reason, path.kind = None, "parallel"
            else:
                path.reason = BESIDE
            return self._drop(path)
        # a second reader means that the sum is used besides its norm
        path.norm, path.read = None if path.read else operations.followed_layer_norm(seen), True
        if path.kind is not None:
            return self._give_up(path, ODD)
        if path.norm is not None and seen.result is not None:
            self.follow(path, seen.result, self._normed_read)
        return None

    def _normed_read(self, path: _ContextPath, seen: Operation) -> None:
        if seen.name not in ADDS or path.norm is None:
            return
        # The stream continues from the norm, so this is post-norm. If the sum itself is added later, it is pre-norm
        # after all, so keep following the sum while the model keeps it.
        path.reason, path.kind = None, "post-norm"
        self._forget(path, seen.storage)
        for storage, tensor in [*path.followed.items()]:
            path.followed[storage] = weakref.ref(tensor, functools.partial(self._forget, path, storage))

    def follow(self, path: _ContextPath, tensor: Tensor, act: _Act) -> None:
        storage = storage_of(tensor)
        path.followed[storage] = tensor  # kept alive so that its storage stays unique
        self.followed[storage] = path, act

    def _forget(self, path: _ContextPath, storage: int, _gone: Any = None) -> None:
        path.followed.pop(storage, None)
        if storage in self.followed and self.followed[storage][0] is path:
            del self.followed[storage]

    def _drop(self, path: _ContextPath) -> None:
        for storage in [*path.followed]:
            self._forget(path, storage)

    def _give_up(self, path: _ContextPath, reason: str) -> None:
        path.reason = reason
        self._drop(path)
