"""Convert a trace to the output of a transformers model, for code that expects this format.

    trace                                   transformers
    last_hidden_state (L, K)                last_hidden_state (1, L, K), after the final norm
    hidden_states[n] (L, M), n < N          hidden_states[n] (1, L, M)
    last_hidden_state                       hidden_states[N], also after the final norm
    attention[n] (H, L, S), lazy            attentions[n] (1, H, L, S), dense
    logits (L, V)                           logits (1, L, V)

For an encoder-decoder, names begin with `encoder_`, `decoder_` or `cross_`, as in transformers. The tensors are views
of the trace's tensors, except for the weights, which are computed in float32 or better even if the model uses half
precision. In attentions, layers without attention have no entry, and layers with several calls have several.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers.utils import ModelOutput

from regard.attention.attention_map import AttentionMap
from regard.errors import RegardError
from regard.memory import format_bytes, require_memory
from regard.trace.layer_subset import call_numbers, calls_made, kept_numbers

LARGEST = 1 << 30  # largest size in bytes of dense weights that are computed by default: 1 GiB
INSTEAD = (
    "attentions=True computes them all the same, attentions=False leaves them out; trace.attention computes regions"
)

Tensors = tuple[Tensor, ...]


@dataclass
class TraceOutput(ModelOutput):
    """The output of a model that reads one text, with a batch axis. None for missing values."""

    last_hidden_state: Tensor
    logits: Tensor | None = None
    hidden_states: Tensors | None = None
    attentions: Tensors | None = None


@dataclass
class PairOutput(ModelOutput):
    """The output of an encoder-decoder, with a batch axis. None for missing values."""

    last_hidden_state: Tensor
    logits: Tensor | None = None
    decoder_hidden_states: Tensors | None = None
    decoder_attentions: Tensors | None = None
    cross_attentions: Tensors | None = None
    encoder_last_hidden_state: Tensor | None = None
    encoder_hidden_states: Tensors | None = None
    encoder_attentions: Tensors | None = None


def output_of(trace: Any, attentions: bool | None = None) -> TraceOutput:
    """Return a trace in the format of a model's output with output_hidden_states and output_attentions.

    attentions: whether to compute the dense weights, H × L × S numbers per layer. None: only up to 1 GiB.
    """
    dense = _dense_weights_of_trace([("attention", trace.attention)], attentions, trace.status.model)
    return TraceOutput(
        last_hidden_state=trace.last_hidden_state[None],
        logits=None if trace.logits is None else trace.logits[None],
        hidden_states=_hidden_states_of_trace(trace),
        attentions=dense[0],
    )


def output_of_pair(pair: Any, attentions: bool | None = None) -> PairOutput:
    """Return a pair of traces in the format of an encoder-decoder's output. See `output_of`."""
    maps = [("attention", pair.encoder.attention), ("attention", pair.decoder.attention), ("cross", pair.decoder.cross)]
    encoder, decoder, cross = _dense_weights_of_trace(maps, attentions, pair.status.model)
    logits = pair.decoder.logits
    return PairOutput(
        last_hidden_state=pair.decoder.last_hidden_state[None],
        logits=None if logits is None else logits[None],
        decoder_hidden_states=_hidden_states_of_trace(pair.decoder),
        decoder_attentions=decoder,
        cross_attentions=cross,
        encoder_last_hidden_state=pair.encoder.last_hidden_state[None],
        encoder_hidden_states=_hidden_states_of_trace(pair.encoder),
        encoder_attentions=encoder,
    )


def _hidden_states_of_trace(trace: Any) -> Tensors:
    """Return the hidden states with a batch axis. The last one is after the final norm."""
    _check_trace_of_everything("hidden_states", kept_numbers(trace.hidden_states), range(len(trace.hidden_states)))
    return (*(state[None] for state in trace.hidden_states[:-1]), trace.last_hidden_state[None])


def _dense_weights_of_trace(
    stacks_by_name: Sequence[tuple[str, Any]], attentions: bool | None, model: str
) -> list[Tensors | None]:
    """Return the dense weights of each stack of layers with a batch axis, or None for each stack."""
    if not isinstance(attentions, (bool, type(None))):
        raise RegardError(f"as_transformers: attentions: got {attentions!r}, expected True, False or None")
    if attentions is False:
        return [None] * len(stacks_by_name)
    for name, maps in stacks_by_name:
        _check_trace_of_everything(name, call_numbers(maps), calls_made(maps))
    stacks: list[list[AttentionMap]] = [[maps[call] for call in call_numbers(maps)] for _, maps in stacks_by_name]
    need = sum(math.prod(weights.shape) * weights.dtype.itemsize for maps in stacks for weights in maps)
    if attentions is None and need > LARGEST:
        raise RegardError(
            f"as_transformers: the dense attentions of {model} for this text are {format_bytes(need)}, above the limit "
            f"of {format_bytes(LARGEST)}: {INSTEAD}"
        )
    device = next((weights.device for maps in stacks for weights in maps), torch.device("cpu"))
    require_memory(need, device, "as_transformers: dense attentions", INSTEAD)
    return [tuple(weights.dense()[None] for weights in maps) for maps in stacks]


def _check_trace_of_everything(name: str, available: Sequence[Any], all_of: Sequence[Any]) -> None:
    """Raise RegardError if the trace has this value for only some layers."""
    if tuple(available) != tuple(all_of):
        layers = list(dict.fromkeys(number[0] if isinstance(number, tuple) else number for number in available))
        raise RegardError(
            f"as_transformers: the trace holds {name} of {', '.join(map(str, layers)) or 'none'} only, expected all: "
            "trace without layers=, and save without layers="
        )
