"""Run many windows of token ids through a model, in batches of one length, and give what of each pass is asked for.

Windows of one length need no padding, so that a window's numbers do not depend on what else was in its batch beyond
the rounding of products of other shapes. Batches that are small stand side by side in one row of tokens, where the
model gives the same for them: all of it but attention works token by token, and attention is computed within each.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.capture.build_trace import check_finite, check_length
from regard.capture.options import NO_LAYERS, CaptureOptions, WindowsError
from regard.checks import from_zero
from regard.errors import RegardError
from regard.text.tokens import Encoded, encoded_ids

if TYPE_CHECKING:
    from regard.models.model import Model

BATCH_TOKENS = 2048  # measured with MiniLM: 512 and 4096 are slower
SAME = 1e-5  # how far states of windows side by side may be from those of windows apart, as a part of the largest


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
    most = 1 if session.reports_weights else None
    reading = _Reading(model, windows, layers, keep, attention)
    for pack in _packs([len(window.ids) for window in windows], most):
        # nothing of a pass is held here while the next one runs
        yield from reading.in_one_row(pack)


@dataclass(frozen=True, eq=False)
class _Reading:
    """What is read of windows: the states of some layers and, if attention, the maps of all."""

    model: "Model"
    windows: Sequence[Window]
    layers: Sequence[int]
    keep: CaptureOptions
    attention: bool

    def in_one_row(self, pack: Sequence[list[int]]) -> Iterator[StateBatch]:
        """Read batches of one length each: all in one row where the model's windows may be, else one by one.

        Position-wise maps of many tokens take less time each. Whether a model gives the same for windows side by side
        is found out on the first ones, which are read both ways.
        """
        session = self.model._session
        with session.alone():
            index = session.index  # of the model as it is now
        together: list[StateBatch] = []
        whole = session.model.dtype.itemsize >= torch.float32.itemsize
        if len(pack) > 1 and whole and index.packs is not False and "position_ids" in session.takes:
            try:
                together = self.read(pack)
            except WindowsError:
                index.packs = False
            except Exception:  # families raise whatever they run into, such as more tokens than they have positions for
                pass
        separate: Iterator[StateBatch] = (text for batch in pack for text in self.read([batch]))
        if together and index.packs is None:
            alone = list(separate)
            pairs = [(one.states, other.states) for one, other in zip(together, alone, strict=True)]
            index.packs = all(bool((a - b).abs().max() <= SAME * b.abs().max()) for a, b in pairs)
            separate = iter(alone)
        yield from together if index.packs and together else separate

    def read(self, pack: Sequence[list[int]]) -> list[StateBatch]:
        """Make one pass of batches of one length each, several of them side by side in one row."""
        model, windows, depth = self.model, self.windows, count_layers(self.model)
        texts = [replace(encoded_ids(windows[n].ids), segments=windows[n].segments) for batch in pack for n in batch]
        keep = self.keep
        if len(pack) > 1:
            keep = replace(keep, windows=tuple((len(batch), len(windows[batch[0]].ids)) for batch in pack))
            segments = None
            if all(text.segments is not None for text in texts):
                segments = tuple(number for text in texts for number in text.segments or ())
            texts = [Encoded("", tuple(token for text in texts for token in text.tokens), segments, (), ())]
        done = model._session.run(texts, None, [()] * len(texts), keep)
        stack = max(done.stacks.values(), key=lambda states: states.count, default=None)
        if stack is None:
            raise RegardError(f"model {model.name!r}: no stack of layers was found around its attention")
        check_length(done, stack, texts)
        states = stack.numbered
        states[depth] = done.capture.last.get("last_hidden_state", states[depth])
        check_finite({layer + 1: states[layer + 1] for layer in self.layers}, model.name)
        maps: list[AttentionMap] = []
        if self.attention:
            made = [stack.calls[call.path, call.nth] for call in done.calls if (call.path, call.nth) in stack.calls]
            if made != [layer for layer in range(depth) for _ in pack]:
                raise RegardError(
                    f"statistics: the layers of {model.name} make {len(made)} attention calls, needs one in each "
                    f"of its {depth}; leave the statistics out"
                )
            maps = [call.weights for call in done.calls if (call.path, call.nth) in stack.calls]
        wanted = [states[layer + 1] for layer in self.layers]
        if len(pack) == 1:
            return [StateBatch(pack[0], torch.stack(wanted, 1), maps)]
        batches, place = [], 0
        for number, (batch, (count, size)) in enumerate(zip(pack, keep.windows, strict=True)):
            run = slice(place, place := place + count * size)
            of_run = torch.stack([states[0, run].unflatten(0, (count, size)) for states in wanted], 1)
            batches.append(StateBatch(batch, of_run, maps[number :: len(pack)]))
        return batches


def _packs(lengths: Sequence[int], most: int | None) -> Iterator[list[list[int]]]:
    """Yield batches of one length each, several that make BATCH_TOKENS together, in a fixed order."""
    pack: list[list[int]] = []
    tokens = 0
    for batch in window_batches_by_length(lengths, most):
        cost = len(batch) * lengths[batch[0]]
        if pack and (most is not None or tokens + cost > BATCH_TOKENS):
            yield pack
            pack, tokens = [], 0
        pack.append(batch)
        tokens += cost
    if pack:
        yield pack


def count_layers(model: "Model") -> int:
    """Return how many layers a model with a single stack has."""
    config = model._session.original.config
    count = getattr(config, "num_hidden_layers", None) or getattr(config, "layers", None)
    if not isinstance(count, int):
        raise RegardError(f"model {model.name!r}: its config does not say how many layers it has")
    return count


def count_heads(model: "Model") -> int:
    """Return how many query heads a layer of a model has: of the layer with most."""
    config = model._session.original.config
    count = next(
        (number for name in ("num_attention_heads", "n_head", "heads") if (number := getattr(config, name, None))), 0
    )
    return max(count) if isinstance(count, (list, tuple)) else int(count)


def state_width(model: "Model") -> int:
    """Return the width M of a model's states."""
    return int(model._session.original.config.hidden_size)


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
