"""Hook one forward pass of a model to record its layers, its cross-attention and its last hidden states.

A layer is an item of an nn.ModuleList. The items of a list, in the order in which they ran, are a stack if any of them
called attention. An encoder-decoder has two stacks. This works for any architecture.
"""

import inspect
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from torch import Tensor, nn

from regard.capture.output_path import layer_ended
from regard.capture.state import Capture, LayerStack, ModuleIndex

_Item = tuple[str, str, nn.Module]  # (path, path of its list, module)
_Reader = tuple[str, nn.Module, tuple[str, ...]]
# Argument names by which attention modules receive another sequence for keys and values.
OTHER_SEQUENCE = ("key_value_states", "encoder_hidden_states", "cross_attention_states")


@contextmanager
def record_last_hidden_states(model: Any, *, head_input: bool) -> Iterator[dict[str, Tensor]]:
    """Record the last hidden states of the base model and its encoder in the pass inside the block.

    head_input: whether to use the language head's input if the pass doesn't call the base model.
    """
    last: dict[str, Tensor] = {}

    def keep_last(_module: Any, _args: Any, output: Any) -> None:
        for name in ("last_hidden_state", "encoder_last_hidden_state"):
            if isinstance(getattr(output, name, None), Tensor):
                last[name] = getattr(output, name)

    def keep_head_input(_module: Any, args: Any) -> None:
        last.setdefault("last_hidden_state", args[0])  # some models don't call their base model, such as OPT

    with ExitStack() as hooks:
        for end in (model.base_model, model):  # the model's own result overrides the base model's
            hooks.enter_context(end.register_forward_hook(keep_last))
        head = model.get_output_embeddings() if head_input else None
        if head is not None:
            hooks.enter_context(head.register_forward_pre_hook(keep_head_input))
        yield last


@contextmanager
def record_layers(model: Any, capture: Capture) -> Iterator[dict[str, LayerStack]]:
    """Record a forward pass's stacks by path, and in capture.cross_paths the paths of cross-attention modules.

    While a layer runs, capture.layer is (path of its stack, layer number).
    """
    stacks: dict[str, LayerStack] = {}
    capture.stacks, capture.made, capture.layer = stacks, Counter(), None
    watch, hooks = _LayerWatch(capture), ExitStack()
    items, readers = (capture.index or ModuleIndex(model)).once(_watched_modules)
    for path, parent, module in items:
        hooks.enter_context(module.register_forward_pre_hook(partial(watch.enter, parent), with_kwargs=True))
        # even if it raises, so that the item doesn't count as running forever
        hooks.enter_context(module.register_forward_hook(partial(watch.leave, path), always_call=True))
    for path, module, names in readers:
        hooks.enter_context(module.register_forward_pre_hook(partial(watch.crosses, path, names), with_kwargs=True))
    try:
        with hooks:
            yield stacks
    finally:
        capture.layer = None
        for path in [path for path, stack in stacks.items() if not (stack.attends and stack.hidden_states)]:
            del stacks[path]


def _watched_modules(model: Any) -> tuple[list[_Item], list[_Reader]]:
    """Find the items of a model's module lists, and attention modules that may read another sequence."""
    items: list[_Item] = []
    readers: list[_Reader] = []
    for path, module in model.named_modules():
        parent, _, last = path.rpartition(".")
        if last.isdigit() and isinstance(model.get_submodule(parent), nn.ModuleList):
            items.append((path, parent, module))
        elif "attention" in type(module).__name__.lower():
            readers.append((path, module, tuple(inspect.signature(type(module).forward).parameters)[1:]))
    return items, readers


@dataclass
class _LayerWatch:
    """Hooks of attention modules and of the items of module lists. The outermost running item is the layer.

    running: for each running item, the number of attention calls before it and the state that entered it.
    """

    capture: Capture
    running: list[tuple[int, Tensor | None]] = field(default_factory=list)

    def enter(self, stack: str, _module: nn.Module, args: Any, kwargs: Any) -> None:
        capture = self.capture
        entered = first_hidden_states((*args, *kwargs.values()))
        if not self.running:
            layers = capture.stacks.setdefault(stack, LayerStack(stack))
            capture.layer = stack, max(layers.count - 1, 0)  # the number of the state that enters the layer
        self.running.append((capture.call_count, entered))

    def leave(self, path: str, _module: nn.Module, _args: Any, output: Any) -> None:
        capture = self.capture
        calls, entered = self.running.pop()
        left = first_hidden_states(output)
        if self.running:
            return
        layer_ended()
        capture.layer = None
        if entered is None or left is None:
            return
        layers = capture.stacks[path.rpartition(".")[0]]
        layers.attends |= capture.call_count > calls or path in capture.skipped_layers
        if not layers.hidden_states:
            layers.add(entered, capture.keep)
        layers.add(left, capture.keep)

    def crosses(self, path: str, names: tuple[str, ...], _module: nn.Module, args: Any, kwargs: Any) -> None:
        arguments = dict(zip(names, args, strict=False)) | kwargs
        if any(arguments.get(name) is not None for name in OTHER_SEQUENCE):
            self.capture.cross_paths.add(path)


def is_hidden_states(value: object, min_axes: int = 3) -> bool:
    """Return whether a value is a floating-point tensor with at least this many axes."""
    return isinstance(value, Tensor) and value.is_floating_point() and value.ndim >= min_axes


def first_hidden_states(values: Any) -> Tensor | None:
    """Return the first tensor of hidden states among arguments or in a module's output."""
    values = values if isinstance(values, (tuple, list)) else (values,)
    return next((value for value in values if is_hidden_states(value)), None)
