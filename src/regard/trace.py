"""One text, one `Trace`: everything its forward pass did, by name. Whatever a person looks at is a function of it."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.map import AttentionMap
from regard.attention.storage import pack, unpack
from regard.blocks import Block, Unverified
from regard.errors import RegardError
from regard.files import whole
from regard.tokens import Token, Word, find_word

FORMAT, VERSION = "regard trace", 1
PARTS = ("learned", "positional", "segment", "input", "contextual", "logits")

Vectors = Float[Tensor, "L M"]


@dataclass
class Status:
    """How a trace came about and how far it can be trusted.

    difference: largest absolute difference between weights here and the model's own attention code on the sampled
    rows, None where the model offers no code to compare with. embedding_difference: largest absolute difference
    between the sum of the embedding parts and what the model adds up, None where that was not found.
    """

    model: str
    kernels: tuple[str, ...]
    device: str
    dtype: str
    difference: float | None
    rows_compared: int
    embedding_difference: float | None
    unknown: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(eq=False)
class Trace:
    """What a model did to one text, without padding, however many were batched.

    learned, positional, segment: what is added up to make the input, None where the model has no such part.
    input: their sum, as it enters the first norm. states[n] enters layer n, states[n + 1] leaves it. contextual: the
    model's last hidden state. logits: (L, V) where the model has a language head. attention[n]: weights (H, L, S) of
    layer n. values[n]: value vectors (G, S, E) of layer n. cross[n]: of a decoder, its weights on the encoder's tokens.
    """

    text: str
    tokens: tuple[Token, ...]
    learned: Float[Tensor, "L W"] | None
    positional: Float[Tensor, "L W"] | None
    segment: Float[Tensor, "L W"] | None
    input: Float[Tensor, "L W"] | None
    states: tuple[Vectors, ...]
    contextual: Vectors
    logits: Float[Tensor, "L V"] | None
    attention: tuple[AttentionMap, ...]
    values: tuple[Float[Tensor, "G S E"] | None, ...]
    status: Status = field(repr=False)
    cross: tuple[AttentionMap, ...] = ()
    cross_values: tuple[Float[Tensor, "G S E"] | None, ...] = ()
    blocks: tuple[Block | Unverified, ...] = ()
    cross_blocks: tuple[Block | Unverified, ...] = ()

    def __repr__(self) -> str:
        return f"Trace({self.text!r}, {len(self.tokens)} tokens, {len(self.attention)} layers, {self.status.model})"

    def word(self, word: str) -> list[Word]:
        """Every occurrence of a word with its tokens and characters.

        Raises:
            RegardError: the word is not in the text; the nearest words are named.
        """
        return find_word(self.text, self.tokens, word)

    def save(self, file: str | Path) -> None:
        """Write the trace to one file (safetensors with JSON inside) that `regard.open` reads without the model."""
        save(self, file)


@dataclass
class PairTrace:
    """What an encoder-decoder did to a text and its target: a trace of each; decoder.cross[n] looks at the encoder."""

    encoder: Trace
    decoder: Trace

    @property
    def status(self) -> Status:
        """The status of both, which are of one forward pass."""
        return self.decoder.status


def vector(rows: Float[Tensor, "L M"], word: Word) -> Float[Tensor, " M"]:
    """A word's vector: the mean of its tokens'."""
    return rows[list(word.tokens)].mean(0)


def gives(weights: AttentionMap, word: Word) -> Float[Tensor, "H S"]:
    """The attention that a word gives, one row a head: the mean over its tokens."""
    return weights[:, list(word.tokens)].mean(1)


def gets(weights: AttentionMap, word: Word) -> Float[Tensor, "H L"]:
    """The attention that a word gets from every token, one row a head: the sum over its tokens."""
    return weights[:, :, list(word.tokens)].sum(2)


def special_share(weights: Float[Tensor, "*H S"], tokens: Sequence[Token]) -> Float[Tensor, "*H"]:
    """The part of rows of weights that goes to special tokens."""
    special = torch.tensor([token.special for token in tokens], device=weights.device)
    return weights[..., special].sum(-1)


def save(traces: "Trace | Sequence[Trace]", file: str | Path) -> None:
    """Write one trace or several to one safetensors file; its JSON lies in the file's metadata, under "regard".

    Raises:
        RegardError: the file cannot be written; nothing is left of it then.
    """
    many = not isinstance(traces, Trace)
    each = [traces] if isinstance(traces, Trace) else list(traces)
    if any(not isinstance(trace, Trace) or trace.cross for trace in each):
        raise RegardError("traces of an encoder-decoder cannot be saved yet: save its .encoder alone")
    tensors: dict[str, Tensor] = {}
    described = [_describe(trace, f"{n}.", tensors) for n, trace in enumerate(each)]
    header = {"format": FORMAT, "version": VERSION, "many": many, "traces": described}
    with whole(file) as temporary:
        own = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
        try:
            safetensors.torch.save_file(own, temporary, {"regard": json.dumps(header)})
        except safetensors.SafetensorError as error:
            raise RegardError(f"cannot write {str(file)!r}: {error}") from error


def open(file: str | Path) -> Any:  # noqa: A001 (regard.open is its name)
    """Read what `save` wrote, a `Trace` or a list of them as it was saved, without the model.

    Raises:
        RegardError: there is no such file, it is no trace, is cut short, or of a newer version.
    """
    path = Path(file)
    if not path.is_file():
        raise RegardError(f"no trace file {str(path)!r}")
    try:
        with safetensors.safe_open(path, framework="pt") as opened:
            metadata = opened.metadata() or {}
            if "regard" not in metadata:
                raise RegardError(f"{str(path)!r} is a safetensors file, but no trace that regard saved")
            header = json.loads(metadata["regard"])
            if header["format"] != FORMAT:
                raise RegardError(f"{str(path)!r} holds a {header['format']!r}, needed is a {FORMAT!r}")
            if header["version"] > VERSION:
                raise RegardError(
                    f"{str(path)!r} has format version {header['version']}, this regard reads {VERSION}: update it"
                )
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 (it is no mapping)
        traces = [_rebuild(each, f"{n}.", tensors) for n, each in enumerate(header["traces"])]
    except (safetensors.SafetensorError, KeyError, TypeError, ValueError, IndexError) as error:
        if isinstance(error, RegardError):
            raise
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RegardError(f"{str(path)!r} is no whole trace file: {reason}") from error
    return traces if header["many"] else traces[0]


def _describe(trace: Trace, prefix: str, tensors: dict[str, Tensor]) -> dict[str, Any]:
    """A trace's JSON; its tensors are added under prefix."""
    parts = [name for name in PARTS if getattr(trace, name) is not None]
    for name in parts:
        tensors[prefix + name] = getattr(trace, name)
    for n, state in enumerate(trace.states):
        tensors[f"{prefix}states.{n}"] = state
    layers = []
    for n, (weights, value) in enumerate(zip(trace.attention, trace.values, strict=True)):
        packed, meta = pack(weights)
        tensors.update({f"{prefix}attention.{n}.{name}": tensor for name, tensor in packed.items()})
        if value is not None:
            tensors[f"{prefix}values.{n}"] = value
        layers.append({"map": meta, "tensors": sorted(packed), "value": value is not None})
    return {
        "text": trace.text,
        "tokens": [asdict(token) for token in trace.tokens],
        "parts": parts,
        "states": len(trace.states),
        "layers": layers,
        "status": asdict(trace.status),
    }


