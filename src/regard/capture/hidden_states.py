"""Record the hidden states between a model's layers while it runs, without knowing its family.

A layer is an item of an nn.ModuleList; the items of one list, in the order they ran, are a stack where attention was
called in any of them. An encoder-decoder has two stacks.
"""

import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from regard.capture.options import CaptureOptions
from regard.capture.state import Capture

# How attention modules call the sequence that they take keys from, where it is another than their own.
OTHER_SEQUENCE = ("key_value_states", "encoder_hidden_states", "cross_attention_states")


@dataclass
class LayerStack:
    """One stack's layers in the order they ran: what entered the first, what left each. (B, L, M) tensors.

    dropped: the numbers of the states that were not to be kept; states holds the others. The last one is always there.
    calls: the layer that each attention call was made in, by (path of its module, n-th call of that path).
    """

    path: str
    hidden_states: list[Float[Tensor, "B L M"]] = field(default_factory=list)
    attends: bool = False
    dropped: list[int] = field(default_factory=list)
    calls: dict[tuple[str, int], int] = field(default_factory=dict)

    @property
    def numbered(self) -> dict[int, Float[Tensor, "B L M"]]:
        """The states that were kept, by their numbers."""
        kept = [n for n in range(self.count) if n not in self.dropped]
        return dict(zip(kept, self.hidden_states, strict=True))

    @property
    def count(self) -> int:
        """How many states there were, one more than layers."""
        return len(self.hidden_states) + len(self.dropped)

    def add(self, state: Float[Tensor, "B L M"], keep: CaptureOptions) -> None:
        """The next state; the one before is let go of where it is not to be kept."""
        last = self.count - 1
        if last >= 0 and not keep.state(last):
            self.hidden_states.pop()
            self.dropped.append(last)
        self.hidden_states.append(state.detach())


@contextmanager
def record_layers(model: Any, capture: Capture) -> Iterator[dict[str, LayerStack]]:
    """Record a forward pass's stacks by path, and in capture.cross_paths which attention reads another sequence.

    While a layer runs, capture.layer is its stack's path and its number.
    """
    stacks: dict[str, LayerStack] = {}
    running: list[tuple[int, Tensor | None]] = []  # of the list items that run now: attention calls before, input
    hooks = ExitStack()

    def enter(path: str) -> Any:
        stack = path.rpartition(".")[0]

        def hook(_module: nn.Module, args: Any, kwargs: Any) -> None:
            if not running:
                found = stacks.setdefault(stack, LayerStack(stack))
                capture.layer = stack, max(found.count - 1, 0)  # the number of the state that enters it
            running.append((capture.calls, _tensor((*args, *kwargs.values()))))

        return hook

    def leave(path: str) -> Callable[..., None]:
        stack = path.rpartition(".")[0]

        def hook(_module: nn.Module, _args: Any, output: Any) -> None:
            calls, entered = running.pop()
            left = _tensor(output if isinstance(output, (tuple, list)) else (output,))
            if running:
                return
            capture.layer = None
            if entered is None or left is None:
                return
            found = stacks[stack]
            found.attends |= capture.calls > calls or path in capture.skipped_layers
            if not found.hidden_states:
                found.add(entered, capture.keep)
            found.add(left, capture.keep)

        return hook

    def find_cross_attention(path: str) -> Callable[..., None]:
        def hook(module: nn.Module, args: Any, kwargs: Any) -> None:
            arguments = dict(zip(_parameters(type(module).forward), args, strict=False)) | kwargs
            if any(arguments.get(name) is not None for name in OTHER_SEQUENCE):
                capture.cross_paths.add(path)

        return hook

    seen: Counter[str] = Counter()

    def at_call(path: str) -> None:
        key = path, seen[path]
        seen[path] += 1
        if capture.layer is not None:
            stack, layer = capture.layer
            stacks[stack].calls[key] = layer

    for path, module in model.named_modules():
        parent, _, last = path.rpartition(".")
        if last.isdigit() and isinstance(model.get_submodule(parent), nn.ModuleList):
            hooks.enter_context(module.register_forward_pre_hook(enter(path), with_kwargs=True))
            hooks.enter_context(module.register_forward_hook(leave(path), always_call=True))
        elif "attention" in type(module).__name__.lower():
            hooks.enter_context(module.register_forward_pre_hook(find_cross_attention(path), with_kwargs=True))
    capture.at_call, capture.layer = at_call, None
    try:
        with hooks:
            yield stacks
    finally:
        capture.at_call = capture.layer = None
        for path in [path for path, stack in stacks.items() if not (stack.attends and stack.hidden_states)]:
            del stacks[path]


def _tensor(values: Any) -> Tensor | None:
    """The first floating-point tensor of three axes or more among some values: a layer's hidden states."""
    for value in values:
        if isinstance(value, Tensor) and value.is_floating_point() and value.ndim >= 3:
            return value
    return None


@lru_cache
def _parameters(forward: Any) -> tuple[str, ...]:
    return tuple(inspect.signature(forward).parameters)[1:]
