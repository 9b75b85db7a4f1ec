"""Run a model's own eager code, and compare what it returns with a trace.

transformers' eager attention computes every weight and returns it. It runs on a copy of the model's modules that shares
their tensors, so the model itself doesn't change. None of regard's attention, hooks or kernels takes part.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers.pytorch_utils import Conv1D

from regard.attention.attention_map import AttentionMap
from regard.capture.hf_attention import attention_settings
from regard.capture.options import CaptureOptions, PassOptions
from regard.capture.twin import Twin
from regard.errors import RegardError, first_line
from regard.memory import available
from regard.model_files.quiet import quiet
from regard.models.inputs import read_inputs
from regard.nn.evaluation_mode import model_in_evaluation_mode
from regard.trace.layer_subset import call_numbers
from regard.trace.trace import PairTrace, Trace

if TYPE_CHECKING:
    from regard.models.model import Model

SIDES = ("", "encoder_", "decoder_", "cross_")  # prefixes of the fields that transformers returns


class Apart(NamedTuple):
    """The largest difference of two tensors, and where it is."""

    difference: float
    where: str


@dataclass(frozen=True)
class Outputs:
    """The weights (H, L, S) and states (L, M) of one text by side, its last states and logits, without batch axis."""

    weights: Mapping[str, Sequence[Any]]
    states: Mapping[str, Sequence[Any]]
    last: Float[Tensor, "T M"] | None
    logits: Float[Tensor, "T V"] | None

    @staticmethod
    def of_model(output: Any) -> "Outputs":
        """Take the first text of what a model of transformers returns."""

        def first(name: str) -> list[Tensor]:
            found = getattr(output, name, None)
            return [x[0] for x in (found if isinstance(found, tuple) else (found,)) if x is not None and x.ndim > 2]

        weights = {side: found for side in SIDES if (found := first(f"{side}attentions"))}
        states = {side: found for side in SIDES if (found := first(f"{side}hidden_states"))}
        last, logits = first("last_hidden_state"), first("logits")
        if not (last or logits):  # behind a head the last of these may be another one
            last = states.get("", [])[-1:]
        return Outputs(weights, states, last[0] if last else None, logits[0] if logits else None)

    @staticmethod
    def of_trace(trace: Trace | PairTrace) -> "Outputs":
        """Take the same of a trace; the weights are its maps."""
        first, last = trace.sides[0], trace.sides[-1]
        maps, states = {"": first.attention}, {"": first.hidden_states}
        if isinstance(trace, PairTrace):
            maps = {"encoder_": first.attention, "decoder_": last.attention, "cross_": last.cross}
            states = {"encoder_": first.hidden_states, "decoder_": last.hidden_states}
        weights = {side: [each[call] for call in call_numbers(each)] for side, each in maps.items()}
        return Outputs(weights, states, last.contextual, last.logits)

    def weight_pairs(self, theirs: "Outputs") -> Iterator[tuple[str, Any, Float[Tensor, "H L S"]]]:
        """Yield (layer, our weights, their weights) of every attention call that they have.

        Raises:
            RegardError: the two have different numbers of calls.
        """
        for side, reported in theirs.weights.items():
            ours = self.weights.get(side, ())
            ours = ours[:: max(1, len(ours) // len(reported))]  # of several calls in a layer the first is reported
            if len(ours) != len(reported):
                raise RegardError(f"{len(ours)} attention calls were traced, its own code reports {len(reported)}")
            for layer, pair in enumerate(zip(ours, reported, strict=True)):
                yield f"{side.replace('_', ' ')}layer {layer}", *pair

    def weights_apart(self, theirs: "Outputs") -> Apart | None:
        """Find the largest difference of any weight; None if they report none."""
        return _largest(region_apart(*each) for each in self.weight_pairs(theirs))

    def states_apart(self, theirs: "Outputs") -> Apart | None:
        """Find the largest difference of what enters any layer; None if they report other states."""
        return _largest(
            Apart(distance(ours, own), f"{side.replace('_', ' ')}layer {n}")
            for side, states in theirs.states.items()
            if len(states) == len(self.states.get(side, ()))
            for n, (ours, own) in enumerate(zip(list(self.states[side])[:-1], states[:-1], strict=True))
        )

    def result_apart(self, theirs: "Outputs") -> Apart | None:
        """Find the largest difference of the last states and logits; None if there are none to compare."""
        named = (("last states", self.last, theirs.last), ("logits", self.logits, theirs.logits))
        return _largest(Apart(distance(a, b), name) for name, a, b in named if a is not None and b is not None)


def region_apart(layer: str, ours: Any, theirs: Float[Tensor, "H L S"]) -> Apart:
    """Find the largest difference of some weights of one layer, with its head, query and key."""
    if tuple(ours.shape) != tuple(theirs.shape):
        return Apart(math.inf, f"{layer}: shapes differ")
    apart = ((ours.dense() if isinstance(ours, AttentionMap) else ours) - theirs).abs().nan_to_num(math.inf)
    head, query, key = torch.unravel_index(apart.argmax(), apart.shape)
    return Apart(float(apart.amax()), f"{layer}, head {head}, query {query}, key {key}")


def distance(ours: Float[Tensor, "..."], theirs: Float[Tensor, "..."]) -> float:
    """Return the largest difference, relative to the largest number if that is above 1; infinity for NaN."""
    if ours.shape != theirs.shape:
        return math.inf
    apart = float((ours.to(theirs.device) - theirs).abs().max()) / max(1.0, float(theirs.abs().max()))
    return math.inf if math.isnan(apart) else apart


def _largest(found: Iterator[Apart]) -> Apart | None:
    return max(found, key=lambda each: each.difference, default=None)


class Reference:
    """A model's own eager code."""

    def __init__(self, model: Any) -> None:
        self.original, self.twin = model, Twin(model).model
        for config, _ in attention_settings(self.twin.modules()):
            config._attn_implementation_internal = "eager"

    def run(self, inputs: Mapping[str, Any], tensors: Mapping[str, Tensor] | None = None) -> Outputs:
        """Make one pass. tensors: by name, parameters and buffers to use instead of the model's."""
        given = {**inputs, "output_attentions": True, "output_hidden_states": True}
        with quiet(), torch.no_grad(), _as_reason("its own eager code raises"):
            return Outputs.of_model(torch.func.functional_call(self.twin, dict(tensors or {}), (), given))

    def plain(self, inputs: Mapping[str, Any]) -> Outputs:
        """Make one pass of the model itself, by the attention kernel that it is set to."""
        with model_in_evaluation_mode(self.original), quiet(), torch.no_grad():
            return Outputs.of_model(self.original(**inputs))

    def exact(self, inputs: Mapping[str, Any]) -> Outputs | None:
        """Make one pass in float64; None if memory has no room or the model's code doesn't run in float64."""
        named, free = dict(self.twin.named_parameters()) | dict(self.twin.named_buffers()), available(self.twin.device)
        if free is not None and 16 * sum(each.numel() for each in named.values()) > free:
            return None
        try:
            return self.run(_doubled(inputs), _doubled(named))
        except (RegardError, NotImplementedError, TypeError):  # weights on the disk; devices without float64
            return None

    def without_head(self, inputs: Mapping[str, Any], weight: Float[Tensor, "M C"], columns: slice) -> Outputs:
        """Make one pass in which some columns of an output projection are 0."""
        for path, module in self.twin.named_modules():
            own = getattr(module, "weight", None)
            if isinstance(own, Tensor) and (own.data_ptr(), own.numel()) == (weight.data_ptr(), weight.numel()):
                changed = own.detach().clone()
                (changed.t() if isinstance(module, Conv1D) else changed)[:, columns] = 0
                return self.run(inputs, {f"{path}.weight": changed})
        raise RegardError("none of its modules holds the output projection")

    def generate(self, ids: Int[Tensor, "1 L"], new_tokens: int) -> list[int]:
        """Write tokens greedily by transformers' own `generate`."""
        options: dict[str, Any] = {"max_new_tokens": new_tokens, "do_sample": False, "num_beams": 1}
        with quiet(), torch.no_grad(), _as_reason("transformers' own generate raises"):
            written = self.twin.generate(input_ids=ids, attention_mask=torch.ones_like(ids), **options)
        return list(written[0].tolist())


