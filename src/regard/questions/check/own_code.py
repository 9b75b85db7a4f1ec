"""Run a model's own eager code, as it is or changed, in its own precision or in float64: what traces are held against.

Nothing of regard's attention, hooks or products has a part in it: transformers computes every weight and writes it out.
What is changed in a pass (a head, an edge, a state) is changed in that code's arguments and results.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

from regard.capture.hf_attention import attention_settings, uses_attention_interface
from regard.errors import RegardError
from regard.memory import available
from regard.model_files.quiet import quiet
from regard.nn.evaluation_mode import model_in_evaluation_mode
from regard.nn.transformer import Transformer

EAGER, CHANGED = "eager", "regard_check"  # attention of transformers by these names
SIDES = ("", "encoder_", "decoder_", "cross_")


@dataclass(frozen=True)
class OwnPass:
    """What a model's own code reports. weights, states: by side ("", or "encoder_", "decoder_" and "cross_").

    Layers that report none are left out. last: the last states of its last side; logits: None without a language head.
    """

    weights: dict[str, list[Float[Tensor, "B H _ _"]]]
    states: dict[str, list[Float[Tensor, "B ..."]]]
    last: Float[Tensor, "B T M"] | None
    logits: Float[Tensor, "B T V"] | None

    @property
    def result(self) -> Float[Tensor, "B T K"]:
        """The logits, or the last states of a model without them.

        Raises:
            RegardError: the model reports neither.
        """
        found = self.last if self.logits is None else self.logits
        if found is None:
            raise RegardError("the model reports neither logits nor last states")
        return found


# (value (B, G, S, E), additive mask (B, 1 or H, L, S) or None) -> the same, changed
Before = Callable[[Tensor, Tensor | None], tuple[Tensor, Tensor | None]]
After = Callable[[Tensor, Tensor], Tensor]  # (output (B, L, H, E), value (B, G, S, E)) -> the output, changed


@dataclass(frozen=True)
class Changes:
    """What is changed in a pass of the model's own code.

    before, after: of attention calls by their number, what their arguments and results become. layers: of modules by
    their path, what the states (B, L, M) that they give become; entering: those that they are given.
    """

    before: Mapping[int, Before] = field(default_factory=dict)
    after: Mapping[int, After] = field(default_factory=dict)
    layers: Mapping[str, Callable[[Tensor], Tensor]] = field(default_factory=dict)
    entering: Mapping[str, Callable[[Tensor], Tensor]] = field(default_factory=dict)


def own_pass(model: Any, inputs: Mapping[str, Any], *, widened: bool = False) -> OwnPass:
    """Run a model of transformers by its own eager attention, which reports all weights and states.

    widened: whether in float64, in which each module's weights are raised while it runs.

    Raises:
        RegardError: the model is regard's own, its code does not run like this, or it reports no weights.
    """
    with computing_in_float64(model) if widened else nullcontext():
        given = _floats_as(inputs, torch.float64) if widened else inputs
        output = _run(model, given, EAGER, output_attentions=True, output_hidden_states=True)
    found = reported(output)
    if not found.weights:
        raise RegardError("the model's own eager code reports no weights")
    return found


def plain_pass(model: Any, inputs: Mapping[str, Any]) -> OwnPass:
    """Run a model of transformers as it is, by the attention kernel that it is set to."""
    return reported(_run(model, inputs, None, output_hidden_states=True))


def changed_pass(model: Any, inputs: Mapping[str, Any], changes: Changes) -> OwnPass:
    """Run a model's own eager code with something changed in it; it reports states, and no weights.

    Raises:
        RegardError: its attention calls cannot be reached, or it does not run.
    """
    if not uses_attention_interface(model):
        raise RegardError("its attention does not go through the attention interface of transformers")
    modules = dict(model.named_modules())
    token = _changing.set(_Calls(changes))
    try:
        with ExitStack() as opened:
            for path, change in changes.layers.items():
                opened.enter_context(_hook(modules[path].register_forward_hook(_leaving(change))))
            for path, change in changes.entering.items():
                hook = modules[path].register_forward_pre_hook(_entering(change), with_kwargs=True)
                opened.enter_context(_hook(hook))
            output = _run(model, inputs, CHANGED, output_hidden_states=True)
        calls = _changing.get()
        assert calls is not None
        made = calls.count
    finally:
        _changing.reset(token)
    missing = [n for n in (*changes.before, *changes.after) if n >= made]
    if missing:
        raise RegardError(f"attention call {missing[0]} was not made: {made} were")
    return reported(output)


@contextmanager
def computing_in_float64(model: nn.Module) -> Iterator[None]:
    """Inside the block a model's weights are in float64: all of them, or those of each module while it runs.

    A module at a time where memory has no room for all: families that ask for another module's dtype then do not run.
    """
    kept: list[tuple[Any, str, Tensor]] = []

    def raise_weights(module: nn.Module, _args: Any = None) -> None:
        own: list[tuple[Any, str, Tensor]] = []
        for tensors in (module._parameters, module._buffers):
            own += [(tensors, name, each) for name, each in tensors.items() if each is not None]
        for held, name, each in own:
            if each.is_floating_point() and each.dtype != torch.float64:
                wide = each.detach().double()
                held[name] = nn.Parameter(wide, False) if isinstance(each, nn.Parameter) else wide
                kept.append((held, name, each))

    def put_back(module: nn.Module, _args: Any = None, _output: Any = None) -> None:
        own = module._parameters, module._buffers
        here = [each for each in kept if any(each[0] is tensors for tensors in own)]
        kept[:] = [each for each in kept if all(each[0] is not tensors for tensors in own)]
        for held, name, tensor in here:
            held[name] = tensor

    modules = list(model.modules())
    need, there = 8 * sum(each.numel() for each in model.parameters()), available(next(model.parameters()).device)
    with ExitStack() as hooks:
        for module in modules:
            if there is None or need < there / 2:
                raise_weights(module)
                continue
            hooks.enter_context(_hook(module.register_forward_pre_hook(raise_weights, prepend=True)))
            hooks.enter_context(_hook(module.register_forward_hook(put_back, always_call=True)))
        try:
            yield
        finally:
            for held, name, each in reversed(kept):
                held[name] = each


class _Calls:
    """Counts the attention calls of a changed pass."""

    def __init__(self, changes: Changes) -> None:
        self.changes, self.count = changes, 0


_changing: ContextVar[_Calls | None] = ContextVar("regard_check_changes", default=None)


def _attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Any, **rest: Any
) -> tuple[Tensor, Any]:
    """The family's own eager function, with what it is given and what it gives changed."""
    eager = getattr(sys.modules[type(module).__module__], "eager_attention_forward", None)
    if eager is None:
        raise RegardError(f"{type(module).__name__} has no eager attention function in its file")
    calls = _changing.get()
    assert calls is not None
    number, changes = calls.count, calls.changes
    calls.count += 1
    if number in changes.before:
        value, attention_mask = changes.before[number](value, attention_mask)
    output, weights = eager(module, query, key, value, attention_mask, **rest)
    if number in changes.after:
        output = changes.after[number](output.clone(), value)
    return output, weights


