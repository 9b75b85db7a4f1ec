"""Choose what to keep of a forward pass, such as layers and logits, and how to run it."""

import functools
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from torch import nn

from regard.attention.map_statistics import Statistics
from regard.attention.recording import layer_of_call_path
from regard.checks import numbers_there
from regard.errors import RegardError

Given = ParamSpec("Given")
Result = TypeVar("Result")
NO_LAYERS: frozenset[int] = frozenset()  # for `layers`: keep only the last hidden state, and logits if requested


class TensorMaskError(TypeError, AttributeError):
    """Raised if a model computes with its mask, which then must be a tensor."""


def masks_as_needed(run: Callable[Given, Result]) -> Callable[Given, Result]:
    """Decorate a function to be called again with `written_masks=True` if the model computes with its mask."""

    @functools.wraps(run)
    def called(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        try:
            return run(*args, **kwargs)
        except TensorMaskError:
            kwargs["written_masks"] = True
            return run(*args, **kwargs)

    return called


@dataclass(frozen=True)
class CaptureOptions:
    """What to keep of a forward pass, and how to run it.

    layers: the layers whose attention, values and states are kept, None for all. logits: whether to compute logits.
    attention_outputs: whether to follow each attention call's context, for contributions. statistics: of each attention
    map, computed with the pass, or None. embeddings: whether to keep the parts of the model's input. compare:
    whether to compare a few rows of each kept call with the model's own attention. call_ids: whether to number calls
    as a trace does, for interventions. attention: whether to keep attention as well as states.

    These options select how the pass runs (see the table in `session.py`). reported: use the attention that the model
    reports instead of regard's function. written_masks: masks are tensors. last_row: only the last row of logits.
    """

    layers: frozenset[int] | None = None
    logits: bool = True
    attention_outputs: bool = True
    statistics: Statistics | None = None
    embeddings: bool = True
    compare: bool = True
    call_ids: bool = False
    attention: bool = True
    reported: bool = False
    written_masks: bool = False
    last_row: bool = False

    @staticmethod
    def of(
        layers: int | Collection[int] | None,
        logits: bool,
        attention_outputs: bool,
        statistics: bool | Statistics,
        config: Any,
        name: str,
    ) -> "CaptureOptions":
        """Return the requested options after checking them against the model's config as far as possible."""
        wanted_statistics = statistics_to_capture(statistics)
        if layers is None:
            return CaptureOptions(None, logits, attention_outputs, wanted_statistics)
        if not isinstance(layers, (int, Iterable)):
            raise RegardError(f"layers: got {layers!r}, expected whole numbers, counted from 0, or None for all layers")
        numbers = frozenset([layers] if isinstance(layers, int) else layers)
        if not numbers:
            if wanted_statistics is not None:
                raise RegardError("layers: got none, which keeps only states: statistics need attention")
            return CaptureOptions(None, logits, attention_outputs=False, attention=False)
        count = getattr(config, "num_hidden_layers", None)
        for number in sorted(numbers):
            if not isinstance(number, int) or number < 0 or (count is not None and number >= count):
                span = "" if count is None else f", {numbers_there('layer', count, f'{name} has')}"
                raise RegardError(f"layers: {number!r} is out of range{span}")
        return CaptureOptions(numbers, logits, attention_outputs, wanted_statistics)

    @property
    def has_comparisons(self) -> bool:
        """Return whether calls are kept and compared with the model's own attention."""
        return self.compare and self.attention and self.layers != NO_LAYERS

    def call(self, path: str) -> bool:
        """Return whether the attention calls of the module with this path are kept."""
        return self.attention and (self.layers is None or layer_of_call_path(path) in self.layers)

    def state(self, number: int) -> bool:
        """Return whether a state is kept. State `number` is the input of layer `number`."""
        return self.layers is None or number in self.layers or number - 1 in self.layers


def statistics_to_capture(request: bool | Statistics) -> Statistics | None:
    """Return the statistics that `statistics=` requests, or None. Raises RegardError for invalid values."""
    try:
        return Statistics.of(request)
    except TypeError as error:
        raise RegardError(str(error)) from error


# For a plain pass that is used to find the layers of a model.
LAYERS_ALONE = CaptureOptions(
    None, logits=False, attention_outputs=False, embeddings=False, compare=False, call_ids=True
)


@contextmanager
def report_layers_of_pass(model: Any, progress: Callable[[float], None]) -> Iterator[None]:
    """Call progress with 1 / layers after each layer. It isn't called if the layers aren't found."""
    count = getattr(model.config, "num_hidden_layers", None)
    lists = [module for module in model.modules() if isinstance(module, nn.ModuleList) and len(module) == count]
    with ExitStack() as hooks:
        for layer in lists[0] if lists else ():
            hooks.enter_context(layer.register_forward_hook(lambda *_: progress(1 / len(lists[0]))))
        yield
