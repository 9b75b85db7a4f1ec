"""Find the module whose output is what a layer's feed-forward block adds to its states, without knowing the family.

One plain pass is watched: a layer ends by adding the feed-forward output to the residual, alone or (parallel blocks)
after it was added to the attention's. The module is the innermost one whose output is a term of such a sum, or times a
number is one (Granite): a patch puts in what the module gave in another run, which is multiplied alike. What is written
into after a module gave it (Llama 4 adds its experts to the shared one's output) is the output of a module further out.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from torch import Tensor, nn

from regard.capture.interventions.states import Stacks, first_hidden_states
from regard.capture.operations import (
    ADDS,
    PRODUCTS,
    OperationMode,
    operation_writes_in_place,
    storage_of,
    tensors_within,
)  # fmt: skip

FeedForwardPaths = dict[tuple[int, int], str]  # (stack, layer) -> the module's path below its layer
Sum = tuple[list[int], int, int]  # storages of the terms and of what they gave, and when they were added
ModuleOutput = tuple[int, str, int]  # storage of what a module gave, its path below the layer, and when it gave it


class _SumLog(OperationMode):
    """Keeps the sums of two tensors of a layer that runs: their terms, what they gave, and when.

    A tensor times a number counts as the tensor. written: when each storage was written into. time: in operations.
    """

    def __init__(self) -> None:
        super().__init__()
        self.running = False
        self.size = 0
        self.sums: list[Sum] = []
        self.written: list[tuple[int, int]] = []
        self.time = 0
        self.scaled: dict[int, int] = {}  # from what a tensor times a number is to the tensor
        self.held: list[Tensor] = []  # alive, so that no other tensor gets its storage

    def _operation(self, func: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        result = func(*args, **kwargs)
        self.time += 1
        if self.running and operation_writes_in_place(name) and args and isinstance(args[0], Tensor):
            self.written.append((storage_of(args[0]), self.time))
        if self.running and name in ADDS and isinstance(result, Tensor):
            terms = [tensor for tensor in tensors_within(args) if tensor.numel() == self.size]
            if len(terms) == 2 and result.numel() == self.size:
                places = [self.scaled.get(storage_of(tensor), storage_of(tensor)) for tensor in terms]
                self.sums.append((places, storage_of(result), self.time))
                self.held += [*terms, result]
        if self.running and name in PRODUCTS and isinstance(result, Tensor) and result.numel() == self.size:
            terms = list(tensors_within(args))
            if len(terms) == 1 and terms[0].numel() == self.size and storage_of(terms[0]) != storage_of(result):
                self.scaled[storage_of(result)] = self.scaled.get(storage_of(terms[0]), storage_of(terms[0]))
                self.held += [*terms, result]
        return result


@contextmanager
def finding(model: nn.Module, stacks: Stacks, attention_paths: Sequence[str]) -> Iterator[FeedForwardPaths]:
    """Watch the pass inside the block; fills the modules found. attention_paths: modules that call attention."""
    paths: FeedForwardPaths = {}
    sums = _SumLog()
    with ExitStack() as hooks:
        for number, (path, _) in enumerate(stacks):
            _Watch(number, model, path, attention_paths, sums, paths).hook(hooks)
        hooks.enter_context(sums)
        yield paths


class _Watch:
    """Watches the layers of one stack."""

    def __init__(
        self, stack: int, model: nn.Module, path: str, attention: Sequence[str], sums: _SumLog, paths: FeedForwardPaths
    ) -> None:
        self.stack, self.model, self.path, self.sums, self.paths = stack, model, path, sums, paths
        self.attention = attention
        self.count = self.depth = 0
        self.order: list[ModuleOutput] = []

    def hook(self, hooks: ExitStack) -> None:
        for n, layer in self.model.get_submodule(self.path).named_children():  # each once, also if it is several layers
            hooks.enter_context(layer.register_forward_pre_hook(self._enter, with_kwargs=True))
            for below, module in layer.named_modules():
                if below and not any(f"{self.path}.{n}.{below}.".startswith(f"{p}.") for p in self.attention):
                    hooks.enter_context(module.register_forward_hook(partial(self._gave, below)))
            hooks.enter_context(layer.register_forward_hook(self._leave))

    def _enter(self, _module: nn.Module, args: Any, kwargs: Any) -> None:
        self.depth += 1
        if self.depth == 1:
            states = first_hidden_states((*args, *kwargs.values()))
            self.sums.size = 0 if states is None else states.numel()
            self.sums.running, self.sums.sums, self.sums.held, self.order = True, [], [], []
            self.sums.scaled, self.sums.written = {}, []

    def _gave(self, below: str, _module: nn.Module, _args: Any, output: Any) -> None:
        first = next(tensors_within(output), None)
        if first is not None and first.numel() == self.sums.size and first.is_floating_point():
            self.order.append((storage_of(first), below, self.sums.time))
            self.sums.held.append(first)

    def _leave(self, _module: nn.Module, _args: Any, _output: Any) -> None:
        self.depth -= 1
        if self.depth:
            return
        self.sums.running = False
        path = _last_feed_forward_term(self.sums.sums, self.order, self.sums.written)
        if path is not None and [below for _, below, _ in self.order].count(path) == 1:  # XMOD runs one twice
            self.paths[self.stack, self.count] = path
        self.count += 1


def _last_feed_forward_term(
    sums: Sequence[Sum], order: Sequence[ModuleOutput], written: Sequence[tuple[int, int]]
) -> str | None:
    """The path of the module whose output is the newest term of a layer's last sum, or of a sum that is its term."""
    if len(sums) < 2:  # the attention's alone
        return None

    def first(term: int, added: int) -> int | None:
        """Which module was the first to give a term as it was added, with nothing written into it between."""
        changed = max((time for storage, time in written if storage == term and time < added), default=0)
        outputs = (n for n, (storage, _, time) in enumerate(order) if storage == term and changed <= time <= added)
        return next(outputs, None)

    terms, _, last = sums[-1]
    inner = [([first(term, time) for term in added], made) for added, made, time in sums[:-1]]
    joined = [given_by for given_by, made in inner if made in terms and None not in given_by]  # of this layer: parallel
    newest = [n for given_by in ([first(term, last) for term in terms], *joined) for n in given_by if n is not None]
    return order[max(newest)][1] if newest else None


