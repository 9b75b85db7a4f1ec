"""A few queries' (max, sum) over many keys: what a region of the matrix needs before its first weight can be read."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.kernels import threads
from regard.attention.kernels.cpu import fixed_order, online_softmax, tiles
from regard.attention.scores import ScoreRule

SHARE = 8  # tasks for each worker: the caller waits for the slowest


def rows(
    query: Float[Tensor, "B H L D"],
    key: Float[Tensor, "B G S D"],
    rule: ScoreRule,
    batch: int,
    head: int,
    start: int,
    stop: int,
) -> tuple[Float[Tensor, " r"], Float[Tensor, " r"]]:
    """What `tiles.normaliser` gives for queries [start, stop) of one head, in float32. Their keys are shared out.

    The product is the one that regions are read by: a normaliser is of the very scores, bit for bit, that weights come
    from.
    """
    group = head // (query.shape[1] // key.shape[1])
    q, k = query[batch, head].detach(), key[batch, group].detach()
    one = tiles.Head(q, k, rule.detached(), batch, head, fixed_order.product)
    first, last = one.reach(start, stop)
    step = tiles.COLS * max(1, (last - first) // (tiles.COLS * SHARE * threads.count()))

    def part(begin: int) -> tuple[np.ndarray, np.ndarray]:
        top = np.full(stop - start, np.finfo(np.float32).min, np.float32)
        total = np.zeros(stop - start, np.float32)
        for tile in one.tiles(start, stop, (begin, min(begin + step, last))):
            online_softmax.gauge(tile.scores.numpy(), tile.low, tile.high, top, total)
        return top, total

    parts = threads.run([lambda begin=begin: part(begin) for begin in range(first, last, step)])  # type: ignore[misc]
    top, total = part(last) if not parts else parts[0]
    with np.errstate(all="ignore"):  # infinite scores make NaN here as they do everywhere
        for more, extra in parts[1:]:
            new = np.maximum(top, more)
            total = total * np.exp(top - new) + extra * np.exp(more - new)
            top = new
    online_softmax.settle(top, total, np.float32(-np.inf if rule.sinks is None else rule.sinks[head].item()))
    return torch.from_numpy(top), torch.from_numpy(total)