def _rebuild(described: dict[str, Any], prefix: str, tensors: dict[str, Tensor]) -> Trace:
    """A trace from its JSON and its tensors."""
    length = len(described["tokens"])
    found = {name: tensors[prefix + name] if name in described["parts"] else None for name in PARTS}
    states = tuple(tensors[f"{prefix}states.{n}"] for n in range(described["states"]))
    for name, tensor in [*found.items(), *((f"states.{n}", s) for n, s in enumerate(states))]:
        if tensor is not None and (tensor.ndim != 2 or tensor.shape[0] != length):
            raise RegardError(f"tensor {name!r} has shape {tuple(tensor.shape)}, {length} tokens are described")
    maps, values = [], []
    for n, layer in enumerate(described["layers"]):
        packed = {name: tensors[f"{prefix}attention.{n}.{name}"] for name in layer["tensors"]}
        weights = unpack(packed, layer["map"])
        if weights.shape[-2] != length:
            raise RegardError(f"attention map of layer {n} has shape {weights.shape}, {length} tokens are described")
        maps.append(weights)
        values.append(tensors[f"{prefix}values.{n}"] if layer["value"] else None)
    status: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in described["status"].items()}
    tokens = tuple(Token(**token) for token in described["tokens"])
    contextual = found["contextual"]
    if contextual is None:
        raise RegardError("tensor 'contextual' is missing")
    return Trace(
        described["text"],
        tokens,
        found["learned"],
        found["positional"],
        found["segment"],
        found["input"],
        states,
        contextual,
        found["logits"],
        tuple(maps),
        tuple(values),
        Status(**status),
    )
