"""Compute the score tiles of one head in the order in which worker threads use them.

A band (causal, sliding window) isn't written into the scores of a tile. It only limits the columns of each row, so the
common case has no extra cost.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.kernels.matmul import Product
from regard.attention.scores import ScoreRule

ROWS, COLS = 512, 1024  # a tile of 2 MiB: fastest among 128 to 1024 rows and 256 to 4096 columns
TASKS_PER_WORKER = 4  # tasks per worker if heads don't divide evenly
BLOCKS, MIN_BLOCK_ROWS = 16, 256  # row blocks: enough in a short call to keep several workers busy; smallest size
OPEN = 1 << 40  # a column limit that has no effect


@dataclass(frozen=True, eq=False)
class Tile:
    """Scores of some queries (rows) and keys (columns). Row r may use columns [low + r, high + r)."""

    scores: Float[Tensor, "r c"]
    start: int
    stop: int
    low: int
    high: int


@dataclass(frozen=True, eq=False)
class HeadTiles:
    """One query head of one text: query (L, D), and key (S, D) as contiguous float32 for oneDNN's product."""

    query: Float[Tensor, "L D"]
    key: Float[Tensor, "S D"]
    rule: ScoreRule
    batch: int
    head: int
    product: Product

    @staticmethod
    def of(query: Tensor, key: Tensor, rule: ScoreRule, batch: int, head: int, product: Product) -> "HeadTiles":
        """Return the score tiles of one head of an attention call."""
        group = head // (query.shape[1] // key.shape[1])
        return HeadTiles(query[batch, head], contiguous_float32_rows(key[batch, group]), rule, batch, head, product)

    def reach(self, start: int, stop: int) -> tuple[int, int]:
        """Return the keys [first, last) that the band allows for queries [start, stop)."""
        mask, size = self.rule.mask, self.key.shape[0]
        return (0, size) if mask is None else mask.key_range(start, stop, size)

    def tiles(self, start: int, stop: int, keys: tuple[int, int] | None = None) -> Iterator[Tile]:
        """Yield the tiles of queries [start, stop) in order. keys: (first, last), by default all in the band."""
        query = self.query[start:stop].float() * self.rule.scale
        query = query.contiguous()
        first, last = keys or self.reach(start, stop)
        for begin in range(first, last, COLS):
            end = min(begin + COLS, last)
            scores = self.product(query, self.key[begin:end].float())
            self.apply(scores, slice(start, stop), slice(begin, end))
            yield Tile(scores, begin, end, *self.band(start, begin))

    def band(self, start: int, begin: int) -> tuple[int, int]:
        """Return (low, high): query start + r may use columns [low + r, high + r), counted from key `begin`."""
        mask = self.rule.mask
        low = -OPEN if mask is None or mask.low is None else start + mask.low - begin
        high = OPEN if mask is None or mask.high is None else start + mask.high - begin + 1
        return low, high

    def apply(self, scores: Tensor, rows: slice, cols: slice) -> None:
        """Apply softcap, bias and all mask conditions except the band to scores, in place."""
        rule = self.rule
        if rule.softcap is not None:
            scores.div_(rule.softcap).tanh_().mul_(rule.softcap)
        batch, heads = slice(self.batch, self.batch + 1), slice(self.head, self.head + 1)
        if rule.bias is not None:
            scores.add_(rule.tile_bias(batch, heads, rows, cols, torch.float32)[0, 0])
        if rule.mask is not None and not rule.mask.only_band:
            without_band = replace(rule.mask, low=None, high=None)
            allowed = without_band.tile(batch, heads, rows, cols, scores.device)
            if allowed is not None:
                scores.masked_fill_(~allowed[0, 0], -torch.inf)


def contiguous_float32_rows(tensor: Float[Tensor, "n x"]) -> Float[Tensor, "n x"]:
    """Return the rows as contiguous float32. Copies only if needed."""
    return tensor.float().contiguous()


def rows_per_tile_block(lines: int, length: int) -> int:
    """Return the rows per block. It depends only on the call, because the rounding may depend on it."""
    return max(min(MIN_BLOCK_ROWS, ROWS), min(ROWS, -(-lines * length // (BLOCKS * MIN_BLOCK_ROWS)) * MIN_BLOCK_ROWS))


def split_into_thread_tasks(lines: int, length: int, threads: int) -> list[tuple[int, int]]:
    """Split the queries of each of `lines` heads into tasks (start, stop) of whole blocks that end at similar times."""
    tasks = 1 if lines % threads == 0 else -(-TASKS_PER_WORKER * threads // lines)
    block = rows_per_tile_block(lines, length)
    step = -(-length // (tasks * block)) * block
    return [(start, min(start + step, length)) for start in range(0, length, step)]
