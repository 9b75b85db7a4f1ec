"""Describe traces for a file: a description that JSON can hold, and the pieces of tensors that it names."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import torch
from torch import Tensor

from regard.attention import map_file
from regard.attention.attention_map import AttentionMap
from regard.attention.edges import Edges
from regard.attention.head_map import key_heads_of_queries
from regard.checks import missing_number_error
from regard.errors import RegardError
from regard.tensor_files.pieces import Piece, Pieces, dtype_name
from regard.text.tokens import Spelled, Token
from regard.trace.attention_output import UnverifiedOutput
from regard.trace.file_format import OUTPUT_PARTS, OUTPUT_TENSORS, POOLING, VECTORS, Choice
from regard.trace.layer_subset import LayerSubset, call_numbers, calls_made, kept_numbers
from regard.trace.trace import PairTrace, Trace

LIKELIEST = 20  # tokens at each place whose spelling is saved
COMPARED_ROWS = 4  # of each head of each map, from the first to the last


def describe_trace_to_save(traced: Any, choice: Choice, prefix: str, pieces: Pieces) -> dict[str, Any]:
    """Describe a trace or a pair in values that JSON can hold; its tensors are added to pieces, under prefix.

    Raises:
        RegardError: it is no trace, has no such layer or head, or does not hold the attention outputs to be saved.
    """
    if not isinstance(traced, (Trace, PairTrace)):
        raise RegardError(f"save: given {type(traced).__name__}, needs a trace or a list of traces")
    count = max(len(maps) for side in traced.sides for maps in (side.attention, side.cross))
    for layer in choice.layers or ():
        if layer >= count:  # of a pair, one side may have more layers than the other
            raise missing_number_error("layer", layer, count, f"{traced.status.model} has")
    if isinstance(traced, Trace):
        return {"kind": "trace"} | _Writer(choice, prefix, pieces).trace(traced)
    return {
        "kind": "pair",
        "encoder": _Writer(choice, f"{prefix}encoder.", pieces).trace(traced.encoder),
        "decoder": _Writer(choice, f"{prefix}decoder.", pieces).trace(traced.decoder),
    }


def key_heads_to_save(weights: AttentionMap, heads: tuple[int, ...] | None, layer: int) -> "KeptHeads":
    """Work out which key heads some query heads of a layer's map need.

    Raises:
        RegardError: the layer has no such head.
    """
    if heads is None:
        return KeptHeads()
    count, groups = weights.query.shape[1], weights.key.shape[1]
    for head in heads:
        if head >= count:
            raise missing_number_error("head", head, count, f"layer {layer} has")
    if heads == tuple(range(count)):
        return KeptHeads()
    # A map pairs equal runs of query heads with one key head each; where the choice is uneven, every query head gets
    # a key head of its own.
    return KeptHeads(heads, tuple(key_heads_of_queries(heads, count, groups)))


@dataclass(frozen=True)
class KeptHeads:
    """heads: the query heads that are saved, groups: the key/value heads that they share; None for all."""

    heads: tuple[int, ...] | None = None
    groups: tuple[int, ...] | None = None

    def part(self, name: str, tensor: Tensor) -> tuple[int, tuple[int, ...] | None]:
        """(axis, places) of what is saved of a map's tensor, by its name; None for all of it."""
        if name == "key":
            return 1, self.groups
        if name == "sinks":
            return 0, self.heads
        per_head = name == "query" or name == "bias" or name.startswith("mask.dense.")
        return 1, self.heads if per_head and tensor.shape[1] > 1 else None

    def described(self, described: dict[str, Any]) -> dict[str, Any]:
        """A map's description with the removed edges of these heads alone, which are numbered anew."""
        mask = described["mask"]
        if self.heads is None or mask is None:
            return described
        removed = [Edges.of(each).of_heads(self.heads) for each in mask["removed"]]
        return described | {"mask": mask | {"removed": [edges.described() for edges in removed if edges is not None]}}


