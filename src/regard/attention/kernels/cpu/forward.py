"""The blockwise forward on CPUs: about half the time of PyTorch's fused kernel where oneDNN's products beat MKL's.

Tiles as in Dao et al. 2022, "FlashAttention", with the running (max, sum) of Milakov & Gimelshein 2018.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.scores import ScoreRule

DTYPES = (torch.float32, torch.bfloat16, torch.float16)


class Forward(NamedTuple):
    """What the forward computes. (top, total) is a row's normaliser: a weight is exp(score - top) / total."""

    output: Float[Tensor, "B H L E"]
    logsumexp: Float[Tensor, "B H L"]
    top: Float[Tensor, "B H L"]
    total: Float[Tensor, "B H L"]


def fits(query: Tensor, key: Tensor, value: Tensor, rule: ScoreRule, dropout: float = 0.0) -> bool:
    """Whether this path computes such a call at all: on a CPU, up to float32, no dropout, nothing empty."""
    if query.device.type != "cpu" or query.dtype not in DTYPES or dropout > 0 or torch.compiler.is_compiling():
        return False
    return 0 not in query.shape and 0 not in key.shape and value.shape[-1] > 0


def attend(
    query: Float[Tensor, "B H L D"], key: Float[Tensor, "B G S D"], value: Float[Tensor, "B G S E"], rule: ScoreRule
) -> tuple[Float[Tensor, "B H L E"], Float[Tensor, "B H L"]]:
    """Output, and logsumexp in float32 (output 0 where a query may attend to nothing). No gradients."""
    return forward(query, key, value, rule)[:2]


def forward(
    query: Float[Tensor, "B H L D"], key: Float[Tensor, "B G S D"], value: Float[Tensor, "B G S E"], rule: ScoreRule
) -> Forward:
    """The same, with each row's normaliser: the only form in which scores of thousands keep their precision."""
    # numba is loaded, and the passes compiled, when they are first needed
    from regard.attention.kernels import threads
    from regard.attention.kernels.cpu.tiles import spans
    from regard.attention.kernels.matmul import product

    query, key, value, rule = query.detach(), key.detach(), value.detach(), rule.detached()
    batch, heads, length = query.shape[:3]
    multiply = product()
    result = Forward(
        query.new_empty(batch, heads, length, value.shape[-1]),
        *(torch.empty(batch, heads, length) for _ in range(3)),
    )

    def task(b: int, h: int, start: int, stop: int) -> None:
        _rows(query, key, value, rule, b, h, start, stop, multiply, result)

    parts = spans(batch * heads, length, threads.count())
    threads.run(
        [
            lambda b=b, h=h, start=start, stop=stop: task(b, h, start, stop)  # type: ignore[misc]
            for b in range(batch)
            for h in range(heads)
            for start, stop in reversed(parts)  # where a band makes them unequal, the last is the longest
        ]
    )
    return result


def _rows(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    rule: ScoreRule,
    b: int,
    h: int,
    start: int,
    stop: int,
    multiply: Callable[[Tensor, Tensor], Tensor],
    result: Forward,
) -> None:
    """One task: queries [start, stop) of one head, a block of rows after another, each against all its keys."""
    from regard.attention.kernels.cpu import online_softmax, tiles

    head = tiles.Head.of(query, key, rule, b, h, multiply)
    v = tiles.single(value[b, h // (query.shape[1] // key.shape[1])])  # (S, E)
    sink = np.float32(-np.inf if rule.sinks is None else rule.sinks[h].item())
    width = v.shape[1]
    for first in range(start, stop, tiles.ROWS):
        last = min(first + tiles.ROWS, stop)
        spot = b, h, slice(first, last)
        top, total, logsumexp = (t[spot].numpy() for t in (result.top, result.total, result.logsumexp))
        top.fill(np.finfo(np.float32).min)
        total.fill(0.0)
        mixed = np.zeros((last - first, width), np.float32)
        pending, fresh = mixed, True
        for tile in head.tiles(first, last):
            online_softmax.absorb(tile.scores.numpy(), tile.low, tile.high, top, total, mixed, pending, fresh)
            pending = multiply(tile.scores, v[tile.start : tile.stop].t()).numpy()
            fresh = False
        if fresh:
            pending = np.zeros_like(mixed)
        plain = result.output.dtype == torch.float32
        output = result.output[spot].numpy() if plain else np.empty_like(mixed)
        online_softmax.finish(mixed, pending, top, total, sink, output, logsumexp)
        if not plain:
            result.output[spot].copy_(torch.from_numpy(output))
