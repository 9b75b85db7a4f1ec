"""Record the hidden states between a model's layers while it runs, without knowing its family.

A layer is an item of an nn.ModuleList; the items of one list, in the order they ran, are a stack where attention was
called in any of them. An encoder-decoder has two stacks.
"""

import inspect
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

from torch import Tensor, nn

from regard.capture.state import Capture, LayerStack

# How attention modules call the sequence that they take keys from, where it is another than their own.
OTHER_SEQUENCE = ("key_value_states", "encoder_hidden_states", "cross_attention_states")


@contextmanager
def record_layers(model: Any, capture: Capture) -> Iterator[dict[str, LayerStack]]:
    """Record a forward pass's stacks by path, and in capture.cross_paths which attention reads another sequence.

    While a layer runs, capture.layer is its stack's path and its number.
    """
    stacks: dict[str, LayerStack] = {}
    capture.stacks, capture.made, capture.layer = stacks, Counter(), None
    watch = _LayerWatch(capture)
    with ExitStack() as hooks:
        for path, module in model.named_modules():
            parent, _, last = path.rpartition(".")
            if last.isdigit() and isinstance(model.get_submodule(parent), nn.ModuleList):
                hooks.enter_context(module.register_forward_pre_hook(partial(watch.enter, parent), with_kwargs=True))
                # also where it raises, or the item would seem to run for ever
                hooks.enter_context(module.register_forward_hook(partial(watch.leave, path), always_call=True))
            elif "attention" in type(module).__name__.lower():
                hooks.enter_context(module.register_forward_pre_hook(partial(watch.crosses, path), with_kwargs=True))
        try:
            yield stacks
        finally:
            capture.layer = None
            for path in [path for path, stack in stacks.items() if not (stack.attends and stack.hidden_states)]:
                del stacks[path]


@dataclass
class _LayerWatch:
    """Hooks of the items of lists, of which the outermost that runs is a layer, and of attention modules.

    running: of the items that run now, how many attention calls there were before, and what entered.
    """

    capture: Capture
    running: list[tuple[int, Tensor | None]] = field(default_factory=list)

    def enter(self, stack: str, _module: nn.Module, args: Any, kwargs: Any) -> None:
        capture = self.capture
        if not self.running:
            found = capture.stacks.setdefault(stack, LayerStack(stack))
            capture.layer = stack, max(found.count - 1, 0)  # the number of the state that enters it
        self.running.append((capture.calls, _states_among((*args, *kwargs.values()))))

    def leave(self, path: str, _module: nn.Module, _args: Any, output: Any) -> None:
        capture = self.capture
        calls, entered = self.running.pop()
        left = _states_among(output if isinstance(output, (tuple, list)) else (output,))
        if self.running:
            return
        capture.layer = None
        if entered is None or left is None:
            return
        found = capture.stacks[path.rpartition(".")[0]]
        found.attends |= capture.calls > calls or path in capture.skipped_layers
        if not found.hidden_states:
            found.add(entered, capture.keep)
        found.add(left, capture.keep)

    def crosses(self, path: str, module: nn.Module, args: Any, kwargs: Any) -> None:
        arguments = dict(zip(_parameters(type(module).forward), args, strict=False)) | kwargs
        if any(arguments.get(name) is not None for name in OTHER_SEQUENCE):
            self.capture.cross_paths.add(path)


def _states_among(values: Any) -> Tensor | None:
    """The first tensor that can be a layer's hidden states among some values: floating-point, of three axes or more."""
    for value in values:
        if isinstance(value, Tensor) and value.is_floating_point() and value.ndim >= 3:
            return value
    return None


@lru_cache
def _parameters(forward: Any) -> tuple[str, ...]:
    return tuple(inspect.signature(forward).parameters)[1:]
