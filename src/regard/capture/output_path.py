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

Following every operation of a short text takes a fifth of the forward pass, and finds the same modules each time. So
the second pass of a model stores these modules, and later passes with few tokens watch only them, as long as the model
has the same modules and only regard's hooks. regard checks the following in each such pass:

    module               input                                                         output
    -------------------  ------------------------------------------------------------  -------------------
    the output map, W_O  the same tensor that the attention call returned              the projection
    the reader           exactly the state that entered the layer + the projection

If anything differs, this pass is repeated, and it and all later passes are followed operation by operation.
"""

import functools
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.recording import current_call_path
from regard.capture import operations
from regard.capture.operations import ADDS, Factors, Operation, storage_of, tensors_within, write_counts_of_tensors
from regard.capture.state import ModuleIndex, of_transformers
from regard.trace.attention_output import AttentionOutput, Norm, Scaling, UnverifiedOutput

OTHERWISE = "its output did not take the way that it took in earlier passes"


@dataclass(frozen=True)
class KnownOutput:
    """The modules of one attention call: its output map, and the module that reads residual + projection.

    kind: of the block. In a post-norm block, the reader is the norm.
    """

    projection: Any  # nn.Linear, or Conv1D of transformers
    reader: nn.Module
    kind: Literal["post-norm", "pre-norm"]

    def output(self, residual: Tensor, projected: Tensor) -> AttentionOutput:
        """Return the attention output of a call from the tensors of a pass."""
        weight, bias, norm = self.projection.weight.detach(), _detached(self.projection.bias), None
        weight = weight if isinstance(self.projection, nn.Linear) else weight.T
        if self.kind == "post-norm":
            assert isinstance(self.reader, nn.LayerNorm)
            norm = Norm(_detached(self.reader.weight), _detached(self.reader.bias), self.reader.eps)
        return AttentionOutput(self.kind, weight, bias, residual.detach(), projected.detach(), norm, None)


class KnownWatch:
    """Watch the known modules in one pass. It receives the contexts of attention calls in order.

    index: the model's index. Its known outputs are deleted if a context takes another path.
    """

    def __init__(self, index: ModuleIndex) -> None:
        self.index = index
        self.known: tuple[KnownOutput, ...] = index.outputs or ()
        self._context: Tensor | None = None
        self._seen: list[tuple[Tensor, Tensor | None, tuple[int, ...]]] = []  # residual, projection, write counts
        self._read = 0  # number of calls whose sum was read as expected

    def follow(self, context: Tensor, entered: Tensor | None) -> None:
        """Receive the context of the next attention call and the state that entered its layer."""
        self._context = context
        self._seen.append((context if entered is None else entered, None, ()))

    def projected(self, n: int, _projection: nn.Module, args: Any, output: Any) -> None:
        """Store the output of call n's output map if its input is the call's context."""
        context, self._context = self._context, None
        if len(self._seen) == n + 1 and context is not None and isinstance(output, Tensor):
            read, residual = args[0], self._seen[n][0]
            if storage_of(read) == storage_of(context) != 0 and read.numel() == context.numel():
                self._seen[n] = residual, output, write_counts_of_tensors(residual, output)

    def read(self, n: int, _reader: nn.Module, args: Any) -> None:
        """Check that the input of call n's reader is the residual + the projection."""
        if len(self._seen) == n + 1 and self._read == n and args:
            residual, projected, _ = self._seen[n]
            if projected is not None and projected.shape == residual.shape:
                self._read += torch.equal(args[0], residual + projected)

    def results(self) -> list[AttentionOutput | UnverifiedOutput]:
        """Return the outputs of all calls. All are unverified if one took another path."""
        pairs = [(x, y) for x, y, counts in self._seen if y is not None and write_counts_of_tensors(x, y) == counts]
        if not len(self._seen) == len(pairs) == self._read == len(self.known):
            self.index.outputs = ()
            return [UnverifiedOutput(OTHERWISE) for _ in self._seen]
        return [known.output(*tensors) for known, tensors in zip(self.known, pairs, strict=True)]

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Watch the known modules of all attention calls in the forward pass inside the block."""
        with ExitStack() as hooks:
            for n, known in enumerate(self.known):
                hooks.enter_context(known.projection.register_forward_hook(partial(self.projected, n)))
                hooks.enter_context(known.reader.register_forward_pre_hook(partial(self.read, n)))
            yield


def known_outputs(
    index: ModuleIndex,
    outputs: Sequence[AttentionOutput | UnverifiedOutput],
    seen: Sequence[tuple[Tensor | None, list[nn.Module]]],
) -> tuple[KnownOutput, ...]:
    """Return the modules of all calls in a followed pass, or () if any call's modules aren't certain."""
    places: dict[int, list[Any]] = {}
    for module in index.modules:
        if type(module) is nn.Linear or of_transformers(module, "Conv1D"):
            weight: Any = module.weight
            places.setdefault(storage_of(weight), []).append(module)
    known: list[KnownOutput] = []
    for output, (entered, readers) in zip(outputs, seen, strict=True):
        if not isinstance(output, AttentionOutput) or output.scaling is not None or output.kind == "parallel":
            return ()
        maps = places.get(storage_of(output.weight), [])
        if len(maps) != 1 or not readers or entered is None:
            return ()
        if entered.data_ptr() != output.residual.data_ptr() or entered.shape != output.residual.shape:
            return ()
        reader, norm = readers[0], output.norm
        if output.kind == "post-norm" and not (
            isinstance(reader, nn.LayerNorm)
            and norm is not None
            and (norm.weight is None) == (reader.weight is None)
            and (norm.weight is None or storage_of(norm.weight) == storage_of(reader.weight))
            and norm.eps == reader.eps
        ):
            return ()
        known.append(KnownOutput(maps[0], reader, output.kind))
    each_once = {id(call.projection) for call in known}, {id(call.reader) for call in known}
    return tuple(known) if all(len(ids) == len(known) for ids in each_once) else ()


def _detached(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.detach()


ODD = "what leaves the block is neither of pre-norm nor of post-norm shape"
BESIDE = "a parallel block, where something computed beside the attention joins it"

_Act = Callable[["_ContextPath", Operation], None]  # called when a followed tensor is read
_open: ContextVar["_Follower | KnownWatch | None"] = ContextVar("regard_follower", default=None)


@contextmanager
def follow_outputs(index: ModuleIndex | None = None) -> Iterator[list[AttentionOutput | UnverifiedOutput]]:
    """Follow each context passed to `follow_context` inside the block. The list is filled in order at the end.

    index: the model's index, to use modules known from earlier passes and to store those of this pass.
    """
    outputs: list[AttentionOutput | UnverifiedOutput] = []
    follower = KnownWatch(index) if index is not None and index.outputs else _Follower(index)
    token = _open.set(follower)
    try:
        with follower.opened():
            yield outputs
    finally:
        _open.reset(token)
    outputs.extend(follower.results())


def follow_context(context: Float[Tensor, "B L H E"], module: nn.Module, entered: Tensor | None = None) -> None:
    """Follow a context tensor that a module's attention returns. Does nothing outside `follow_outputs`.

    module: the attention module. entered: the state that entered its layer, if known.
    """
    follower = _open.get()
    if isinstance(follower, KnownWatch):
        follower.follow(context, entered)
    elif follower is not None:
        batch, length, heads, width = context.shape
        path = _ContextPath(type(module).__name__, batch, length, heads * width)
        path.entered = entered if follower.learns else None
        follower.paths.append(path)
        follower.follow(path, context, follower.context_read)


@dataclass(eq=False)
class _ContextPath:
    """The path of one context, (batch, length, ..., width), as far as it was followed. name: its module's path.

    parts: the residual, the tensor added to it, and that tensor before its factors. versions: their write counts.
    norm: the layer norm of residual + added, while it is the sum's only reader. read: whether the sum was read.
    newer: storages of tensors computed since the attention call. followed: the followed tensors, or weak references to
    them, by storage. entered, readers: the state that entered the layer, and the modules that read residual + added, if
    later passes learn from this one.
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
    entered: Tensor | None = None
    readers: list[nn.Module] = field(default_factory=list)

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
    """Observe each operation of a pass and act on those that read a followed tensor, identified by its storage.

    index: the model's index. learns: whether to store the modules for later passes.
    """

    def __init__(self, index: ModuleIndex | None) -> None:
        super().__init__()
        self.paths: list[_ContextPath] = []
        self.index, self.learns = index, index is not None and index.followed == 1  # pass 1 is often the only one
        self._outside = current_call_path()  # differs inside attention calls
        self._followed: dict[int, tuple[_ContextPath, _Act]] = {}  # storage -> (path, function to call on a read)

    def _operation(self, func: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        # nothing is followed, an attribute is read, or this is inside an attention call
        if not self._followed or name == "__get__" or current_call_path() != self._outside:
            return func(*args, **kwargs)
        storages = [storage_of(a) for a in tensors_within((*args, *kwargs.values()))]
        followed = [storage for storage in dict.fromkeys(storages) if storage in self._followed]
        writes = operations.operation_writes_in_place(name)
        before = (args[0].clone(), *args[1:]) if followed and writes and name in ADDS else args
        result = func(*args, **kwargs)
        results = list(tensors_within(result))
        ids = {storage_of(r) for r in results}
        for storage in followed:
            if (writes or not ids <= {storage}) and storage in self._followed:  # skips views and reads without result
                path, act = self._followed[storage]
                act(path, Operation(name, before, kwargs, results[0] if len(results) == 1 else None, storage, storages))
        new = ids if writes else ids - set(storages)  # views aren't new
        for path in {id(path): path for path, _ in self._followed.values()}.values():
            numbers = sum(isinstance(argument, (int, float)) for argument in args)
            if name in operations.PRODUCTS and (len(args), numbers) == (2, 1) and path.newer.isdisjoint(storages):
                path.newer -= new  # a multiple of an older tensor counts as old
            else:
                path.newer |= new
        return result

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Follow operations inside the block, and note the modules without submodules that read a sum."""
        with ExitStack() as hooks:
            for module in self.index.modules if self.learns and self.index is not None else ():
                if not module._modules:
                    hooks.enter_context(module.register_forward_pre_hook(self._note_reader))
            hooks.enter_context(self)
            yield

    def results(self) -> list[AttentionOutput | UnverifiedOutput]:
        """Return the outputs of all attention calls, and store their modules in the index."""
        outputs = [path.result() for path in self.paths]
        if self.index is not None:
            self.index.followed += 1
            if self.learns:
                seen = [(path.entered, path.readers) for path in self.paths]
                self.index.outputs = known_outputs(self.index, outputs, seen)
        return outputs

    def _note_reader(self, module: nn.Module, args: Any) -> None:
        """Note a module whose input is the sum of the residual and attention's addition."""
        if args and isinstance(args[0], Tensor):
            path, act = self._followed.get(storage_of(args[0]), (None, None))
            if path is not None and act == self._sum_read:
                path.readers.append(module)

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
        if seen.storages[1 - n] in path.newer:  # not the residual, which may be added next
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
            if seen.storages[1 - n] not in path.newer:
                path.reason, path.kind = path.add_to_residual(seen.args[1 - n], added, factors), "parallel"
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
