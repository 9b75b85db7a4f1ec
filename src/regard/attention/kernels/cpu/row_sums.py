"""Row maxima and row sums of a few queries over many keys: a region needs them before its first weight can be read."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.kernels import threads
from regard.attention.kernels.cpu import fixed_order, online_softmax, tiles
from regard.attention.scores import ScoreRule

SHARE = 8  # tasks for each worker: the caller waits for the slowest


def threaded_row_max_sum(
    query: Float[Tensor, "B H L D"],
    key: Float[Tensor, "B G S D"],
    rule: ScoreRule,
    batch: int,
    head: int,
    start: int,
    stop: int,
) -> tuple[Float[Tensor, " r"], Float[Tensor, " r"]]:
    """Compute (row maximum, row sum) of queries [start, stop) of one head, in float32. Their keys are shared out.

    The product is the one that regions are read by: the row sums are of the very scores, bit for bit, that weights come
    from.

    Args:
        query, key, rule: of the whole call, as `dispatch.compute` takes them.
        batch, head: the numbers of the text and of its query head.
        start, stop: the first query, and the one after the last.
    """
    group = head // (query.shape[1] // key.shape[1])
    q, k = query[batch, head].detach(), key[batch, group].detach()
    one = tiles.Head(q, k, rule.detached(), batch, head, fixed_order.product)
    first, last = one.reach(start, stop)
    step = tiles.COLS * max(1, (last - first) // (tiles.COLS * SHARE * threads.worker_thread_count()))

    def part(begin: int) -> tuple[np.ndarray, np.ndarray]:
        row_max = np.full(stop - start, np.finfo(np.float32).min, np.float32)
        row_sum = np.zeros(stop - start, np.float32)
        for tile in one.tiles(start, stop, (begin, min(begin + step, last))):
            online_softmax.update_tile_row_sums(tile.scores.numpy(), tile.low, tile.high, row_max, row_sum)
        return row_max, row_sum

    parts = threads.run_on_worker_threads([lambda begin=begin: part(begin) for begin in range(first, last, step)])  # type: ignore[misc]
    row_max, row_sum = part(last) if not parts else parts[0]
    with np.errstate(all="ignore"):  # infinite scores make NaN here as they do everywhere
        for part_max, part_sum in parts[1:]:
            new_max = np.maximum(row_max, part_max)
            row_sum = row_sum * np.exp(row_max - new_max) + part_sum * np.exp(part_max - new_max)
            row_max = new_max
    online_softmax.add_sink(row_max, row_sum, np.float32(-np.inf if rule.sinks is None else rule.sinks[head].item()))
    return torch.from_numpy(row_max), torch.from_numpy(row_sum)
