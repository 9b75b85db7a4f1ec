"""Run many windows of token ids through a model, in batches of equal length, and return requested hidden states.

Windows of equal length need no padding. The batch therefore changes a window's numbers only by rounding, because
products of another shape round differently.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.capture.build_trace import check_finite, check_length
from regard.capture.options import NO_LAYERS, CaptureOptions
from regard.checks import from_zero
from regard.errors import RegardError
from regard.text.tokens import encoded_ids

if TYPE_CHECKING:
    from regard.models.model import Model

BATCH_TOKENS = 2048  # measured with MiniLM: 512 and 4096 are slower


@dataclass(frozen=True, eq=False)
class Window:
    """The input of one pass: token ids, including special tokens, and token types if the tokenizer has them."""

    ids: list[int]
    segments: tuple[int, ...] | None = None


@dataclass(frozen=True, eq=False)
class StateBatch:
    """The results of a batch of windows of L tokens.

    numbers: the windows' numbers. states: (B, K, L, M), for the K requested layers. maps: the attention (B, H, L, L) of
    every layer, if requested.
    """

    numbers: list[int]
    states: Float[Tensor, "B K L M"]
    maps: list[AttentionMap]


def read_states(
    model: "Model", windows: Sequence[Window], layers: Sequence[int], *, attention: bool = False
) -> Iterator[StateBatch]:
    """Yield the output states of some layers for all windows, batch by batch, the shortest windows first.

    layers: their numbers. The last layer's states are the contextual embeddings, after a final norm if there is one.
    attention: whether to include the attention of all layers.
    """
    session = model._session
    if model.pairs:
        raise RegardError(
            f"{model.name} is an encoder-decoder: states of many texts are read from a model with a single stack"
        )
    depth = count_layers(model)
    layers = [from_zero("layer", layer, depth, f"{model.name} has") for layer in layers]
    inner = frozenset(layer for layer in layers if layer < depth - 1)
    layers_kept = None if attention else inner or NO_LAYERS
    keep = CaptureOptions(layers_kept, logits=False, attention_outputs=False, embeddings=False, compare=False)
    batch_size = 1 if session.reports_weights else None
    for batch in window_batches_by_length([len(window.ids) for window in windows], batch_size):
        # no variable keeps these results in memory while the next pass runs
        yield _read_batch(model, batch, [windows[n] for n in batch], layers, keep)


def _read_batch(
    model: "Model", numbers: list[int], windows: Sequence[Window], layers: Sequence[int], keep: CaptureOptions
) -> StateBatch:
    """Run windows of equal length in one pass. numbers: the numbers of these windows."""
    texts = [replace(encoded_ids(window.ids), segments=window.segments) for window in windows]
    done = model._session.run(texts, None, [()] * len(texts), keep)
    stack = max(done.stacks.values(), key=lambda states: states.count, default=None)
    if stack is None:
        raise RegardError(f"model {model.name!r}: no stack of layers was found around its attention")
    check_length(done, stack, texts)
    states, depth = dict(stack.hidden_states), count_layers(model)
    states[depth] = done.capture.last.get("last_hidden_state", states[depth])
    check_finite({layer + 1: states[layer + 1] for layer in layers}, model.name)
    maps: list[AttentionMap] = []
    if keep.layers is None:
        calls = [call for call in done.calls if (call.path, call.nth) in stack.calls]
        call_layers = [stack.calls[call.path, call.nth] for call in calls]
        if call_layers != list(range(depth)):
            raise RegardError(
                f"statistics: the layers of {model.name} make {len(call_layers)} attention calls, expected one in each "
                f"of its {depth}; leave the statistics out"
            )
        maps = [call.weights for call in calls]
    return StateBatch(numbers, torch.stack([states[layer + 1] for layer in layers], 1), maps)


def count_layers(model: "Model") -> int:
    """Return the number of layers of a model with a single stack."""
    count = getattr(model._session.original.config, "num_hidden_layers", None)
    if not isinstance(count, int):
        raise RegardError(f"model {model.name!r}: its config does not say how many layers it has")
    return count


def count_heads(model: "Model") -> int:
    """Return the number of query heads per layer of a model, or the maximum if layers differ."""
    count = getattr(model._session.original.config, "num_attention_heads", 0) or 0
    return max(count) if isinstance(count, (list, tuple)) else int(count)


def state_width(model: "Model") -> int:
    """Return the width M of a model's states."""
    return int(model._session.original.config.hidden_size)


def window_batches_by_length(lengths: Sequence[int], max_size: int | None = None) -> Iterator[list[int]]:
    """Yield the numbers of windows in batches of one length, the shortest first. max_size: per batch, None for any."""
    by_length: dict[int, list[int]] = {}
    for number, length in enumerate(lengths):
        by_length.setdefault(length, []).append(number)
    for length in sorted(by_length):
        alike, step = by_length[length], max(1, BATCH_TOKENS // length)
        step = step if max_size is None else min(step, max_size)
        for first in range(0, len(alike), step):
            yield alike[first : first + step]
