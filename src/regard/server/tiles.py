"""Serve one attention matrix of any size as tiles: exact means of 2^z × 2^z weights, from all to single ones.

One pass over the matrix keeps the means of CELL × CELL weights, and from them those of 2, 4, 8, … times as many; finer
tiles are computed when they are asked for, at most 128 · CELL/2 queries and keys at a time. What is kept is 4 bytes for
each CELL² weights of a head: 39 MB at 100,000 tokens.
"""

import threading
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor
from torch.nn import functional

from regard.attention.attention_map import AttentionMap
from regard.attention.head_map import one_head
from regard.attention.masks import padding
from regard.server.work import RefusedError

SIDE = 128  # cells of a tile each way, as in web/src/map/pyramid.ts
FINEST = 5  # the finest level that is kept: cells of 2^FINEST weights each way
CELL = 1 << FINEST
ROWS = 1 << 24  # weights of a band, where the pass goes band by band
BAND = 2048  # queries whose row sums are computed at once

Progress = Callable[[float], None]
Means = Float32[np.ndarray, "_ _"]


class ZoomMap:
    """The map (H, L, S) of one call. Regions may be asked for from several threads."""

    def __init__(self, weights: AttentionMap) -> None:
        self.weights = weights
        self.heads, self.length, self.keys = weights.shape
        self._each = [one_head(weights, head) for head in range(self.heads)]  # each keeps its own row sums
        self._levels: list[list[Means]] = []  # of each head that is known, from FINEST on
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """The bytes that it takes, its kept means included."""
        cells = self.heads * -(-self.length // CELL) * -(-self.keys // CELL)
        return (
            sum(each.numel() * each.element_size() for each in (self.weights.query, self.weights.key)) + cells * 16 // 3
        )

    @property
    def _top(self) -> int:
        """The coarsest level: the whole matrix in one tile, but no finer than what is kept."""
        return max(FINEST, (max(self.length, self.keys) - 1).bit_length() - (SIDE - 1).bit_length())

    @property
    def ready(self) -> bool:
        """Whether the pass was made."""
        return len(self._levels) == self.heads

    def prepare(self, progress: Progress) -> None:
        """Make the pass over all heads; what is there of a pass that was stopped is not computed again.

        progress: told the share that was just done; what it raises stops the pass.
        """
        with self._lock:
            for head in range(len(self._levels), self.heads):
                for start in range(0, self.length, BAND):  # row sums, which the map keeps: tiles do not wait for them
                    stop = min(self.length, start + BAND)
                    self._each[head][0, start:stop, :1]
                    progress((stop - start) / self.length / self.heads / 2)
                finest = _means(self._each[head], lambda share: progress(share / self.heads / 2))
                self._levels.append(_pyramid(finest, self.length, self.keys))

    def tile(self, head: int | None, level: int, row: int, col: int) -> Float32[np.ndarray, "s s"]:
        """The means of a tile's cells, SIDE × SIDE; cells where there are no weights are 0. head: None for their mean.

        Raises:
            RefusedError: there is no such tile, or the pass was not made.
        """
        cell, heads = 1 << level, range(self.heads) if head is None else [head]
        if not 0 <= row * SIDE * cell < self.length or not 0 <= col * SIDE * cell < self.keys:
            raise RefusedError(
                404, f"tile {level}/{row}/{col}: the matrix of {self.length} × {self.keys} has no such tile"
            )
        if head is not None and not 0 <= head < self.heads:
            raise RefusedError(404, f"head: given {head}, there are {self.heads}")
        if level > self._top:
            raise RefusedError(404, f"level: given {level}, the coarsest is {self._top}")
        if not self.ready:
            raise RefusedError(409, "the pass over this matrix was not made: ask for it first")
        found = np.zeros((SIDE, SIDE), np.float32)
        rows, cols = slice(row * SIDE, (row + 1) * SIDE), slice(col * SIDE, (col + 1) * SIDE)
        for each in heads:
            part = self._kept(each, level, rows, cols) if level >= FINEST else self._region(each, cell, rows, cols)
            found[: part.shape[0], : part.shape[1]] += part
        return found / len(heads)

    def row(self, head: int | None, query: int) -> Float32[np.ndarray, " S"]:
        """What a query gives to every key. Raises RefusedError where there is no such query."""
        if not 0 <= query < self.length:
            raise RefusedError(404, f"query: given {query}, there are {self.length}")
        return self._mean(head, lambda each: each[0, query : query + 1, :][0])

    def column(self, head: int | None, key: int) -> Float32[np.ndarray, " L"]:
        """What a key gets from every query. Raises RefusedError where there is no such key."""
        if not 0 <= key < self.keys:
            raise RefusedError(404, f"key: given {key}, there are {self.keys}")
        return self._mean(head, lambda each: each[0, :, key : key + 1][:, 0])

    def _mean(self, head: int | None, read: Callable[[AttentionMap], Tensor]) -> Float32[np.ndarray, " n"]:
        if head is not None and not 0 <= head < self.heads:
            raise RefusedError(404, f"head: given {head}, there are {self.heads}")
        heads = range(self.heads) if head is None else [head]
        return (sum(read(self._each[each]).float() for each in heads) / len(heads)).numpy()  # type: ignore[union-attr]

    def _kept(self, head: int, level: int, rows: slice, cols: slice) -> Means:
        return self._levels[head][level - FINEST][rows, cols]

    def _region(self, head: int, cell: int, rows: slice, cols: slice) -> Means:
        top, bottom = rows.start * cell, min(self.length, rows.stop * cell)
        left, right = cols.start * cell, min(self.keys, cols.stop * cell)
        return _cells(self._each[head][0, top:bottom, left:right], cell).numpy()


def _means(weights: AttentionMap, progress: Progress) -> Means:
    """The means of CELL × CELL weights of one head's map (1, L, S), those at the ends of as many as there are."""
    whole = _padded(weights)
    if whole is None:
        return _band_by_band(weights, progress)
    _, length, size = weights.shape
    rows, cols = -(-length // CELL), -(-size // CELL)
    means = whole.pooled(rows, cols, progress)[0].float()
    last = size - (cols - 1) * CELL  # keys that the last column has
    means[:, -1] *= CELL / last
    if length % CELL:  # the queries that were added have weights too: the last row is of the others alone
        means[-1] = _cells(weights[0, (rows - 1) * CELL :, :], CELL)[0]
    return means.numpy()


def _padded(weights: AttentionMap) -> AttentionMap | None:
    """The map with so many queries and keys that every cell is whole; None where its rule cannot be made longer.

    Its row sums go with it, so that the means take one walk over the scores; those that are added are found to be
    wrong, and computed, by the walk itself.
    """
    rule, (_, length, size) = weights.rule, weights.shape
    mask = None if rule.mask is None else rule.mask.simplified(length, size)
    if rule.bias is not None or (mask is not None and not mask.only_band):
        return None
    more, wider = -length % CELL, -size % CELL
    query, key = (functional.pad(each, (0, 0, 0, n)) for each, n in ((weights.query, more), (weights.key, wider)))
    if wider:
        exist = torch.ones(1, size + wider, dtype=torch.bool)
        exist[:, size:] = False
        mask = padding(exist) if mask is None else mask & padding(exist)
    row_max, row_sum = (functional.pad(each[None].float(), (0, more)) for each in weights.row_max_sum())
    rule = replace(rule, mask=mask)
    return AttentionMap(query, key, rule, offset=weights.offset, ndim=3, row_max_sum=(row_max, row_sum))


def _band_by_band(weights: AttentionMap, progress: Progress) -> Means:
    """The same for any rule: whole rows are read, CELL of them and more at a time."""
    _, length, size = weights.shape
    found, step = [], max(1, ROWS // size // CELL) * CELL
    for start in range(0, length, step):
        stop = min(length, start + step)
        found.append(_cells(weights[0, start:stop, :], CELL))
        progress((stop - start) / length)
    return torch.cat(found).numpy()


def _cells(region: Float32[Tensor, "r c"], cell: int) -> Float32[Tensor, "rows cols"]:
    """The means of cell × cell weights, those at the ends of as many as there are."""
    if cell == 1:
        return region.float()
    return _shrunk(_shrunk(region.float(), cell).mT, cell).mT.contiguous()


def _shrunk(numbers: Float32[Tensor, "r c"], cell: int) -> Float32[Tensor, "rows c"]:
    whole = numbers.shape[0] // cell * cell
    parts = [numbers[:whole].reshape(-1, cell, numbers.shape[1]).mean(1)]
    return torch.cat(parts + ([numbers[whole:].mean(0, keepdim=True)] if whole < len(numbers) else []))


def _pyramid(finest: Means, length: int, size: int) -> list[Means]:
    """Means of twice, four times, … as many weights each way, until a tile has all; a cell counts by its weights."""
    levels, cell = [finest], CELL
    while max(levels[-1].shape) > SIDE:
        means = levels[-1].astype(np.float64)
        down = np.minimum(cell, length - cell * np.arange(means.shape[0]))[:, None]
        across = np.minimum(cell, size - cell * np.arange(means.shape[1]))[None]
        sums = _pairs(_pairs(means * down * across).T).T
        levels.append((sums / (_pairs(down) * _pairs(across.T).T)).astype(np.float32))
        cell *= 2
    return levels


def _pairs(numbers: np.ndarray) -> np.ndarray:
    """Add neighbours up, two rows to one."""
    return np.add.reduceat(numbers, np.arange(0, len(numbers), 2), axis=0)