class Reading:
    """One input, its trace, and the model's own passes over it: by eager code, in float64, and as the model is set.

    asked: the arguments of `Model.trace`.
    """

    def __init__(self, model: "Model", reference: Reference, asked: Mapping[str, Any]) -> None:
        self.model, self.reference, self.asked = model, reference, asked
        given = (asked.get(name) for name in ("text", "target", "ids", "target_ids", "inputs"))
        _, sources, targets = read_inputs(model._reader, model._session, *given)
        self.inputs: dict[str, Any] = model._session.inputs(sources, targets, PassOptions(CaptureOptions()))
        self.size = self.inputs["input_ids"].shape[1] if "input_ids" in self.inputs else 0
        self.own, self.plain = reference.run(self.inputs), reference.plain(self.inputs)
        self.exact = reference.exact(self.inputs)

    @cached_property
    def trace(self) -> Trace | PairTrace:
        """The trace."""
        return self.model.trace(**self.asked)

    def rounding(self, measure: Callable[[Outputs, Outputs], Apart | None]) -> float | None:
        """Measure how far the own code is from float64; None if it doesn't run in float64."""
        apart = None if self.exact is None else measure(self.own, self.exact)
        return None if apart is None else apart.difference


def _doubled(tensors: Mapping[str, Any]) -> dict[str, Any]:
    return {name: x.double() if isinstance(x, Tensor) and x.is_floating_point() else x for name, x in tensors.items()}


@contextmanager
def _as_reason(said: str) -> Iterator[None]:
    """Raise whatever a family's code raises as the reason why something is not measured."""
    try:
        yield
    except Exception as error:
        raise RegardError(f"{said}: {first_line(error)[:120]}") from error
