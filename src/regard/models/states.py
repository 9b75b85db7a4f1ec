"""Run many windows of token ids through a model, in batches of one length, and give what of each pass is asked for.

Windows of one length need no padding, so that a window's numbers do not depend on what else was in its batch beyond
the rounding of products of other shapes; and of thousands of windows few lengths have only one.
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
from regard.errors import RegardError
from regard.text.tokens import encoded_ids

if TYPE_CHECKING:
    from regard.models.model import Model

BATCH_TOKENS = 2048  # measured with MiniLM: 512 and 4096 are slower


@dataclass(frozen=True, eq=False)
class Window:
    """What a model reads at once: its ids, special ones included, and their segments where the tokenizer has some."""

    ids: list[int]
    segments: tuple[int, ...] | None = None


@dataclass(frozen=True, eq=False)
class StateBatch:
    """What a batch of windows of L tokens gave.

    numbers: which windows. states: (B, K, L, M) of the K layers that were asked for. maps: of every layer the attention
    (B, H, L, L), where it was asked for.
    """

    numbers: list[int]
    states: Float[Tensor, "B K L M"]
    maps: list[AttentionMap]


def read_states(
    model: "Model", windows: Sequence[Window], layers: Sequence[int], *, attention: bool = False
) -> Iterator[StateBatch]:
    """Yield the states that leave some layers, of every window, batch by batch: the shortest windows first.

    layers: their numbers; the last layer's is the model's contextual embedding, after a final norm where it has one.
    attention: whether the attention of all layers is given too.

    Raises:
        RegardError: an encoder-decoder, layers that the model has not, states that are not finite, or attention of
            layers that make none or several calls.
    """
    session = model._session
    if model.pairs:
        raise RegardError(
            f"{model.name} is an encoder-decoder: states of many texts are read from a model of one stack"
        )
    depth = count_layers(model)
    for layer in layers:
        if not 0 <= layer < depth:
            raise RegardError(f"layers: {layer} is out of range, {model.name} has layers 0 to {depth - 1}")
    inner = frozenset(layer for layer in layers if layer < depth - 1)
    kept = None if attention else inner or NO_LAYERS
    keep = CaptureOptions(kept, logits=False, attention_outputs=False, embeddings=False, compare=False)
    most = 1 if session.reports_weights else None
    for batch in window_batches_by_length([len(window.ids) for window in windows], most):
        # nothing of a pass is held here while the next one runs
        yield _read_batch(model, [windows[n] for n in batch], batch, layers, keep, attention=attention)


def _read_batch(
    model: "Model",
    windows: Sequence[Window],
    numbers: list[int],
    layers: Sequence[int],
    keep: CaptureOptions,
    *,
    attention: bool,
) -> StateBatch:
    depth = count_layers(model)
    texts = [replace(encoded_ids(window.ids), segments=window.segments) for window in windows]
    done = model._session.run(texts, None, [()] * len(windows), keep)
    stack = max(done.stacks.values(), key=lambda each: each.count, default=None)
    if stack is None:
        raise RegardError(f"model {model.name!r}: no stack of layers was found around its attention")
    check_length(done, stack, texts)
    states = stack.numbered
    states[depth] = done.last.get("last_hidden_state", states[depth])
    check_finite({layer + 1: states[layer + 1] for layer in layers}, model.name)
    maps: list[AttentionMap] = []
    if attention:
        made = [stack.calls[call.path, call.nth] for call in done.calls if (call.path, call.nth) in stack.calls]
        if made != list(range(depth)):
            raise RegardError(
                f"statistics: the layers of {model.name} make {len(made)} attention calls, needs one in each "
                f"of its {depth}; leave the statistics out"
            )
        maps = [call.weights for call in done.calls if (call.path, call.nth) in stack.calls]
    return StateBatch(numbers, torch.stack([states[layer + 1] for layer in layers], 1), maps)


def count_layers(model: "Model") -> int:
    """Return how many layers a model of one stack has.

    Raises:
        RegardError: its config does not say.
    """
    count = getattr(model.model.config, "num_hidden_layers", None) or getattr(model.model.config, "layers", None)
    if not isinstance(count, int):
        raise RegardError(f"model {model.name!r}: its config does not say how many layers it has")
    return count


def count_heads(model: "Model") -> int:
    """Return how many query heads a layer of a model has: of the layer with most."""
    config = model.model.config
    given = next(
        (each for name in ("num_attention_heads", "n_head", "heads") if (each := getattr(config, name, None))), 0
    )
    return max(given) if isinstance(given, (list, tuple)) else int(given)


def state_width(model: "Model") -> int:
    """Return the width M of a model's states."""
    return int(model.model.config.hidden_size)


def window_batches_by_length(lengths: Sequence[int], most: int | None = None) -> Iterator[list[int]]:
    """Yield numbers of windows of one length, as many as make BATCH_TOKENS, in a fixed order: the shortest first.

    most: how many windows a batch may have, None for any number.
    """
    by_length: dict[int, list[int]] = {}
    for number, length in enumerate(lengths):
        by_length.setdefault(length, []).append(number)
    for length in sorted(by_length):
        alike, step = by_length[length], max(1, BATCH_TOKENS // length)
        step = step if most is None else min(step, most)
        for first in range(0, len(alike), step):
            yield alike[first : first + step]
