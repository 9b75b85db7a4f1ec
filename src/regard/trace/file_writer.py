"""From traces to what a file is made of: a description that JSON can hold, and the tensors that it names."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import torch
from torch import Tensor

from regard.attention import map_file
from regard.attention.attention_map import AttentionMap
from regard.attention.edges import Edges
from regard.checks import missing
from regard.errors import RegardError
from regard.text.tokens import Spelled
from regard.trace.file_choice import Choice, listed, named
from regard.trace.file_heads import slices
from regard.trace.file_outputs import describe_output
from regard.trace.file_rounding import Measure
from regard.trace.file_tensors import Named, Piece, Pieces
from regard.trace.layer_subset import LayerSubset
from regard.trace.trace import PairTrace, Trace

LIKELIEST = 20  # tokens at each place whose spelling is kept
VECTORS = ("learned", "positional", "segment", "input", "contextual", "logits")


def describe(traced: Any, choice: Choice, prefix: str, pieces: Pieces) -> dict[str, Any]:
    """The description of a trace or of a pair; its tensors are added to pieces, under prefix.

    Raises:
        RegardError: it is no trace, has no such layer or head, or does not hold the blocks that were asked for.
    """
    if isinstance(traced, PairTrace):
        stacks = [traced.encoder.attention, traced.decoder.attention, traced.decoder.cross]
        _check_layers(choice, stacks, traced.status.model)
        return {
            "kind": "pair",
            "encoder": _trace(traced.encoder, choice, f"{prefix}encoder.", pieces),
            "decoder": _trace(traced.decoder, choice, f"{prefix}decoder.", pieces),
        }
    if not isinstance(traced, Trace):
        raise RegardError(f"save: given {type(traced).__name__}, needs a trace or a list of traces")
    _check_layers(choice, [traced.attention, traced.cross], traced.status.model)
    return {"kind": "trace"} | _trace(traced, choice, prefix, pieces)


def held(items: Sequence[Any]) -> tuple[int, ...]:
    """The numbers of what a sequence over layers holds."""
    return items.kept if isinstance(items, LayerSubset) else tuple(range(len(items)))


def _check_layers(choice: Choice, stacks: Sequence[Sequence[Any]], model: str) -> None:
    """Refuse a layer that none of these has; in a pair the longer of the two may have more."""
    count = max(map(len, stacks))
    for layer in choice.layers or ():
        if layer >= count:
            raise missing("layer", layer, count, f"{model} has")


def _trace(trace: Trace, choice: Choice, prefix: str, pieces: Pieces) -> dict[str, Any]:
    vectors = {}
    narrowed = False
    for name in VECTORS:
        tensor = getattr(trace, name)
        if tensor is not None:
            piece = pieces.piece(tensor, below=name == "logits")
            narrowed |= piece.narrowed
            vectors[name] = pieces.add(prefix + name, piece)
    states = {
        n: pieces.add(f"{prefix}hidden_states.{n}", pieces.piece(trace.hidden_states[n]))
        for n in held(trace.hidden_states)
    }
    measure = Measure()
    if choice.attention_outputs and (len(trace.attention_outputs), len(trace.cross_attention_outputs)) != (
        len(trace.attention),
        len(trace.cross),
    ):
        raise RegardError(
            f"attention_outputs: {trace!r} does not hold them; it may have been opened from a file without"
        )
    attention_outputs = (
        (trace.attention_outputs, trace.cross_attention_outputs) if choice.attention_outputs else ((), ())
    )
    attention = _stack(
        trace.attention, trace.values, attention_outputs[0], choice, f"{prefix}attention.", pieces, measure
    )
    cross = _stack(trace.cross, trace.cross_values, attention_outputs[1], choice, f"{prefix}cross.", pieces, measure)
    notes = list(trace.status.notes)
    kept = [each["layer"] for each in attention["held"]]
    if len(kept) < len(trace.attention):
        notes.append(f"attention and values were saved of {listed('layer', kept)} of {len(trace.attention)}")
    if choice.heads is not None:
        here = listed("head", range(len(choice.heads)))
        notes.append(f"saved were {listed('head', choice.heads)} of each layer: {here} of this trace")
    if choice.dtype is not None and (narrowed or measure.rows):
        how = measure.told()
        notes.append(f"stored as {named(choice.dtype)}" + (f": {how}" if how else ""))
    logits = None if trace.logits is None else pieces.piece(trace.logits)
    return {
        "text": trace.text,
        "names": [] if logits is None else _names(trace, logits.dtype),
        "tokens": [list(asdict(token).values()) for token in trace.tokens],
        "vectors": vectors,
        "hidden_states": {"count": len(trace.hidden_states), "held": [[n, name] for n, name in states.items()]},
        "attention": attention,
        "cross": cross,
        "status": asdict(replace(trace.status, notes=tuple(dict.fromkeys(notes)))),
    }


def _names(trace: Trace, dtype: torch.dtype) -> list[list[Any]]:
    """[id, how it is spelled] of the likeliest tokens at each place, which a file tells without the tokenizer."""
    if trace.names is None or trace.logits is None:
        return []
    found: set[int] = set()
    for rows in trace.logits.split(256):
        found.update(rows.to(dtype).float().topk(min(LIKELIEST, rows.shape[1])).indices.unique().tolist())
    if isinstance(trace.names, Spelled):
        found &= set(trace.names.known)
    return [[number, trace.names(number)] for number in sorted(found)]


def _stack(
    maps: Sequence[Any],
    values: Sequence[Any],
    attention_outputs: Sequence[Any],
    choice: Choice,
    prefix: str,
    pieces: Pieces,
    measure: Measure,
) -> dict[str, Any]:
    """The maps of one kind (self- or cross-attention) of a trace, and what belongs to each; some may not be there."""
    numbers = held(maps) if choice.layers is None else [n for n in choice.layers if n < len(maps)]
    layers = []
    for n in numbers:
        value = values[n]
        told = {"layer": n} | _map(maps[n], choice.heads, n, f"{prefix}{n}.", pieces, measure)
        told["value"] = told["block"] = None
        if value is not None:
            told["value"] = pieces.add(
                f"{prefix}{n}.value", pieces.piece(value, 0, slices(maps[n], choice.heads, n).groups)
            )
        if attention_outputs:

            def add(name: str, tensor: Tensor, own: str = f"{prefix}{n}.block.") -> Named:
                return pieces.add(own + name, pieces.piece(tensor))

            told["block"] = describe_output(attention_outputs[n], add)
        layers.append(told)
    return {"layers": len(maps), "attention_outputs": bool(attention_outputs), "held": layers}


def _map(
    weights: AttentionMap, heads: tuple[int, ...] | None, layer: int, prefix: str, pieces: Pieces, measure: Measure
) -> dict[str, Any]:
    """The description of a map, of all heads or of chosen ones, without its layer and value."""
    try:
        tensors, told = map_file.describe(weights)
    except ValueError as error:
        raise RegardError(f"attention {prefix[:-1]}: {error}") from error

    def chosen(some: tuple[int, ...] | None) -> tuple[dict[str, Piece], dict[str, Any]]:
        cut = slices(weights, some, layer)
        parts = {
            name: pieces.piece(each, *cut.of(name, each), below=name in map_file.MINUS_INFINITY)
            for name, each in tensors.items()
        }
        return parts, _told(told, some)

    parts, told_of = chosen(heads)
    if any(part.narrowed for part in parts.values()):
        for head in range(weights.query.shape[1]) if heads is None else heads:  # one at a time: they may be large
            single, told_of_it = chosen((head,))
            measure.add(weights, head, {name: part.take() for name, part in single.items()}, told_of_it)
    return {
        "map": told_of,
        "heads": weights.query.shape[1] if heads is None else len(heads),
        "keys": weights.key.shape[2],
        "tensors": {name: pieces.add(prefix + name, part) for name, part in parts.items()},
    }


def _told(told: dict[str, Any], heads: tuple[int, ...] | None) -> dict[str, Any]:
    """A map's description with its edges those of chosen heads."""
    mask = told["mask"]
    if heads is None or mask is None:
        return told
    removed = [_edges_of(Edges.of(each), heads) for each in mask["removed"]]
    return told | {"mask": mask | {"removed": [edges.described() for edges in removed if edges is not None]}}


def _edges_of(edges: Edges, heads: tuple[int, ...]) -> Edges | None:
    """The edges in chosen heads, which are numbered anew; None where there are none."""
    shape = (edges.shape[0], len(heads), *edges.shape[2:])
    if edges.heads is None:
        return replace(edges, shape=shape)
    numbers = tuple(new for new, old in enumerate(heads) if old in edges.heads)
    return replace(edges, shape=shape, heads=numbers) if numbers else None
