"""Learn a model's structure from plain passes and use it to resolve interventions.

The structure is its stacks of layers, the modules that compute feed-forward outputs, and these outputs for a trace.

Feed-forward modules are found in any architecture by watching one plain pass. A layer ends by adding the feed-forward
output to the residual, directly or (parallel blocks) after adding it to the attention output. The module is the
innermost module whose output is a term of such a sum, possibly multiplied by a number (Granite). A patch inserts the
output before this factor. If a module's output is written into later (Llama 4 adds its experts to the shared expert's
output), an outer module is used.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from jaxtyping import Float
from torch import Tensor, nn

from regard.capture.build_trace import CapturedPass
from regard.capture.interventions.names import Part
from regard.capture.interventions.resolve import Changes, Pass, check_patch_source_states, needs_stacks, resolve
from regard.capture.interventions.states import FeedForwardPaths, LayerHooks, Stacks, StateHooks
from regard.capture.operations import (
    ADDS,
    PRODUCTS,
    OperationMode,
    operation_writes_in_place,
    storage_of,
    tensors_within,
)  # fmt: skip
from regard.capture.state import shown_stacks
from regard.errors import RegardError
from regard.text.tokens import Encoded
from regard.trace.trace import PairTrace, Trace

Sum = tuple[list[int], int, int]  # (storages of the terms, storage of the sum, time of the addition)
ModuleOutput = tuple[int, str, int]  # (storage of a module's output, path inside the layer, time)


class _SumLog(OperationMode):
    """Log the two-term sums of the running layer: terms, result and time.

    A tensor times a number counts as the tensor itself. written: (storage, time) of each write. time: in operations.
    """

    def __init__(self) -> None:
        super().__init__()
        self.begin(0)
        self.running, self.time = False, 0

    def begin(self, size: int) -> None:
        """Begin to log the sums of a layer whose states have `size` numbers."""
        self.running, self.size = True, size
        self.sums: list[Sum] = []
        self.written: list[tuple[int, int]] = []
        self.scaled: dict[int, int] = {}  # storage of a tensor times a number -> storage of the tensor
        self.kept_alive: list[Tensor] = []  # so that storages stay unique

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
                self.kept_alive += [*terms, result]
        if self.running and name in PRODUCTS and isinstance(result, Tensor) and result.numel() == self.size:
            terms = tensors_within(args)
            if len(terms) == 1 and terms[0].numel() == self.size and storage_of(terms[0]) != storage_of(result):
                self.scaled[storage_of(result)] = self.scaled.get(storage_of(terms[0]), storage_of(terms[0]))
                self.kept_alive += [*terms, result]
        return result


class _FeedForwardSearch(LayerHooks):
    """Find the modules that compute feed-forward outputs. attention: paths of the modules that call attention."""

    def __init__(self, model: nn.Module, stacks: Stacks, attention: Sequence[str]) -> None:
        super().__init__(model, stacks)
        self.paths: dict[tuple[int, int], str] = {}
        self._attention, self._sums = attention, _SumLog()
        self._order: list[ModuleOutput] = []

    @contextmanager
    def opened(self, past: int = 0) -> Iterator[None]:
        """Search for feed-forward modules in the forward pass inside the block, with hooks."""
        with ExitStack() as hooks:
            for path, _ in self._stacks:
                for n, layer in self._model.get_submodule(path).named_children():
                    for below, module in layer.named_modules():
                        if below and not any(f"{path}.{n}.{below}.".startswith(f"{p}.") for p in self._attention):
                            hooks.enter_context(module.register_forward_hook(partial(self._note_output, below)))
            hooks.enter_context(super().opened(past))
            hooks.enter_context(self._sums)
            yield

    def entered(self, _stack: int, _layer: int, states: Tensor) -> Tensor:
        """Begin to log the sums of a layer that the pass enters."""
        self._sums.begin(states.numel())
        self._order = []
        return states

    def _note_output(self, below: str, _module: nn.Module, _args: Any, output: Any) -> None:
        for first in tensors_within(output)[:1]:
            if first.numel() == self._sums.size and first.is_floating_point():
                self._order.append((storage_of(first), below, self._sums.time))
                self._sums.kept_alive.append(first)

    def left(self, stack: int, layer: int, states: Tensor) -> Tensor:
        """Find the module whose output is a term of the layer's last sum, and stop logging."""
        self._sums.running = False
        path = _last_feed_forward_term(self._sums.sums, self._order, self._sums.written)
        if path is not None and [below for _, below, _ in self._order].count(path) == 1:  # XMOD runs a module twice
            self.paths[stack, layer] = path
        return states


class _FeedForwardOutputs(LayerHooks):
    """Keep the feed-forward outputs of a pass, (B, L, M), by (stack, layer)."""

    def __init__(self, model: nn.Module, stacks: Stacks, paths: FeedForwardPaths) -> None:
        super().__init__(model, stacks, paths)
        self.outputs: dict[tuple[int, int], Tensor] = {}

    def fed(self, stack: int, layer: int, states: Tensor) -> Tensor:
        """Keep a copy of the feed-forward output of a layer."""
        self.outputs[stack, layer] = states.detach().clone()
        return states


