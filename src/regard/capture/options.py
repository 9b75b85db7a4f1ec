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
NO_LAYERS: frozenset[int] = frozenset()  # of layers: only the last hidden state is kept, and perhaps logits


class TensorMaskError(TypeError, AttributeError):
    """A model computed with its mask, which needs to be written out as a tensor for that."""


def masks_as_needed(run: Callable[Given, Result]) -> Callable[Given, Result]:
    """Have a function called again with `written_masks=True`, if the model computes with its mask."""

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

    layers: those whose attention, values and states are kept, None for all. logits: whether they are computed.
    attention_outputs: whether the path of each attention call's context is kept, for contributions. statistics: of
    every attention map, computed with the pass, None for none. embeddings: whether to keep the parts of the model's
    input. compare: whether to compare a few rows of every kept call with the model's own attention. call_ids: whether
    to number every call as a trace does, for interventions. attention: whether to keep attention, or states alone.

    How to run the pass, see the table in `session.py`: reported: attention is what the model itself reports, and
    doesn't go through regard's function. written_masks: masks are tensors. last_row: logits are those of the last row.
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
        """Return the requested options, checked against the model's config as far as possible."""
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
        """Return whether calls of the pass are kept and compared with the model's own attention."""
        return self.compare and self.attention and self.layers != NO_LAYERS

    def call(self, path: str) -> bool:
        """Return whether the attention call of a module of this path is kept."""
        return self.attention and (self.layers is None or layer_of_call_path(path) in self.layers)

    def state(self, number: int) -> bool:
        """Return whether a state is kept: it enters layer `number`, and leaves the previous layer."""
        return self.layers is None or number in self.layers or number - 1 in self.layers


def statistics_to_capture(request: bool | Statistics) -> Statistics | None:
    """Return the statistics that `statistics=` requests, None for none; raise a RegardError for anything else."""
    try:
        return Statistics.of(request)
    except TypeError as error:
        raise RegardError(str(error)) from error


# For a plain pass that shows the layers of a model.
LAYERS_ALONE = CaptureOptions(
    None, logits=False, attention_outputs=False, embeddings=False, compare=False, call_ids=True
)


@contextmanager
def report_layers_of_pass(model: Any, progress: Callable[[float], None]) -> Iterator[None]:
    """Call progress with each layer's fraction of the pass as it ends; never if the layers aren't found."""
    count = getattr(model.config, "num_hidden_layers", None)
    lists = [module for module in model.modules() if isinstance(module, nn.ModuleList) and len(module) == count]
    with ExitStack() as hooks:
        for layer in lists[0] if lists else ():
            hooks.enter_context(layer.register_forward_hook(lambda *_: progress(1 / len(lists[0]))))
        yield