def feed_forward_not_found(layer: int, name: str) -> str:
    """The sentence that refuses a layer whose feed-forward output was not found."""
    return (
        f"interventions: what the feed-forward block of layer {layer} of {name} adds is no module's output: it cannot "
        "be patched"
    )


@contextmanager
def recording(model: nn.Module, stacks: Stacks, paths: FeedForwardPaths) -> Iterator[dict[tuple[int, int], Tensor]]:
    """Keep the feed-forward outputs of the pass inside the block, (B, L, M), by (stack, layer)."""
    outputs: dict[tuple[int, int], Tensor] = {}
    running: dict[int, int] = {}  # of each stack, the layer that runs
    shape: dict[int, Any] = {}

    def enter(stack: int, _module: nn.Module, args: Any, kwargs: Any) -> None:
        running[stack] = running.get(stack, -1) + 1
        states = first_hidden_states((*args, *kwargs.values()))
        assert states is not None
        shape[stack] = states.shape

    def keep(stack: int, below: str, _module: nn.Module, _args: Any, output: Any) -> None:
        if paths.get((stack, running[stack])) == below:
            first = next(tensors_within(output))
            outputs[stack, running[stack]] = first.detach().reshape(*shape[stack][:2], -1).clone()

    with ExitStack() as hooks:
        for stack, (path, _) in enumerate(stacks):
            of_stack = {below for (number, _), below in paths.items() if number == stack}
            for layer in model.get_submodule(path).children():
                hooks.enter_context(layer.register_forward_pre_hook(partial(enter, stack), with_kwargs=True))
                for below, module in layer.named_modules():
                    if below in of_stack:
                        hooks.enter_context(module.register_forward_hook(partial(keep, stack, below)))
        yield outputs