class _Writer:
    """Describes one trace. prefix: of its tensors' names. largest, rows: of the comparison of rounded weights."""

    def __init__(self, choice: Choice, prefix: str, pieces: Pieces) -> None:
        self.choice, self.prefix, self.pieces = choice, prefix, pieces
        self.largest, self.rows, self.rounded = 0.0, 0, False

    def trace(self, trace: Trace) -> dict[str, Any]:
        outputs = trace.attention_outputs, trace.cross_attention_outputs
        if self.choice.attention_outputs and [*map(len, outputs)] != [len(trace.attention), len(trace.cross)]:
            raise RegardError(
                f"attention_outputs: {trace!r} does not hold them; it may have been opened from a file without"
            )
        given = {name: getattr(trace, name) for name in VECTORS}
        vectors = {name: self.vector(name, tensor) for name, tensor in given.items() if tensor is not None}
        states = kept_numbers(trace.hidden_states)
        saved = [[n, self.tensor(f"hidden_states.{n}", trace.hidden_states[n])] for n in states]
        attention = self.attention(trace.attention, trace.values, outputs[0], "attention.")
        cross = self.attention(trace.cross, trace.cross_values, outputs[1], "cross.")
        notes = self.notes(attention)
        if trace.patches is not None:
            notes = [*notes, f"{trace.patches.picture.name} is not in the file, nor where on it each patch lies"]
        notes = list(dict.fromkeys((*trace.status.notes, *notes)))
        status = {n: list(x) if isinstance(x, tuple) else x for n, x in asdict(trace.status).items()}
        own = trace.pooling
        pooling = {name: getattr(own, name) for name in POOLING} | ({"left_out": own.left_out} if own.left_out else {})
        turns = [asdict(each) | {"tokens": list(each.tokens)} for each in trace.turns]
        maybe = ({} if own.unknown or own.dense else {"pooling": pooling | {"modes": list(own.modes)}}) | (
            {"turns": turns} if turns else {}
        )
        return {
            "text": trace.text, "names": self.names(trace),
            "tokens": [[getattr(token, each.name) for each in fields(Token)] for token in trace.tokens],
            "vectors": vectors,
            "hidden_states": {"count": len(trace.hidden_states), "saved": saved}, "attention": attention,
            "cross": cross, "status": status | {"notes": notes},
        } | maybe  # fmt: skip

    def tensor(self, name: str, tensor: Tensor) -> str | list[Any]:
        """Add a whole tensor."""
        return self.pieces.add(self.prefix + name, self.pieces.piece(tensor))

    def vector(self, name: str, tensor: Tensor) -> str | list[Any]:
        """Add one of `VECTORS`."""
        piece = self.pieces.piece(tensor, minus_inf=name == "logits")
        self.rounded |= piece.narrowed
        return self.pieces.add(self.prefix + name, piece)

    def names(self, trace: Trace) -> list[list[Any]]:
        """[id, spelling] of the likeliest tokens at each place, which are shown without the tokenizer."""
        if trace.names is None or trace.logits is None:
            return []
        likeliest: set[int] = set()
        dtype = self.pieces.piece(trace.logits).dtype
        for rows in trace.logits.split(256):
            top = rows.to(dtype).float().topk(min(LIKELIEST, rows.shape[1]))
            likeliest.update(top.indices.unique().tolist())
        if isinstance(trace.names, Spelled):
            likeliest &= set(trace.names.known)
        return [[number, trace.names(number)] for number in sorted(likeliest)]

    def attention(self, maps: Any, values: Any, outputs: Any, prefix: str) -> dict[str, Any]:
        """Describe self- or cross-attention: the maps of the chosen layers, and what belongs to each."""
        chosen, keep_outputs = self.choice.layers, self.choice.attention_outputs and bool(outputs)
        layers = []
        for n in dict(calls_made(maps)).keys() & (chosen or ()):
            maps[n]  # says so itself where it is not held
        for call in [call for call in call_numbers(maps) if chosen is None or call[0] in chosen]:
            n, nth = call
            heads, name = key_heads_to_save(maps[call], self.choice.heads, n), f"{prefix}{n}." + f"{nth}." * (nth > 0)
            described = {"layer": n, "nth": nth} | self.map(maps[call], heads, n, name)
            described["value"] = described["attention_output"] = None
            if values[call] is not None:
                piece = self.pieces.piece(values[call], 0, heads.groups)
                described["value"] = self.pieces.add(f"{self.prefix}{name}value", piece)
            if keep_outputs:
                described["attention_output"] = self.output(outputs[call], f"{name}attention_output.")
            layers.append(described)
        made = maps.made if isinstance(maps, LayerSubset) else None
        return {
            "layers": len(maps),
            "made": None if made is None else [list(call) for call in made],
            "attention_outputs": keep_outputs,
            "saved": layers,
        }

    def map(self, weights: AttentionMap, heads: KeptHeads, layer: int, prefix: str) -> dict[str, Any]:
        """Describe a map, of all heads or of chosen ones; where it is rounded, compare weights of a few rows."""
        try:
            tensors, description = map_file.describe_attention_map(weights)
        except ValueError as error:
            raise RegardError(f"attention {self.prefix}{prefix[:-1]}: {error}") from error

        def part(of: KeptHeads) -> dict[str, Piece]:
            return {
                name: self.pieces.piece(each, *of.part(name, each), minus_inf=name in map_file.MINUS_INFINITY)
                for name, each in tensors.items()
            }

        saved, all_heads = part(heads), range(weights.query.shape[1])
        numbers = all_heads if self.choice.heads is None else self.choice.heads
        if any(piece.narrowed for piece in saved.values()):
            for head in numbers:  # one at a time: they may be large
                one = key_heads_to_save(weights, (head,), layer)
                rounded = {name: piece.take() for name, piece in part(one).items()}
                self.compare(
                    weights, head, AttentionMap.of(map_file.unpack_attention_map(rounded, one.described(description)))
                )
        return {
            "map": heads.described(description),
            "heads": len(numbers),
            "keys": weights.key.shape[2],
            "tensors": {name: self.pieces.add(self.prefix + prefix + name, piece) for name, piece in saved.items()},
        }

    def compare(self, weights: AttentionMap, head: int, rounded: AttentionMap) -> None:
        """Compare a few rows of a head of a map (H, L, S) with those of its rounded queries and keys (1, L, S)."""
        length = weights.shape[-2]
        rows = torch.linspace(0, length - 1, min(COMPARED_ROWS, length)).round().long()
        traced = weights[head, rows.to(weights.device)].cpu()
        self.largest = max(self.largest, float((rounded[0, rows] - traced).abs().max()))
        self.rows += len(rows)

    def output(self, output: Any, prefix: str) -> dict[str, Any]:
        """Describe an attention output, a norm or a scaling, field by field."""
        if isinstance(output, UnverifiedOutput):
            return {"unverified": output.reason}
        described: dict[str, Any] = {}
        for name, value in vars(output).items():
            if value is not None and name in OUTPUT_TENSORS[type(output)]:
                described[name] = self.tensor(prefix + name, value)
            elif value is not None and name in OUTPUT_PARTS:
                described[name] = self.output(value, f"{prefix}{name}.")
            else:
                described[name] = value
        return described

    def notes(self, attention: dict[str, Any]) -> list[str]:
        """Notes for the status on what was left out and rounded. attention: as `attention` describes it."""
        notes, heads, dtype = [], self.choice.heads, self.choice.dtype
        layers = list(dict.fromkeys(each["layer"] for each in attention["saved"]))
        made = attention["made"]
        count = attention["layers"] if made is None else len({layer for layer, _ in made})
        if len(layers) < count:
            notes.append(f"attention and values were saved of {_saved_layers_in_words('layer', layers)} of {count}")
        if heads is not None:
            here = _saved_layers_in_words("head", range(len(heads)))
            notes.append(f"saved were {_saved_layers_in_words('head', heads)} of each layer: {here} of this trace")
        if dtype is not None and self.rows:
            within = f"weights within {self.largest:.1e} of those traced, on {self.rows} rows compared"
            notes.append(f"stored as {dtype_name(dtype)}: {within}")
        elif dtype is not None and self.rounded:
            notes.append(f"stored as {dtype_name(dtype)}")
        return notes


def _saved_layers_in_words(what: str, numbers: Sequence[int]) -> str:
    """'layer 3', 'layers 0, 5', 'no layers'."""
    if not numbers:
        return f"no {what}s"
    return f"{what}{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
