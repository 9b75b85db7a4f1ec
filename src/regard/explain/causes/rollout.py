"""Attention rollout: how much of each input token has reached a token, if attention were all that mixes them.

    rollout = Ã_n · … · Ã_1 · Ã_0,  Ã_l = 0.5 A_l + 0.5 I

A_l is the mean of the layer's heads, I the residual connection (Abnar & Zuidema 2020, "Quantifying Attention Flow in
Transformers"). It knows nothing of value vectors; see contributions for what does. Of a decoder that reads an
encoder it follows the target's own tokens and nothing else: what comes in through cross-attention is not in it.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import RegardError
from regard.explain.weights.attended import check_heads
from regard.explain.wording import Place, refuse_pairs, tokens_of
from regard.trace.trace import Trace

BAND = 1 << 22  # weights that are in memory at once


def rollout(
    trace: Trace, places: Sequence[Place] | None = None, *, layer: int | None = None
) -> Float[Tensor, "places S"]:
    """Compute for each place the part of every input token in it after a layer (default: the last), in float64.

    places: words, occurrences or token numbers, None for every token; a word's row is the mean over its tokens. A row
    sums to 1, or to less where sinks take attention away. Memory is O(places × S) beside one band of weights.

    Raises:
        RegardError: no such word, token or layer, or the maps are not square (cross-attention).
    """
    refuse_pairs(trace)
    layer, _ = check_heads(trace, layer, None)
    maps = trace.attention[: None if layer is None else layer + 1]
    length = len(trace.tokens)
    for number, weights in enumerate(maps):
        if weights.shape[1:] != (length, length):
            raise RegardError(
                f"rollout: the map of layer {number} is {weights.shape[1]} × {weights.shape[2]} for {length} tokens; "
                "it needs self-attention, where queries and keys are of one text"
            )
    wanted = [tokens_of(trace, place) for place in (range(length) if places is None else places)]
    rows = torch.zeros(len(wanted), length, dtype=torch.float64, device=maps[0].device)
    for row, tokens in zip(rows, wanted, strict=True):
        row[tokens] = 1 / len(tokens)
    # From the top down: rows @ (product of layers) needs only as many rows as were asked for, and a layer's matrix only
    # a band of its rows at a time.
    for weights in reversed(maps):
        reached = rows.any(0).nonzero()[:, 0]  # the others are not computed; under a causal mask these are few
        mixed = torch.zeros_like(rows)
        for band in reached.split(max(1, BAND // (weights.shape[0] * length))):
            mixed += rows[:, band] @ weights[:, band].mean(0).double()
        rows = 0.5 * rows + 0.5 * mixed
    return rows