def _last_feed_forward_term(
    sums: Sequence[Sum], order: Sequence[ModuleOutput], written: Sequence[tuple[int, int]]
) -> str | None:
    """Return the path of the module with the newest output in a layer's last sum, or in a sum that is its term."""
    if len(sums) < 2:  # only attention's
        return None

    def first(term: int, added: int) -> int | None:
        """Return the number of the first module that output this term, if it wasn't changed before the addition."""
        changed = max((time for storage, time in written if storage == term and time < added), default=0)
        outputs = (n for n, (storage, _, time) in enumerate(order) if storage == term and changed <= time <= added)
        return next(outputs, None)

    terms, _, last = sums[-1]
    inner = [([first(term, time) for term in added], result) for added, result, time in sums[:-1]]
    joined = [modules for modules, result in inner if result in terms and None not in modules]  # parallel block
    newest = [n for modules in ([first(term, last) for term in terms], *joined) for n in modules if n is not None]
    return order[max(newest)][1] if newest else None


def feed_forward_not_found(layer: int, name: str) -> str:
    """Return the error message for a layer whose feed-forward output was not found."""
    return (
        f"interventions: what the feed-forward block of layer {layer} of {name} adds is no module's output: it cannot "
        "be patched"
    )


# (source, target of an encoder-decoder, context manager around the model's forward) -> the plain pass of one text
PlainPass = Callable[[Encoded, Encoded | None, Callable[[], AbstractContextManager[None]]], CapturedPass]


class ModelStructure:
    """Facts about a model from plain passes. Each pass runs once, when first needed."""

    def __init__(self, model: nn.Module, name: str, *, pairs: bool, plain_pass: PlainPass) -> None:
        self._model, self._name, self._pairs, self._pass = model, name, pairs, plain_pass
        self._stacks: Stacks | None = None
        self._attention: list[str] = []
        self._feed_forwards: FeedForwardPaths | None = None
        self._outputs: WeakKeyDictionary[Trace, dict[tuple[int, int], Tensor]] = WeakKeyDictionary()

    def stacks(self, source: Encoded, target: Encoded | None) -> Stacks:
        """Return the paths of the model's stacks and their numbers of layers, learned from these texts."""
        if self._stacks is None:
            done = self._pass(source, target, nullcontext)
            stacks = shown_stacks(done.stacks, pairs=self._pairs)
            assert done.call_ids is not None
            modules = dict(self._model.named_modules())
            for stack in stacks:
                # such as XLM, without a list of layers, or XLNet, whose states have another shape
                if not isinstance(modules.get(stack.path), nn.ModuleList):
                    raise RegardError(
                        f"interventions: no modules of one list give the states between the {stack.count - 1} layers "
                        f"of {self._name}, as it reports them: they cannot be changed"
                    )
            self._attention = sorted({path for path, _ in done.call_ids.ids})
            self._stacks = [(stack.path, stack.count - 1) for stack in stacks]
        return self._stacks

    def feed_forwards(self, source: Encoded, target: Encoded | None) -> FeedForwardPaths:
        """Return the paths of feed-forward modules by (stack, layer), learned from these texts."""
        if self._feed_forwards is None:
            search = _FeedForwardSearch(self._model, self.stacks(source, target), self._attention)
            self._pass(source, target, search.opened)
            self._feed_forwards = search.paths
        return self._feed_forwards

    def feed_forward_outputs(self, source: Trace | PairTrace, part: Part | None, layer: int) -> Float[Tensor, "L M"]:
        """Return a layer's feed-forward output for a trace, by running its tokens again once."""
        sides = source.sides
        if sides[-1] not in self._outputs:  # a PairTrace can't be a key
            if (len(sides) == 2) != self._pairs:
                needs = "the pair of an encoder-decoder" if self._pairs else "the trace of one text"
                raise RegardError(f"source: {self._name} needs {needs} to take feed-forward outputs from")
            texts = [Encoded(side.text, side.tokens, None, (), ()) for side in sides]
            of_text = texts[0], texts[1] if self._pairs else None
            stacks = self.stacks(*of_text)
            recorder = _FeedForwardOutputs(self._model, stacks, self.feed_forwards(*of_text))
            done = self._pass(*of_text, recorder.opened)
            for side, (path, _) in zip(sides, stacks, strict=True):
                states = done.stacks[path].hidden_states.values()
                check_patch_source_states([state[0] for state in states], side, self._name)
            self._outputs[sides[-1]] = {key: output[0] for key, output in recorder.outputs.items()}
        outputs, layer_key = self._outputs[sides[-1]], (1 if part == "decoder" else 0, layer)
        if layer_key not in outputs:
            raise RegardError(feed_forward_not_found(layer, self._name))
        return outputs[layer_key]

    def changes(
        self, sources: Sequence[Encoded], targets: Sequence[Encoded] | None, interventions: Sequence[Sequence[Any]]
    ) -> Changes:
        """Resolve the interventions of each text of a batch (see `resolve`)."""
        changes = Changes()
        for n, (source, of_text) in enumerate(zip(sources, interventions, strict=True)):
            target = None if targets is None else targets[n]
            stacks = self.stacks(source, target) if needs_stacks(of_text) else ()
            resolved = resolve(of_text, Pass(source, target, n, self._name, stacks, self.feed_forward_outputs))
            changes.calls += resolved.calls
            changes.states += resolved.states
        return changes

    def hooks(
        self, changes: Changes, source: Encoded, target: Encoded | None
    ) -> Callable[[int], AbstractContextManager[Any]]:
        """Return a function of `past` that applies changes of states in a pass that begins after `past` tokens.

        source, target: a text to learn the structure from if it isn't known yet.
        """
        fed = any(change.feed_forward for change in changes.states)
        paths = self.feed_forwards(source, target) if fed else {}
        for change in changes.states:
            if change.feed_forward and (change.stack, change.number) not in paths:
                raise RegardError(feed_forward_not_found(change.number, self._name))
        return StateHooks(self._model, self.stacks(source, target), paths, changes.states, self._name).opened
