"""Save traces to a file, completely or with selected layers, and open them without the model.

The file format is safetensors with a JSON description in the metadata (`regard.tensor_file`). Attention calls have
another format, which any program can write (docs/attention_file.md).
"""

from collections.abc import Collection, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.attention import masks
from regard.attention.attention_map import MAP_TYPES, AttentionMap, map_fields
from regard.attention.masks import Mask
from regard.attention.recording import Calls
from regard.checks import check_path, check_saving, chosen_numbers, missing_number_error
from regard.errors import RegardError
from regard.tensor_file import ATTENTION, TRACE, Packer, Types, read_tensor_file, unpack, write_tensor_file
from regard.text.tokens import ChatToken, Spelled, Token, Turn
from regard.trace.any_attention import labelled, named_maps
from regard.trace.attention_output import AttentionOutput, Norm, Scaling, UnverifiedOutput
from regard.trace.layers import NOT_SAVED, Layers
from regard.trace.status import Status
from regard.trace.trace import PairTrace, Trace

__all__ = ["open", "save"]

LIKELIEST_TOKENS = 20  # per position, whose spelling is saved
MAX_LAYERS = 10_000  # of a trace in a file
COMPARED_ROWS = 4  # rows compared per head of each rounded map
NAMES = "path", "causal", "band", "offset", "scale", "softcap", "tokens", "key_tokens", "kernel", "where"  # or of all
TENSORS = ("query", "key", "mask", "bias", "sinks", "weights")  # of a call in an attention file
NOT_AS_IT_IS = ("patches", "changed_outputs", "attention_outputs", "cross_attention_outputs")


def save(
    traces: Trace | PairTrace | Sequence[Trace | PairTrace],
    file: str | Path,
    *,
    layers: Sequence[int] | None = None,
    dtype: torch.dtype | str | None = None,
    attention_outputs: bool = False,
) -> None:
    """Write one or several traces to a file, atomically. `regard.open` reads it without the model.

    Args:
        traces: one or several, of texts or pairs.
        file: the file name.
        layers: save attention and values only for these, None for all. Vectors such as hidden states are saved for all
            layers.
        dtype: convert wider tensors to bfloat16, float16 or float32. regard compares a few rows of each map with the
            trace and adds the largest difference to the status.
        attention_outputs: also save the output projection, norm and residual around attention, for contributions.

    Raises:
        RegardError: a layer doesn't exist, the dtype isn't supported, attention outputs are requested but not
            available with these arguments, a number is too large for dtype, or the file can't be written.
    """
    check_path("save", file)
    layers = chosen_numbers("layer", layers)
    saved: Any = list(traces) if isinstance(traces, Sequence) else traces
    if saved == []:
        raise RegardError("save: got no trace, expected at least one")
    for trace in saved if isinstance(saved, list) else [saved]:
        if not isinstance(trace, (Trace, PairTrace)):
            kind = type(trace).__name__
            hints = {"WindowedTrace": ", or its .windows", "Seen": ": use seen.save", "Calls": ": use calls.save"}
            raise RegardError(f"save: got {kind}, expected traces{hints.get(kind, '')}")
        count = max(len(maps) for side in trace.sides for maps in (side.attention, side.cross))
        for layer in layers or ():
            if layer >= count:  # sides of a pair may differ in layers
                raise missing_number_error("layer", layer, count, f"{trace.status.model} has")
    name = None if dtype is None else str(dtype).removeprefix("torch.")
    check_saving(name, attention_outputs)
    packer = _TracePacker(None if name is None else getattr(torch, name), layers, attention_outputs)
    write_tensor_file(file, TRACE, packer.pack("trace", saved), packer.tensors)


def open(file: str | Path, *, verify: bool = True) -> Trace | PairTrace | list[Trace | PairTrace] | Calls:  # noqa: A001
    """Read a trace or a list of traces that `save` wrote, without the model, onto the CPU.

    For an attention file from `seen.save` or another program, this returns its calls.

    regard reads the whole file once to compare its checksum, and memory-maps it, so a tensor takes memory only when you
    use it. You may remove or replace the file meanwhile (except on Windows), but not write into it.

    Args:
        file: the file name.
        verify: False opens a large file immediately, without comparing the checksum. Default: True.

    Raises:
        RegardError: the file doesn't exist, is damaged, or has no trace or attention of this version.
    """
    check_path("open", file)
    saved: Any = read_tensor_file(file, {TRACE: TYPES, ATTENTION: _read_calls}, verify=verify)
    return list(saved) if isinstance(saved, tuple) else saved


def open_traces(file: Path) -> list[Trace | PairTrace]:
    """Read the traces of a file. Raises the errors of `open`, and RegardError for attention without a trace."""
    opened = open(file)
    if isinstance(opened, Calls):
        raise RegardError(f"{str(file)!r} has attention without a trace: show it with regard run {file}")
    return opened if isinstance(opened, list) else [opened]


