"""Change hidden states and feed-forward outputs while a model runs, by hooks on its layers.

Layers are counted as they run, as `capture/hooks.py` counts them: a module that is every layer (ALBERT) is
changed in the one that is meant.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.errors import RegardError

Stacks = Sequence[tuple[str, int]]  # (path of a stack's list of layers, how many run), the encoder's first


@dataclass(frozen=True, eq=False)
class StateChange:
    """Rows that are put in the place of states, or added to them.

    stack: 0, or 1 for a decoder behind an encoder. number: of the state (it enters layer number, it leaves the one
    before), of a feed-forward output the number of its layer. positions: None for all. rows: (k or 1, M or 1).
    """

    stack: int
    number: int
    text: int
    positions: tuple[int, ...] | None
    rows: Float[Tensor, "k w"]
    adds: bool = False
    feed_forward: bool = False


class StateHooks:
    """The changes of a model's states, made in the passes inside `opened`.

    stacks: of `Stacks`. feed_forwards: the path, below its layer, of the module that gives a feed-forward output, by
    (stack, layer).
    """

    def __init__(
        self,
        model: nn.Module,
        changes: Sequence[StateChange],
        stacks: Stacks,
        feed_forwards: Mapping[tuple[int, int], str],
        name: str,
    ) -> None:
        self._changes, self._name = list(changes), name
        self._layers: list[tuple[int, nn.Module, dict[str, nn.Module]]] = []
        feed_forward_places = {(change.stack, change.number) for change in changes if change.feed_forward}
        for stack in sorted({change.stack for change in changes}):
            path, _ = stacks[stack]
            below = {feed_forwards[key] for key in feed_forward_places if key[0] == stack}
            for layer in model.get_submodule(path).children():  # each once, also if it is several layers
                modules = dict(layer.named_modules()) if below else {}
                self._layers.append((stack, layer, {path: modules[path] for path in below if path in modules}))
        self._feed_forwards = feed_forwards
        self._past = 0
        self._count: dict[int, int] = {}
        self._depth: dict[int, int] = {}
        self._shape: torch.Size = torch.Size()

    @contextmanager
    def opened(self, past: int = 0) -> Iterator[None]:
        """Change what runs inside the block. past: how many tokens of the text went through the model before."""
        if not self._changes:
            yield
            return
        self._past, self._count, self._depth = past, {}, {}
        with ExitStack() as hooks:
            hooked: set[int] = set()
            for stack, layer, below in self._layers:
                if id(layer) not in hooked:
                    hooks.enter_context(layer.register_forward_pre_hook(partial(self._enter, stack), with_kwargs=True))
                    hooks.enter_context(layer.register_forward_hook(partial(self._leave, stack)))
                    hooked.add(id(layer))
                for path, module in below.items():
                    if id(module) not in hooked:
                        hooks.enter_context(module.register_forward_hook(partial(self._feed_forward, stack, path)))
                        hooked.add(id(module))
            yield

    def _enter(self, stack: int, _module: nn.Module, args: Any, kwargs: Any) -> Any:
        depth = self._depth[stack] = self._depth.get(stack, 0) + 1
        if depth > 1:
            return None
        for key, argument in (*enumerate(args), *kwargs.items()):
            if is_hidden_states(argument):
                self._shape = argument.shape
                states = self._changed(stack, 0, argument) if self._count.get(stack, 0) == 0 else argument
                if isinstance(key, str):
                    return args, kwargs | {key: states}
                return (*args[:key], states, *args[key + 1 :]), kwargs
        return None

    def _leave(self, stack: int, _module: nn.Module, _args: Any, output: Any) -> Any:
        self._depth[stack] -= 1
        if self._depth[stack]:
            return None
        self._count[stack] = self._count.get(stack, 0) + 1
        return change_first_hidden_states(output, lambda states: self._changed(stack, self._count[stack], states))

    def _feed_forward(self, stack: int, path: str, _module: nn.Module, _args: Any, output: Any) -> Any:
        layer = self._count.get(stack, 0)
        if self._feed_forwards.get((stack, layer)) != path:
            return None

        def changed(states: Tensor) -> Tensor:
            shaped = states.reshape(*self._shape[:2], -1)
            return self._changed(stack, layer, shaped, feed_forward=True).reshape(states.shape)

        return change_first_hidden_states(output, changed, least=2)

    def _changed(self, stack: int, number: int, states: Tensor, *, feed_forward: bool = False) -> Tensor:
        """The states with what is to be changed in them."""
        mine = [
            change
            for change in self._changes
            if (change.stack, change.number, change.feed_forward) == (stack, number, feed_forward)
        ]
        if not mine:
            return states
        with torch._C.DisableTorchFunction():  # what is done here is no operation of the model
            states = states.clone()
            for change in mine:
                self._put(change, states)
        return states

    def _put(self, change: StateChange, states: Tensor) -> None:
        """Make one change in states (B, L, M), in place."""
        if states.ndim != 3:
            raise RegardError(
                f"interventions: a token's states in {self._name} are {states.shape[2]} streams: they cannot be changed"
            )
        text_states, rows = states[change.text], change.rows.to(states)
        if rows.shape[-1] not in (1, text_states.shape[-1]):
            raise RegardError(
                f"interventions: given vectors of {rows.shape[-1]} components, those of {self._name} have "
                f"{text_states.shape[-1]}"
            )
        if change.positions is None:
            text_states += rows
            return
        here = [n for n, at in enumerate(change.positions) if self._past <= at < self._past + text_states.shape[0]]
        if not here:
            return
        at = torch.tensor([change.positions[n] - self._past for n in here], device=states.device)
        rows = (rows if rows.shape[0] == 1 else rows[here]).expand(len(here), text_states.shape[-1])
        text_states[at] = text_states[at] + rows if change.adds else rows


def is_hidden_states(value: Any, least: int = 3) -> bool:
    """Whether something is a tensor of hidden states, of so many axes or more."""
    return isinstance(value, Tensor) and value.is_floating_point() and value.ndim >= least


def first_hidden_states(values: Any) -> Tensor | None:
    """The first tensor of hidden states among some values."""
    return next((value for value in values if is_hidden_states(value)), None)


def change_first_hidden_states(output: Any, function: Any, least: int = 3) -> Any:
    """What a module gave, with a function of its first tensor of states in that one's place."""
    if is_hidden_states(output, least):
        return function(output)
    if type(output) in (tuple, list):
        for n, value in enumerate(output):
            if is_hidden_states(value, least):
                return type(output)((*output[:n], function(value), *output[n + 1 :]))
    return None
