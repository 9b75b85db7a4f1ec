"""The index of a model's modules, and the state of one captured pass."""

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

FEW = 1 << 10  # up to this number of tokens, Python takes longer than the computations
ROWS = 4  # compared query rows per call; few, because the model computes them a second time
SAME_INPUTS = "the model's own attention on the same queries and keys"


@functools.cache
def sampled_rows(length: int) -> Int[Tensor, " r"]:
    """Return the query rows to compare: first, last and some in between. The tensor is cached, so don't modify it."""
    return torch.linspace(0, length - 1, min(ROWS, length)).round().long().unique()


def compared_batch_texts(call: int, count: int) -> slice:
    """Return the texts to compare in a pass's n-th call, from 1: a quarter of the `count` texts, but at least two.

    Successive calls use successive texts, because texts differ in padding.
    """
    size = min(count, max(2, -(-count // 4)))
    return slice(start := min((call - 1) * size % count, count - size), start + size)


def of_transformers(value: object, name: str) -> bool:
    """Return whether a value is an instance of this transformers class, without importing transformers."""
    return any(base.__name__ == name and base.__module__.startswith("transformers.") for base in type(value).__mro__)


def computing_dtype(model: Any) -> tuple[torch.dtype, str]:
    """Return a model's current computing dtype and its name for a status. Autocast doesn't change float64."""
    dtype, kind, suffix = model.dtype, model.device.type, ""
    if kind != "meta" and dtype != torch.float64 and torch.is_autocast_enabled(kind):
        dtype, suffix = torch.get_autocast_dtype(kind), " (autocast)"
    return dtype, str(dtype).removeprefix("torch.") + suffix


class ModuleIndex:
    """A model's modules and cached facts about them. Finding these in each pass would take as long as a layer.

    modules: each once, in the order of `named_modules`. paths: by module id.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self.modules: list[nn.Module] = list(model.modules())
        self.paths = {id(module): path for path, module in model.named_modules()}
        self._results: dict[Callable[[Any], Any], Any] = {}

    def once(self, find: Callable[[Any], Result]) -> Result:
        """Return the result of `find(model)`, which runs only the first time."""
        if find not in self._results:
            self._results[find] = find(self.model)
        return self._results[find]


@dataclass
class Comparison:
    """The largest absolute differences of weights and of outputs so far. NaN counts as infinite.

    reference: describes what rows are compared with. weights, outputs: None and 0 before any comparison.
    rows: the number of compared query rows. widened: whether half-precision queries and keys were converted to float32,
    in which regard computes weights.
    """

    reference: str
    weights: float | None = None
    outputs: float = 0.0
    rows: int = 0
    widened: bool = False

    def add(self, weights: float, outputs: float, rows: int) -> None:
        """Update the largest differences with those of more compared rows."""
        self.weights = max(self.weights or 0.0, math.inf if math.isnan(weights) else weights)
        self.outputs = max(self.outputs, math.inf if math.isnan(outputs) else outputs)
        self.rows += rows

    @property
    def compared_with(self) -> str:
        """Return the reference that rows were compared with, or "" without comparisons."""
        return "" if self.weights is None else self.reference + (", in float32" if self.widened else "")


@dataclass
class LayerStack:
    """The kept states of a stack by number, (B, L, M): 0 enters the first layer, n + 1 leaves layer n.

    count: the number of states, which is the number of layers + 1. The last is always kept.
    calls: the layer of each attention call, by (path of its module, n-th call of that path).
    """

    path: str
    hidden_states: dict[int, Float[Tensor, "B L M"]] = field(default_factory=dict)
    count: int = 0
    attends: bool = False
    calls: dict[tuple[str, int], int] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the states, (B, L, M). L includes padding."""
        return tuple(next(iter(self.hidden_states.values())).shape)

    def add(self, state: Float[Tensor, "B L M"], keep: CaptureOptions) -> None:
        """Add the next state, and drop the previous state unless `keep` includes it."""
        if not keep.state(self.count - 1):
            self.hidden_states.pop(self.count - 1, None)
        self.hidden_states[self.count] = state.detach()
        self.count += 1


def shown_stacks(stacks: Mapping[str, LayerStack], *, pairs: bool) -> list[LayerStack]:
    """Return the stacks that a trace shows: both for an encoder-decoder (pairs), else the one with the most layers."""
    all_stacks = list(stacks.values())
    return all_stacks if pairs or not all_stacks else [max(all_stacks, key=lambda stack: stack.count)]


@dataclass
class Capture:
    """The state of one captured pass.

    Set before:
        index: of the model's modules. None: each function creates its own index.
        keep: what to keep from the pass, and how to run the pass.
        skipped_layers: the paths of layers that repeat their output of an earlier pass.
        to_compare: a list that collects calls to compare after the pass, which is faster for few tokens. None: compare
            each call immediately.

    Observed during it:
        call_count: the number of attention calls so far. calls: the recorded calls.
        embeddings: one group of parts per sequence of ids.
        attention_outputs: of each followed call, in order. Complete only after the pass.
        last: "last_hidden_state" and "encoder_last_hidden_state", if the model has them.
        layer: (path of the stack, number) of the running layer, None between layers.
        stacks: the stacks of layers that ran, by path. made: the number of watched calls by path.
        cross_paths: the paths of cross-attention modules.
        comparison: the differences in sampled rows of the calls.
        contradiction: whether PyTorch's kernels would be causal but the model's eager attention isn't.
    """

    index: ModuleIndex | None = None
    keep: CaptureOptions = field(default_factory=CaptureOptions)
    skipped_layers: frozenset[str] = frozenset()
    to_compare: list[Any] | None = None
    call_count: int = 0
    calls: Calls = field(default_factory=lambda: Calls(None, ()))
    embeddings: list[Any] = field(default_factory=list)
    attention_outputs: list[AttentionOutput | UnverifiedOutput] = field(default_factory=list)
    last: dict[str, Tensor] = field(default_factory=dict)
    layer: tuple[str, int] | None = None
    stacks: dict[str, LayerStack] = field(default_factory=dict)
    made: Counter[str] = field(default_factory=Counter)
    cross_paths: set[str] = field(default_factory=set)
    comparison: Comparison = field(default_factory=lambda: Comparison(SAME_INPUTS))
    contradiction: bool = False

    def count_call(self, path: str) -> None:
        """Count an attention call that the module with this path has just made."""
        self.call_count += 1
        key = path, self.made[path]
        self.made[path] += 1
        if self.layer is not None:
            stack, layer = self.layer
            self.stacks[stack].calls[key] = layer