def save_calls(calls: Calls, file: str | Path, tokens: Sequence[Any] | None, key_tokens: Sequence[Any] | None) -> None:
    """Write calls with their labels. For arguments and errors, see `Calls.save`."""
    check_path("save", file)
    rows: list[dict[str, Any]] = []
    tensors: dict[str, Tensor] = {}
    for n, (call, shown) in enumerate(zip(calls.values(), named_maps(calls), strict=True)):
        weights, hidden = shown.weights, 4 - shown.weights.ndim  # axes that the call doesn't have
        row: dict[str, Any] = {"path": call.path, "kernel": call.kernel, "where": call.where, "offset": weights.offset}
        if any(labels is not None for labels in (tokens, key_tokens, *call.labels)):
            texts = [[token.text for token in labels.tokens] for labels in labelled(shown, tokens, key_tokens).labels]
            row["tokens"], row["key_tokens"] = texts
        parts: dict[str, Tensor | None] = {"weights": weights.given}
        if weights.given is None:
            rule = map_fields(weights)["rule"]  # functions were converted to tensors
            mask, (batch, heads, queries, keys) = rule.mask or Mask(), (slice(0, size) for size in weights.full_shape)
            row |= {"band": [mask.low, mask.high], "scale": rule.scale, "softcap": rule.softcap}
            rest = replace(mask, low=None, high=None).tile(batch, heads, queries, keys, weights.device)
            parts = {"mask": rest, "bias": rule.bias, "sinks": rule.sinks, "query": weights.query, "key": weights.key}
        for name, tensor in parts.items():
            if tensor is not None:  # cloned, because safetensors rejects tensors that share memory
                shape = tensor.shape[hidden:] if name in ("query", "key", "weights") else tensor.shape
                tensors[f"{n}.{name}"] = tensor.cpu().reshape(shape).clone(memory_format=torch.contiguous_format)
        rows.append({name: value for name, value in row.items() if value not in (None, "", [None, None])})
    write_tensor_file(file, ATTENTION, {"calls": rows}, tensors)


