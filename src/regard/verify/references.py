"""Run a model's own eager code on an input, and find its largest differences from a trace.

The code runs on a copy of the modules that shares the model's tensors, so the model itself doesn't change.
"""

import math
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from transformers.pytorch_utils import Conv1D

from regard.attention.attention_map import AttentionMap
from regard.capture.eager_attention import attention_settings
from regard.capture.options import CaptureOptions
from regard.capture.twin import Twin
from regard.errors import RegardError, first_line
from regard.memory import require_memory
from regard.model_files.suppress_warnings import quiet
from regard.models.inputs import read_inputs
from regard.trace.trace import PairTrace, Trace

# output fields of transformers models
WEIGHTS = ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions")
STATES = ("hidden_states", "encoder_hidden_states", "decoder_hidden_states")
RESULT = ("last_hidden_state", "logits")


def largest_difference(actual: Any, expected: Any, fields: tuple[str, ...]) -> tuple[float, str] | None:
    """Return the largest difference in some fields, and its position. None if `expected` lacks these fields.

    actual: a trace or a model's output. expected: a model's output. A difference is relative to the tensor's largest
    absolute value if that is above 1. NaN counts as infinite.
    """
    results: list[tuple[float, str]] = []
    for name in fields:
        if not (others := field_tensors(expected, name)):
            continue
        tensors = field_tensors(actual, name)
        tensors = tensors[:: max(1, len(tensors) // len(others))]  # `others` has only a layer's first call
        if len(tensors) != len(others):
            raise RegardError(f"its own code returns {len(others)} {name}, {len(tensors)} were traced")
        for n, (tensor, other) in enumerate(zip(tensors, others, strict=True)):
            if tensor.shape != other.shape:
                return (math.inf, f"{name}[{n}]: shapes differ")
            differences = (tensor.to(other.device) - other).abs().nan_to_num(math.inf)
            index = [int(number) for number in torch.unravel_index(differences.argmax(), differences.shape)]
            largest = float(differences.max()) / max(1.0, float(other.abs().max()))
            results.append((largest, f"{name}[{n}]{index}"))
    return max(results, default=None)


def field_tensors(output: Any, name: str) -> list[Tensor]:
    """Return a field's tensors with a batch axis, without the last state, which may be before or after a norm."""
    field = _trace_field(output, name) if isinstance(output, (Trace, PairTrace)) else getattr(output, name, None)
    tensors = [x for x in (field if isinstance(field, tuple) else (field,)) if x is not None and x.ndim > 2]
    return tensors[:-1] if name in STATES else tensors


def _trace_field(trace: Trace | PairTrace, name: str) -> Any:
    """Return the values of a trace that transformers calls `name`, with a batch axis."""
    side = trace.sides[0 if name.startswith("encoder_") else -1]
    if name in WEIGHTS:
        maps = side.cross if name == "cross_attentions" else side.attention
        return tuple(maps[call].dense()[None] for call in maps.calls)
    if name in STATES:
        return tuple(state[None] for state in side.hidden_states)
    value = getattr(side, name)
    return None if value is None else value[None]


class ComparedLayer(NamedTuple):
    """A layer's attention in a trace and by the model's own code. name: the output's name. part: "cross" or None."""

    name: str
    number: int
    trace: Trace
    part: Literal["cross"] | None
    map: AttentionMap
    weights: Float[Tensor, "H L S"]


def layers(trace: Trace | PairTrace, output: Any) -> Iterator[ComparedLayer]:
    """Yield every layer of a trace for which the model's own code returns weights."""
    for name in WEIGHTS[:1] if isinstance(trace, Trace) else WEIGHTS[1:]:
        side: Trace = trace.sides[0 if name == "encoder_attentions" else -1]
        part: Literal["cross"] | None = "cross" if name == "cross_attentions" else None
        maps = side.cross if part else side.attention
        numbers = [number for number, call in maps.calls if not call]
        for number, weights in zip(numbers, field_tensors(output, name), strict=False):
            yield ComparedLayer(f"{name}[{number}]", number, side, part, maps[number], weights[0])


class CheckedInput:
    """An input as for `Model.trace`, its trace, and the outputs of the model's own code, also in float64."""

    def __init__(self, model: Any, options: Mapping[str, Any]) -> None:
        self.model, self.options, self.twin = model, options, Twin(model.model).model
        for config, _ in attention_settings(self.twin.modules()):
            config._attn_implementation_internal = "eager"
        values = (options.get(name) for name in ("text", "target", "ids", "target_ids", "inputs"))
        _, sources, targets = read_inputs(model._reader, model._session, *values)
        self.inputs: dict[str, Any] = model._session.inputs(sources, targets, CaptureOptions())
        self.size = self.inputs["input_ids"].shape[1] if "input_ids" in self.inputs else 0
        self.output, self.exact = self.run(self.inputs), self._exact()

    @cached_property
    def trace(self) -> Trace | PairTrace:
        """The trace of the checked input."""
        return self.model.trace(**self.options)

    def run(self, inputs: Mapping[str, Any], tensors: Mapping[str, Tensor] | None = None) -> Any:
        """Run a forward pass of the model's own code. tensors: replacements for parameters and buffers, by name."""
        arguments = {**inputs, "output_attentions": True, "output_hidden_states": True}
        return _run_own("eager code", torch.func.functional_call, self.twin, dict(tensors or {}), (), arguments)

    def _exact(self) -> Any:
        """Run the model's own code in float64. Return None if memory is too small or the code doesn't support it."""
        tensors = dict(self.twin.named_parameters()) | dict(self.twin.named_buffers())
        try:
            require_memory(16 * sum(tensor.numel() for tensor in tensors.values()), self.twin.device, "float64", "")
            return self.run(_to_float64(self.inputs), _to_float64(tensors))
        except (RegardError, NotImplementedError, TypeError):  # weights are on disk, or the device has no float64
            return None

    def without_head(self, weight: Float[Tensor, "M C"], columns: slice) -> Any:
        """Run the model's own code with some columns of an output projection set to 0."""
        for path, module in self.twin.named_modules():
            parameter = getattr(module, "weight", None)
            if isinstance(parameter, Tensor) and parameter.data_ptr() == weight.data_ptr():
                changed = parameter.detach().clone()
                (changed.t() if isinstance(module, Conv1D) else changed)[:, columns] = 0
                return self.run(self.inputs, {f"{path}.weight": changed})
        raise RegardError("none of its modules has the output projection")

    def generate(self, **options: Any) -> tuple[list[int], Float[Tensor, "T V"]]:
        """Generate with transformers' own `generate`. Return all token ids, and the logits (T, V) of the new tokens."""
        ids = self.inputs["input_ids"]
        options |= {"num_beams": 1, "return_dict_in_generate": True, "output_logits": True}
        output = _run_own("generate", lambda: self.twin.generate(ids, attention_mask=torch.ones_like(ids), **options))
        return output.sequences[0].tolist(), torch.cat(output.logits).cpu()


def _to_float64(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Convert floating-point tensors to float64, and leave other values unchanged."""
    return {name: x.double() if isinstance(x, Tensor) and x.is_floating_point() else x for name, x in tensors.items()}


def _run_own(name: str, code: Any, *arguments: Any) -> Any:
    """Call the model's own code. Raise RegardError with the reason if it fails."""
    try:
        with quiet(), torch.no_grad():
            return code(*arguments)
    except Exception as error:
        raise RegardError(f"its own {name} raises {type(error).__name__}: {first_line(error)[:120]}") from error
