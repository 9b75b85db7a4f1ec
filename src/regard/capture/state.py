"""Hold what is known of a model's modules, and what is observed during one captured pass."""

import functools
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.recording import Calls
from regard.capture.options import CaptureOptions
from regard.trace.attention_output import AttentionOutput, UnverifiedOutput

Result = TypeVar("Result")

FEW = 1 << 10  # tokens of a pass, up to which Python's own time is larger than that of the computations
ROWS = 4  # query rows of each call that are compared: the model computes these a second time, so there are few
SAME_INPUTS = "the model's own attention on the same queries and keys"


@functools.cache
def sampled_rows(length: int) -> Int[Tensor, " r"]:
    """Return the query rows to compare: the first, the last and some between. Cached: don't write into them."""
    return torch.linspace(0, length - 1, min(ROWS, length)).round().long().unique()


def compared_batch_texts(call: int, count: int) -> slice:
    """Return which texts of a batch of count are compared in a pass's n-th call, from 1: two or a quarter of them.

    Successive calls take successive texts, because texts differ in their padding.
    """
    some = min(count, max(2, -(-count // 4)))
    return slice(start := min((call - 1) * some % count, count - some), start + some)


def of_transformers(value: object, name: str) -> bool:
    """Return whether a value is of the transformers class of this name, without importing transformers."""
    kind: Any = type(value)
    return _below_class(kind, name)


@functools.cache
def _below_class(kind: Any, name: str) -> bool:
    return any(base.__name__ == name and base.__module__.startswith("transformers.") for base in kind.__mro__)


def computing_dtype(model: Any) -> tuple[torch.dtype, str]:
    """Return the dtype that a model computes in now, and its name for a status. Autocast leaves float64 as it is."""
    dtype, kind, how = model.dtype, model.device.type, ""
    if kind != "meta" and dtype != torch.float64 and torch.is_autocast_enabled(kind):
        dtype, how = torch.get_autocast_dtype(kind), " (autocast)"
    return dtype, str(dtype).removeprefix("torch.") + how


class ModuleIndex:
    """A model's modules and facts learned about them, since searching them in each pass takes as long as a layer.

    modules: each once, in the order of `named_modules`. paths: of each, by its id. forwards: of each: if a module is
    replaced, added or given another forward, this index is of another model (`current`). outputs: the modules that each
    attention call's output goes through; empty if they aren't certain, None before a second pass was followed.
    followed: how many passes were followed, operation by operation.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self.modules: list[nn.Module] = list(model.modules())
        self.paths = {id(module): path for path, module in model.named_modules()}
        self.forwards = [module.forward for module in self.modules]
        self.outputs: tuple[Any, ...] | None = None
        self.followed = 0
        self._results: dict[Callable[[Any], Any], Any] = {}

    def current(self) -> "ModuleIndex":
        """Return this index if the model still has the same modules, else a new one."""
        modules: list[nn.Module] = []
        waiting: list[nn.Module | None] = [self.model]
        seen: set[nn.Module] = set()
        while waiting:
            module = waiting.pop()
            if module is not None and module not in seen:
                seen.add(module)
                modules.append(module)
                waiting.extend(reversed(module._modules.values()))
        same = modules == self.modules and [module.forward for module in modules] == self.forwards
        return self if same else ModuleIndex(self.model)

    def once(self, find: Callable[[Any], Result]) -> Result:
        """Return what a search of the model's modules finds, made the first time only."""
        if find not in self._results:
            self._results[find] = find(self.model)
        return self._results[find]


@dataclass
class Comparison:
    """The largest absolute differences of weights and of outputs so far; NaN counts as infinite.

    reference: what the rows are compared with, in words. weights: None before any row was compared. outputs: 0 before.
    rows: how many query rows were compared. widened: whether half-precision queries and keys were compared in float32,
    in which regard computes weights.
    """

    reference: str
    weights: float | None = None
    outputs: float = 0.0
    rows: int = 0
    widened: bool = False

    def add(self, weights: float, outputs: float, rows: int) -> None:
        """Add the largest differences of some more compared rows."""
        self.weights = max(self.weights or 0.0, math.inf if math.isnan(weights) else weights)
        self.outputs = max(self.outputs, math.inf if math.isnan(outputs) else outputs)
        self.rows += rows

    @property
    def compared_with(self) -> str:
        """Return the reference that rows were compared with, empty if there was none."""
        return "" if self.weights is None else self.reference + (", in float32" if self.widened else "")


@dataclass
class LayerStack:
    """The states of one stack's layers, (B, L, M), in the order they ran: the input of the first, the output of each.

    dropped: the numbers of states that weren't to be kept; hidden_states has the others, and always the last one.
    calls: the layer that each attention call was made in, by (path of its module, n-th call of that path).
    """

    path: str
    hidden_states: list[Float[Tensor, "B L M"]] = field(default_factory=list)
    attends: bool = False
    dropped: list[int] = field(default_factory=list)
    calls: dict[tuple[str, int], int] = field(default_factory=dict)

    @property
    def numbered(self) -> dict[int, Float[Tensor, "B L M"]]:
        """Return the hidden states that were kept, by their numbers."""
        numbers = [n for n in range(self.count) if n not in self.dropped]
        return dict(zip(numbers, self.hidden_states, strict=True))

    @property
    def count(self) -> int:
        """Return the number of hidden states of the stack, one more than layers."""
        return len(self.hidden_states) + len(self.dropped)

    def add(self, state: Float[Tensor, "B L M"], keep: CaptureOptions) -> None:
        """Add the next state; drop the previous state if it isn't to be kept."""
        last = self.count - 1
        if last >= 0 and not keep.state(last):
            self.hidden_states.pop()
            self.dropped.append(last)
        self.hidden_states.append(state.detach())


def shown_stacks(stacks: Mapping[str, LayerStack], *, pairs: bool) -> list[LayerStack]:
    """Return the stacks that a trace shows: both of an encoder-decoder (pairs), else the one with most layers."""
    found = list(stacks.values())
    return found if pairs or not found else [max(found, key=lambda stack: stack.count)]


@dataclass
class Capture:
    """The state of one captured pass: what is set before it, and what is observed during it.

    Set before:
        index: of the model's modules, None if each function that needs one makes it.
        keep: what of the pass is kept, and how it is run.
        skipped_layers: the paths of layers that repeat what they gave in an earlier pass.
        to_compare: a list that collects what to compare of each call after the pass, which is faster for few tokens;
            None to compare it at once.
        hooks: regard's own on the model's modules before the pass is recorded.

    Observed during it:
        call_count: how many attention calls were made. calls: those that were recorded.
        embeddings: one group of parts for each sequence that was read.
        attention_outputs: of each call that was followed, in order; complete after the pass.
        last: "last_hidden_state" and "encoder_last_hidden_state", where there are such.
        layer: the path of the stack and the number of the layer that runs now, None between layers. entered: the state
        that entered it.
        stacks: the stacks of layers that ran, by path. made: how many calls each path made since they are watched.
        cross_paths: the paths of attention modules that take keys from another sequence than their own.
        comparison: sampled rows of the calls, compared.
        contradiction: whether PyTorch's kernels would attend causally where the family's eager attention doesn't.
    """

    index: ModuleIndex | None = None
    keep: CaptureOptions = field(default_factory=CaptureOptions)
    skipped_layers: frozenset[str] = frozenset()
    to_compare: list[Any] | None = None
    hooks: list[Callable[..., None]] = field(default_factory=list)
    call_count: int = 0
    calls: Calls = field(default_factory=lambda: Calls(None, ()))
    embeddings: list[Any] = field(default_factory=list)
    attention_outputs: list[AttentionOutput | UnverifiedOutput] = field(default_factory=list)
    last: dict[str, Tensor] = field(default_factory=dict)
    layer: tuple[str, int] | None = None
    entered: Tensor | None = None
    stacks: dict[str, LayerStack] = field(default_factory=dict)
    made: Counter[str] = field(default_factory=Counter)
    cross_paths: set[str] = field(default_factory=set)
    comparison: Comparison = field(default_factory=lambda: Comparison(SAME_INPUTS))
    contradiction: bool = False

    def count_call(self, path: str) -> None:
        """Count an attention call that the module of this path has just made."""
        self.call_count += 1
        key = path, self.made[path]
        self.made[path] += 1
        if self.layer is not None:
            stack, layer = self.layer
            self.stacks[stack].calls[key] = layer
