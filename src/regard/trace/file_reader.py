"""Build traces from a description that `check_description` accepted, and from the tensors of its file."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from torch import Tensor

from regard.attention import map_file
from regard.attention.attention_map import AttentionMap
from regard.model_files.pooling import Pooling
from regard.tensor_files.file import TensorFile
from regard.text.tokens import Spelled, Token, Turn, tokens_in_turns
from regard.trace.attention_output import AttentionOutput, UnverifiedOutput
from regard.trace.file_format import OUTPUT_PARTS, OUTPUT_TENSORS, VECTORS
from regard.trace.file_shapes import stored
from regard.trace.layer_subset import NOT_SAVED, CallNumber, LayerSubset
from regard.trace.status import Status
from regard.trace.trace import PairTrace, Trace

TensorOf = Callable[..., Tensor]  # from a description to a tensor: see `_tensor_of_trace_file`


def build(described: Mapping[str, Any], file: TensorFile) -> Trace | PairTrace:
    """Build a trace or a pair. Its tensors stay in the file, mapped, and are checked when they are first read."""
    tensor = partial(_tensor_of_trace_file, file)
    if described["kind"] == "pair":
        return PairTrace(
            _trace_from_description(described["encoder"], tensor), _trace_from_description(described["decoder"], tensor)
        )
    return _trace_from_description(described, tensor)


def _tensor_of_trace_file(file: TensorFile, described: Any, *, minus_inf: bool = False) -> Tensor:
    """A tensor of the file by its name, or by that and the order of its axes. minus_inf: whether it may hold -inf."""
    return file.guarded(*stored(file.tensors, described), minus_inf=minus_inf)


def _trace_from_description(described: Mapping[str, Any], tensor: TensorOf) -> Trace:
    vectors = dict.fromkeys(VECTORS) | {
        name: tensor(each, minus_inf=name == "logits") for name, each in described["vectors"].items()
    }
    states = described["hidden_states"]
    names = dict(described["names"])
    status: dict[str, Any] = {
        name: tuple(each) if isinstance(each, list) else each for name, each in described["status"].items()
    }
    attention, values, outputs = _attention_of_saved_trace(described["attention"], tensor, "")
    cross, cross_values, cross_outputs = _attention_of_saved_trace(described["cross"], tensor, "cross_")
    turns = tuple(Turn(**each | {"tokens": tuple(each["tokens"])}) for each in described.get("turns", ()))
    tokens = tokens_in_turns([replace(Token(*each), source=described["text"]) for each in described["tokens"]], turns)
    return Trace(
        text=described["text"], tokens=tokens, **vectors,
        hidden_states=_by_layer("hidden_states", states["count"], {n: tensor(each) for n, each in states["saved"]}),
        attention=attention, values=values, status=Status(**status), cross=cross, cross_values=cross_values,
        attention_outputs=outputs, cross_attention_outputs=cross_outputs, names=Spelled(names) if names else None,
        pooling=_pooling_of_saved_trace(described.get("pooling")),
        turns=turns,
    )  # fmt: skip


def _pooling_of_saved_trace(described: Mapping[str, Any] | None) -> Pooling:
    if described is None:
        return Pooling(unknown="the trace was saved without saying it, as are those of models with Dense layers")
    return Pooling(**dict(described) | {"modes": tuple(described["modes"])})


def _attention_of_saved_trace(described: Mapping[str, Any], tensor: TensorOf, prefix: str) -> tuple[Any, Any, Any]:
    """(maps, values, attention outputs), each by layer. prefix: of what they are called in a trace."""
    calls = {(each["layer"], each["nth"]): each for each in described["saved"]}
    made = None if described["made"] is None else [(layer, nth) for layer, nth in described["made"]]
    by_layer = partial(_by_layer, count=described["layers"], made=made)
    maps, values, outputs = {}, {}, {}
    for n, layer in calls.items():
        tensors = {
            name: tensor(each, minus_inf=name in map_file.MINUS_INFINITY) for name, each in layer["tensors"].items()
        }
        maps[n] = AttentionMap.of(map_file.build_map_inputs(tensors, layer["map"]))
        values[n] = None if layer["value"] is None else tensor(layer["value"])
        if described["attention_outputs"]:
            outputs[n] = _output_of_saved_trace(layer["attention_output"], tensor)
    return (
        by_layer(prefix.strip("_") or "attention", items=maps),
        by_layer(f"{prefix}values", items=values),
        by_layer(f"{prefix}attention_outputs", items=outputs) if described["attention_outputs"] else (),
    )


def _output_of_saved_trace(described: Mapping[str, Any], tensor: TensorOf) -> AttentionOutput | UnverifiedOutput:
    if "unverified" in described:
        return UnverifiedOutput(described["unverified"])
    return _output_part(AttentionOutput, described, tensor)


def _output_part(part: type, described: Mapping[str, Any], tensor: TensorOf) -> Any:
    """An `AttentionOutput`, or a `Norm` or `Scaling` in it."""
    fields: dict[str, Any] = {}
    for name, value in described.items():
        if value is not None and name in OUTPUT_TENSORS[part]:
            value = tensor(value)
        elif value is not None and name in OUTPUT_PARTS:
            value = _output_part(OUTPUT_PARTS[name], value, tensor)
        fields[name] = float(value) if name == "eps" else value
    return part(**fields)


def _by_layer(what: str, count: int, items: dict[Any, Any], made: Sequence[CallNumber] | None = None) -> Any:
    """A tuple where every layer has one item that was saved, else a sequence that refuses others."""
    if made is None and len(items) == count:
        return tuple(items[n] for n in sorted(items))
    return LayerSubset(what, count, items, reason=NOT_SAVED, made=made)