AttentionInterface.register(CHANGED, _attention)
AttentionMaskInterface.register(CHANGED, eager_mask)


def _run(model: Any, inputs: Mapping[str, Any], attention: str | None, **asked: Any) -> Any:
    """What a model returns in evaluation mode, with its attention set to this name (None: as it is)."""
    if isinstance(model, Transformer):
        raise RegardError("it is a regard.Transformer: its code is regard's, there is no other to hold it against")
    before = attention_settings(model.modules())
    try:
        for config, _ in before if attention is not None else ():
            config._attn_implementation_internal = attention
        with model_in_evaluation_mode(model), quiet(), torch.no_grad():
            return model(**inputs, **asked)
    except RegardError:
        raise
    except Exception as error:  # families raise whatever they run into
        said = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise RegardError(f"its own code does not run so: {said[:120]}") from error
    finally:
        for config, name in before:
            config._attn_implementation_internal = name


def reported(output: Any) -> OwnPass:
    """Take out of what a model of transformers returns what it reports of weights, states and its result."""
    weights: dict[str, list[Tensor]] = {}
    states: dict[str, list[Tensor]] = {}
    for side in SIDES:
        given = [each for each in getattr(output, f"{side}attentions", None) or () if each is not None]
        if given:
            weights[side] = given
        if getattr(output, f"{side}hidden_states", None):
            states[side] = list(getattr(output, f"{side}hidden_states"))
    last, logits = getattr(output, "last_hidden_state", None), getattr(output, "logits", None)
    logits = logits if isinstance(logits, Tensor) and logits.ndim == 3 else None
    if last is None or last.ndim != 3:  # the newest of the states, but not of models that go on with them
        last = states[""][-1] if "" in states and logits is None else None
    return OwnPass(weights, states, last, logits)


def _floats_as(inputs: Mapping[str, Any], dtype: torch.dtype) -> dict[str, Any]:
    return {
        name: each.to(dtype) if isinstance(each, Tensor) and each.is_floating_point() else each
        for name, each in inputs.items()
    }


def _leaving(change: Callable[[Tensor], Tensor]) -> Callable[..., Any]:
    """A hook that changes the states a layer gives, whatever stands beside them."""

    def hook(_module: nn.Module, _args: Any, output: Any) -> Any:
        return change(output) if isinstance(output, Tensor) else (change(output[0]), *output[1:])

    return hook


def _entering(change: Callable[[Tensor], Tensor]) -> Callable[..., Any]:
    """A hook that changes the states a layer is given."""

    def hook(_module: nn.Module, args: Any, kwargs: dict[str, Any]) -> Any:
        if args:
            return (change(args[0]), *args[1:]), kwargs
        return args, kwargs | {"hidden_states": change(kwargs["hidden_states"])}

    return hook


@contextmanager
def _hook(handle: Any) -> Iterator[None]:
    try:
        yield
    finally:
        handle.remove()
