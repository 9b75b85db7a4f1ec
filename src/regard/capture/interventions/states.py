"""Hook the layers of a running model to change hidden states and feed-forward outputs.

Layers are counted as they run, as in `capture/hooks.py`. So if one module is used for all layers (ALBERT), only the
requested layer is changed.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.capture.hooks import is_hidden_states
from regard.errors import RegardError

Stacks = Sequence[tuple[str, int]]  # (path of a stack's list of layers, number of layers that run), the encoder's first
FeedForwardPaths = Mapping[tuple[int, int], str]  # (stack, layer) -> the path of a module below its layer


@dataclass(frozen=True, eq=False)
class StateChange:
    """Rows that replace states or are added to them.

    stack: 0, or 1 for the decoder of an encoder-decoder. number: of the state (the input of layer `number`), or of the
    layer with the feed-forward output. positions: None for all. rows: (k or 1, M or 1).
    """

    stack: int
    number: int
    text: int
    positions: tuple[int, ...] | None
    rows: Float[Tensor, "k w"]
    adds: bool = False
    feed_forward: bool = False


class LayerHooks:
    """Hooks of the layers of a model's stacks. Subclasses read or change the states.

    `entered`, `left` and `fed` receive the number of the stack, the number of the running layer, and states (B, L, M).
    The model continues with the states that they return. feed_forwards: paths of the modules whose output `fed` gets.
    """

    def __init__(self, model: nn.Module, stacks: Stacks, feed_forwards: FeedForwardPaths | None = None) -> None:
        self._model, self._stacks, self._feed_forwards = model, stacks, feed_forwards or {}
        self._shape, self._past = torch.Size(), 0

    def entered(self, _stack: int, _layer: int, states: Tensor) -> Tensor:
        """Return the hidden states that enter a layer, changed or not."""
        return states

    def left(self, _stack: int, _layer: int, states: Tensor) -> Tensor:
        """Return the hidden states that leave a layer, changed or not."""
        return states

    def fed(self, _stack: int, _layer: int, states: Tensor) -> Tensor:
        """Return the feed-forward output of a layer, changed or not."""
        return states

    @contextmanager
    def opened(self, past: int = 0) -> Iterator[None]:
        """Call the methods in passes inside the block. past: the number of tokens before the passes."""
        self._past, self._count, self._depth = past, Counter[int](), Counter[int]()
        with ExitStack() as hooks:
            hooked: set[nn.Module] = set()
            for stack, (path, _) in enumerate(self._stacks):
                below = {name for key, name in self._feed_forwards.items() if key[0] == stack}
                for layer in self._model.get_submodule(path).children():  # once per module, even if shared
                    if layer not in hooked:
                        before = layer.register_forward_pre_hook(partial(self._enter_hook, stack), with_kwargs=True)
                        hooks.enter_context(before)
                        hooks.enter_context(layer.register_forward_hook(partial(self._leave_hook, stack)))
                    for name, module in layer.named_modules() if below else ():
                        if name in below and module not in hooked:
                            hooks.enter_context(module.register_forward_hook(partial(self._feed_hook, stack, name)))
                            hooked.add(module)
                    hooked.add(layer)
            yield

    def _enter_hook(self, stack: int, _module: nn.Module, args: Any, kwargs: Any) -> Any:
        self._depth[stack] += 1
        if self._depth[stack] > 1:
            return None
        for key, argument in (*enumerate(args), *kwargs.items()):
            if is_hidden_states(argument):
                self._shape = argument.shape
                states = self.entered(stack, self._count[stack], argument)
                if states is argument:
                    return None
                if isinstance(key, str):
                    return args, kwargs | {key: states}
                return (*args[:key], states, *args[key + 1 :]), kwargs
        return None

    def _leave_hook(self, stack: int, _module: nn.Module, _args: Any, output: Any) -> Any:
        self._depth[stack] -= 1
        if self._depth[stack]:
            return None
        self._count[stack] += 1
        return change_first_hidden_states(output, lambda states: self.left(stack, self._count[stack] - 1, states))

    def _feed_hook(self, stack: int, path: str, _module: nn.Module, _args: Any, output: Any) -> Any:
        layer = self._count[stack]
        if self._feed_forwards.get((stack, layer)) != path:
            return None

        def fed(states: Tensor) -> Tensor:
            shaped = states.reshape(*self._shape[:2], -1)
            changed = self.fed(stack, layer, shaped)
            return states if changed is shaped else changed.reshape(states.shape)

        return change_first_hidden_states(output, fed, min_axes=2)


class StateHooks(LayerHooks):
    """Hooks that change a model's states in passes inside `opened`. name: the model's name."""

    def __init__(
        self, model: nn.Module, stacks: Stacks, paths: FeedForwardPaths, changes: Sequence[StateChange], name: str
    ) -> None:
        super().__init__(model, stacks, paths)
        self._changes, self._name = changes, name

    def entered(self, stack: int, layer: int, states: Tensor) -> Tensor:
        """Change the hidden states that enter the first layer."""
        return states if layer else self._apply_changes(stack, 0, states)

    def left(self, stack: int, layer: int, states: Tensor) -> Tensor:
        """Change the hidden states that leave a layer."""
        return self._apply_changes(stack, layer + 1, states)

    def fed(self, stack: int, layer: int, states: Tensor) -> Tensor:
        """Change the feed-forward output of a layer."""
        return self._apply_changes(stack, layer, states, feed_forward=True)

    def _apply_changes(self, stack: int, number: int, states: Tensor, *, feed_forward: bool = False) -> Tensor:
        """Return hidden states after applying all changes for this stack and number."""
        changes = [
            change
            for change in self._changes
            if (change.stack, change.number, change.feed_forward) == (stack, number, feed_forward)
        ]
        if not changes:
            return states
        with torch._C.DisableTorchFunction():  # these aren't operations of the model
            states = states.clone()
            for change in changes:
                self._apply_change(change, states)
        return states

    def _apply_change(self, change: StateChange, states: Tensor) -> None:
        """Apply one change to hidden states (B, L, M), in place."""
        if states.ndim != 3:
            raise RegardError(
                f"interventions: a token's states in {self._name} are {states.shape[2]} streams: they cannot be changed"
            )
        text_states, rows = states[change.text], change.rows.to(states)
        if rows.shape[-1] not in (1, text_states.shape[-1]):
            raise RegardError(
                f"interventions: got vectors of {rows.shape[-1]} components, but {self._name} has "
                f"{text_states.shape[-1]}"
            )
        if change.positions is None:
            text_states += rows
            return
        present = [n for n, at in enumerate(change.positions) if self._past <= at < self._past + text_states.shape[0]]
        if not present:
            return
        at = torch.tensor([change.positions[n] - self._past for n in present], device=states.device)
        rows = (rows if rows.shape[0] == 1 else rows[present]).expand(len(present), text_states.shape[-1])
        text_states[at] = text_states[at] + rows if change.adds else rows


def change_first_hidden_states(output: Any, function: Callable[[Tensor], Tensor], min_axes: int = 3) -> object:
    """Apply a function to the first tensor of states in a module's output. Returns None if nothing changes."""
    several = isinstance(output, (tuple, list))
    for n, value in enumerate(output if several else (output,)):
        if is_hidden_states(value, min_axes):
            changed = function(value)
            if changed is value:
                return None
            make = getattr(type(output), "_make", type(output))  # a named tuple needs separate arguments
            return make((*output[:n], changed, *output[n + 1 :])) if several else changed
    return None