def _read_calls(about: Any, tensors: dict[str, Tensor]) -> Calls:
    """Build calls from the description and tensors of a file. Raises RegardError if they don't match."""
    rows = about.get("calls") if isinstance(about, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise RegardError("its description needs calls, a list of an object for each call")
    calls, same = Calls(None, ()), {name: value for name, value in about.items() if name != "calls"}
    for n, row in enumerate(rows):
        if unknown := sorted({*same, *row}.difference(NAMES)):
            raise RegardError(f"call {n}: {unknown[0]!r} is unknown, it may have {', '.join(NAMES)}")
        parts = {name: tensors.pop(f"{n}.{name}") for name in TENSORS if f"{n}.{name}" in tensors}
        try:
            _read_call(calls, **{"path": f"call {n}"} | same | row | parts)
        except (TypeError, ValueError) as error:
            raise RegardError(f"call {n}: {error}") from None
    if tensors:
        raise RegardError(f"tensor {min(tensors)!r} belongs to none of the {len(rows)} calls")
    return calls


def _read_call(
    calls: Calls, *, path: str, kernel: str = "file", where: str = "", tokens: Any = None, key_tokens: Any = None,
    query: Any = None, key: Any = None, mask: Any = None, bias: Any = None, weights: Any = None,
    band: Sequence[int | None] = (None, None), offset: int | None = None, **rule: Any,
) -> None:  # fmt: skip
    """Add a call to `calls` from its entries and tensors in an attention file."""
    valid = isinstance(band, list | tuple) and all(isinstance(number, int | None) for number in (*band, offset))
    if not valid or len(band) != 2:
        raise RegardError("band, offset: need [low, high] and a number, all of them whole or null")
    low, high = band
    if (weights is None) != (query is not None and key is not None):
        raise RegardError("it needs query and key, or weights only")
    if weights is None:
        if mask is not None and mask.is_floating_point():  # an additive mask, as in PyTorch
            mask, bias = None, mask if bias is None else mask + bias
        allowed = Mask(low, high) & (Mask() if mask is None else masks.dense(mask))
        attention = AttentionMap.of_query_key(query, key, mask=allowed, bias=bias, offset=offset, **rule)
    else:
        attention = AttentionMap.of_weights(weights, offset)
    calls.add(str(path), str(kernel), attention, where=str(where))
    last = next(reversed(calls))
    if tokens is not None or key_tokens is not None:
        labels = labelled(named_maps(calls[last])[0], tokens, key_tokens).labels
        calls[last] = replace(calls[last], labels=labels)


class _TracePacker(Packer):
    """Pack traces. layers: numbers to save, None for all. outputs: whether to save attention outputs."""

    def __init__(self, dtype: torch.dtype | None, layers: Collection[int] | None, outputs: bool) -> None:
        super().__init__(dtype)
        self.layers, self.outputs = layers, outputs
        self.largest, self.rows = 0.0, 0  # largest difference of rounded weights, rows compared

    def pack(self, name: str, value: Any) -> object:
        if isinstance(value, Trace):
            return self._trace(name, value)
        if isinstance(value, AttentionMap):
            return self._map(name, value)
        if isinstance(value, Layers):
            names = {call: f"{name}.{call[0]}" + f".{call[1]}" * (call[1] > 0) for call in value.calls}
            items = [[*call, self.pack(name_of_item, value[call])] for call, name_of_item in names.items()]
            return {"type": "layers", "what": value.what, "count": len(value), "made": value.made, "items": items}
        return super().pack(name, value)

    def _trace(self, name: str, trace: Trace) -> dict[str, Any]:
        self.largest, self.rows = 0.0, 0
        values = {item.name: getattr(trace, item.name) for item in fields(trace) if item.name not in NOT_AS_IT_IS}
        values["names"] = self._spellings(trace)
        values |= self._attention(trace, "attention") | self._attention(trace, "cross", "cross_")
        packed = self.pack_fields(name, values)
        notes = tuple(dict.fromkeys((*trace.status.notes, *self._notes(trace))))
        return {"type": "Trace"} | packed | {"status": self.pack(name, replace(trace.status, notes=notes))}

    def _attention(self, trace: Trace, part: str, prefix: str = "") -> dict[str, Layers[Any]]:
        """Return the selected layers of self- or cross-attention."""
        names = [part, f"{prefix}values", f"{prefix}attention_outputs"]
        maps, values, outputs = (getattr(trace, name) for name in names)
        if self.outputs and len(outputs) != len(maps):
            raise RegardError(f"{names[2]}: {trace!r} doesn't have them; was it opened from a file without them?")
        for layer in {layer for layer, _ in maps.made}.intersection(self.layers or ()):
            maps[layer]  # raises an error if the trace doesn't have this layer
        kept = {}
        for call in maps.calls:
            if self.layers is None or call[0] in self.layers:
                kept[call] = maps[call], values[call], outputs[call] if self.outputs else None
        return {
            name: Layers(name, len(maps), {call: items[n] for call, items in kept.items()}, made=maps.made)
            for n, name in enumerate(names[: 2 + self.outputs])
        }

    def _map(self, name: str, weights: AttentionMap) -> dict[str, Any]:
        """Pack a map. If it is rounded, compare a few rows with the original."""
        packed = self.pack_fields(name, map_fields(weights))
        if self.rounds(weights.query if weights.given is None else weights.given):
            rounded: Any = unpack(packed, self.tensors, TYPES)
            heads, length = weights.shape[:2]
            rows = torch.linspace(0, length - 1, min(COMPARED_ROWS, length)).round().long()
            difference = rounded[:, rows] - weights[:, rows.to(weights.device)].cpu()
            self.largest, self.rows = max(self.largest, float(difference.abs().max())), self.rows + heads * len(rows)
        return packed

    def _spellings(self, trace: Trace) -> list[list[Any]] | None:
        """Return [id, spelling] pairs of the likeliest tokens of all positions, for display without a tokenizer."""
        if trace.names is None or trace.logits is None or trace.logits.ndim == 1 or trace.labels:
            return None
        top = self.rounded(trace.logits).float().topk(min(LIKELIEST_TOKENS, trace.logits.shape[1]))
        return [[number, trace.names(number)] for number in top.indices.unique().tolist()]

    def _notes(self, trace: Trace) -> list[str]:
        """Return notes on omitted and rounded values."""
        notes, count = [], len({layer for layer, _ in trace.attention.made})
        layers = [layer for layer in trace.attention.kept if self.layers is None or layer in self.layers]
        if len(layers) < count:
            named = f"layer{'s' * (len(layers) > 1)} {', '.join(map(str, layers))}" if layers else "no layers"
            notes.append(f"The file has attention and values for {named} of {count}.")
        if self.rounds(trace.last_hidden_state):
            within = f" Weights are within {self.largest:.1e} of the original ({self.rows} rows)." * bool(self.rows)
            notes.append(f"Tensors are stored as {str(self.dtype).removeprefix('torch.')}.{within}")
        if trace.patches is not None:
            notes.append(f"The file doesn't include {trace.patches.picture.name} or the positions of its patches.")
        return notes


def _trace_of_fields(**values: Any) -> Trace:
    values["tokens"] = tuple(replace(token, source=values["text"]) for token in values["tokens"])
    values["names"] = Spelled(dict(values["names"])) if values["names"] else None
    return Trace(**values)


def _layers_of_fields(what: str, count: int, made: Any, items: Any) -> Layers[Any]:
    if not 0 <= count <= MAX_LAYERS:
        raise ValueError(f"{what}: got {count} layers, expected 0 to {MAX_LAYERS:,}")
    return Layers(what, count, {(layer, nth): item for layer, nth, item in items}, reason=NOT_SAVED, made=made)


TYPES: Types = MAP_TYPES | {
    kind.__name__: kind
    for kind in (AttentionOutput, ChatToken, Norm, PairTrace, Scaling, Status, Token, Turn, UnverifiedOutput)
}
TYPES |= {"map": AttentionMap.of_fields, "layers": _layers_of_fields, "Trace": _trace_of_fields}
