"""Cache the pages of traces up to a size, and compute their attention matrices in tiles on request.

The tiles of a matrix of any size have exact means of 2^z × 2^z weights, down to single weights. A single pass over the
matrix stores the means of 32 × 32 weights per head, and computes coarser means from them. For the mean of heads, whose
finer tiles would need all heads, it also stores the means of 16 × 16 weights. Finer tiles are computed on request. At
100,000 tokens, this takes 52 MB per head, and 156 MB for the mean of heads.
"""

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float32
from starlette.exceptions import HTTPException
from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.attention.given_map import one_head
from regard.server.cell_means import CELL, cell_means, region_cell_means
from regard.web.page import Page

if TYPE_CHECKING:
    from regard.server.corpora import PanelOccurrences


SIDE = 128  # cells per side of a tile, as in web/src/map/pyramid.ts
PASS = CELL.bit_length() - 1  # the level that the pass computes: a cell has 2^PASS × 2^PASS weights
FINEST = PASS + 1  # the finest stored level of a head

Progress = Callable[[float], None]
Means = Float32[np.ndarray, "_ _"]


class ZoomMap:
    """The attention matrix (H, L, S) of a call. Several threads can read its tiles."""

    def __init__(self, weights: AttentionMap) -> None:
        self.weights = weights
        self.heads, self.length, self.keys = weights.shape
        self._maps = [one_head(weights, head) for head in range(self.heads)]  # each caches its row sums
        self._levels: list[list[Means]] = []  # cell means of finished heads by level, from FINEST
        self._current_means: Means = np.zeros((0, 0), np.float32)  # level FINEST of the current head
        self._next_query = 0  # the query where the pass continues
        self._sum_of_heads: Means = np.zeros((0, 0), np.float32)  # the sum of all heads at level PASS
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """Return the size of queries, keys and cell means in bytes."""
        cells = -(-self.length // CELL) * -(-self.keys // CELL)
        numbers = sum(tensor.numel() * tensor.element_size() for tensor in (self.weights.query, self.weights.key))
        return numbers + 4 * cells + self.heads * cells * 4 // 3

    @property
    def _coarsest(self) -> int:
        """Return the coarsest level: one tile for the whole matrix, but no finer than FINEST."""
        return max(FINEST, (max(self.length, self.keys) - 1).bit_length() - (SIDE - 1).bit_length())

    @property
    def ready(self) -> bool:
        """Return whether the pass over all heads is complete."""
        return len(self._levels) == self.heads

    @property
    def done(self) -> float:
        """Return the completed fraction of the pass."""
        return (len(self._levels) + self._next_query / self.length) / self.heads

    def prepare(self, progress: Progress) -> None:
        """Compute the cell means of all heads. Continues a pass that was stopped.

        progress: called with each newly completed fraction. If it raises an error, the pass stops.
        """
        with self._lock:
            if not self._sum_of_heads.size:
                self._sum_of_heads = np.zeros((-(-self.length // CELL), -(-self.keys // CELL)), np.float32)
            while not self.ready:
                self._compute_means(len(self._levels), progress)

    def _compute_means(self, head: int, progress: Progress) -> None:
        """Compute the cell means of a head, starting at the query where the pass was stopped."""
        if self._next_query == 0:
            self._current_means = np.zeros([-(-cells // 2) for cells in self._sum_of_heads.shape], np.float32)
        bands = cell_means(self._maps[head], self._next_query) if self._next_query < self.length else ()
        for first, band in bands:
            self._next_query = min(self.length, first + len(band) * CELL)
            row, means = first // CELL, band.float().numpy()
            self._sum_of_heads[row : row + len(means)] += means
            coarser = _coarser_tile_means(means, CELL, self._next_query - first, self.keys)
            self._current_means[row // 2 : row // 2 + len(coarser)] = coarser
            progress((self._next_query - first) / self.length / self.heads)
        levels, cell = [self._current_means], 1 << FINEST
        while max(levels[-1].shape) > SIDE:
            levels.append(_coarser_tile_means(levels[-1], cell, self.length, self.keys))
            cell *= 2
        self._levels.append(levels)
        self._next_query = 0

    def tile(self, head: int | None, level: int, row: int, col: int) -> Float32[np.ndarray, "s s"]:
        """Return a tile of SIDE × SIDE cell means, 0 in cells without weights. head: None for the mean of heads.

        level: a cell has 2^level × 2^level weights. row, col: the tile's position, from 0.
        """
        self.check_tile(head, level, row, col)
        cell, heads = 1 << level, self._checked_heads(head)
        if not self.ready:
            raise HTTPException(409, "the pass over this matrix was not made: ask for it first")
        means = np.zeros((SIDE, SIDE), np.float32)
        rows, cols = slice(row * SIDE, (row + 1) * SIDE), slice(col * SIDE, (col + 1) * SIDE)
        if head is None and level == PASS:
            part = self._sum_of_heads[rows, cols]
            means[: part.shape[0], : part.shape[1]] = part
            return means / self.heads
        for index in heads:
            part = self._stored(index, level, rows, cols) if level >= FINEST else self._region(index, cell, rows, cols)
            means[: part.shape[0], : part.shape[1]] += part
        return means / len(heads)

    def check_tile(self, head: int | None, level: int, row: int, col: int) -> None:
        """Check that a tile exists. Raises HTTPException if it doesn't."""
        cell = 1 << level
        if not 0 <= row * SIDE * cell < self.length or not 0 <= col * SIDE * cell < self.keys:
            raise HTTPException(
                404, f"tile {level}/{row}/{col}: the matrix of {self.length} × {self.keys} has no such tile"
            )
        self._checked_heads(head)
        if level > self._coarsest:
            raise HTTPException(404, f"level: got {level}, but the coarsest is {self._coarsest}")

    def row(self, head: int | None, query: int) -> Float32[np.ndarray, " S"]:
        """Return the weights from a query to every key. Raises HTTPException if the query doesn't exist."""
        if not 0 <= query < self.length:
            raise HTTPException(404, f"query: got {query}, but there are {self.length}")
        return self._mean_over_heads(head, lambda weights: weights[0, query : query + 1, :][0])

    def column(self, head: int | None, key: int) -> Float32[np.ndarray, " L"]:
        """Return the weights from every query to a key. Raises HTTPException if the key doesn't exist."""
        if not 0 <= key < self.keys:
            raise HTTPException(404, f"key: got {key}, but there are {self.keys}")
        return self._mean_over_heads(head, lambda weights: weights[0, :, key : key + 1][:, 0])

    def _mean_over_heads(self, head: int | None, read: Callable[[AttentionMap], Tensor]) -> Float32[np.ndarray, " n"]:
        heads = self._checked_heads(head)
        return (sum(read(self._maps[index]).float() for index in heads) / len(heads)).numpy()  # type: ignore[union-attr]

    def _checked_heads(self, head: int | None) -> Sequence[int]:
        """Return the head in a list, or all heads for None. Raises HTTPException if the head doesn't exist."""
        if head is not None and not 0 <= head < self.heads:
            raise HTTPException(404, f"head: got {head}, but there are {self.heads}")
        return range(self.heads) if head is None else [head]

    def _stored(self, head: int, level: int, rows: slice, cols: slice) -> Means:
        """Return stored cell means of a head."""
        return self._levels[head][level - FINEST][rows, cols]

    def _region(self, head: int, cell: int, rows: slice, cols: slice) -> Means:
        """Compute the cell means of a region of a head, at a level finer than the stored levels."""
        top, bottom = rows.start * cell, min(self.length, rows.stop * cell)
        left, right = cols.start * cell, min(self.keys, cols.stop * cell)
        return region_cell_means(self._maps[head][0, top:bottom, left:right].float(), cell).numpy()


def _coarser_tile_means(means: Means, cell: int, length: int, size: int) -> Means:
    """Merge blocks of 2 × 2 cells into their exact means. cell: side of a cell. length, size: shape of the matrix."""
    down = np.minimum(cell, length - cell * np.arange(means.shape[0]))[:, None]
    across = np.minimum(cell, size - cell * np.arange(means.shape[1]))[None]
    sums = _sums_of_tile_pairs(_sums_of_tile_pairs(means.astype(np.float64) * down * across).T).T
    return (sums / (_sums_of_tile_pairs(down) * _sums_of_tile_pairs(across.T).T)).astype(np.float32)


def _sums_of_tile_pairs(numbers: np.ndarray) -> np.ndarray:
    """Add each pair of neighbouring rows."""
    return np.add.reduceat(numbers, np.arange(0, len(numbers), 2), axis=0)


@dataclass
class CachedPage:
    """A page with its JSON, the attention matrices that are sent in tiles, and its size in bytes.

    data: the JSON. maps: matrices by call number. places: by panel number, the occurrences that the panel shows.
    alone: builds the page that works without the server, if it differs from this page.
    """

    page: Page
    maps: dict[int, ZoomMap] = field(default_factory=dict)
    places: "dict[int, PanelOccurrences]" = field(default_factory=dict)
    alone: Callable[[], Page] | None = None
    data: bytes = b""
    size: int = 0

    def __post_init__(self) -> None:
        for panel in self.places:
            self.page.panels[panel]["places"] = True
        self.data = json.dumps(self.page.data(), ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()
        blobs = sum(len(blob) for blob in self.page.numbers.blobs)
        occurrence_bytes = sum(item.size for item in self.places.values())
        self.size = len(self.data) + blobs + occurrence_bytes + sum(item.size for item in self.maps.values())

    def numbers(self, index: int) -> bytes:
        """Return a deflated array of the page by its index. Raises HTTPException if it doesn't exist."""
        if not 0 <= index < len(self.page.numbers.blobs):
            raise HTTPException(404, f"numbers: got {index}, but the page has {len(self.page.numbers.blobs)}")
        return self.page.numbers.blobs[index]

    def map(self, call: int) -> ZoomMap:
        """Return a call's matrix, which is sent in tiles. Raises HTTPException if the page has none."""
        if call not in self.maps:
            raise HTTPException(404, f"call {call} doesn't exist, or its weights aren't served")
        return self.maps[call]

    def places_of(self, panel: int) -> "PanelOccurrences":
        """Return the occurrences that a panel shows. Raises HTTPException if it shows none."""
        if panel not in self.places:
            raise HTTPException(404, f"panel {panel} doesn't exist, or its rows aren't positions")
        return self.places[panel]


class PageCache:
    """A cache of pages that drops the least recently used pages when it is full."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes, self._pages, self._lock = max_bytes, OrderedDict[str, CachedPage](), threading.Lock()

    def put(self, name: str, page: CachedPage) -> None:
        """Store a page, and drop the least recently used pages while the total size is too large."""
        with self._lock:
            self._pages[name] = page
            self._pages.move_to_end(name)
            while len(self._pages) > 1 and sum(stored.size for stored in self._pages.values()) > self._max_bytes:
                self._pages.popitem(last=False)

    def find(self, name: str) -> CachedPage | None:
        """Return the page with this name, or None if it isn't stored."""
        with self._lock:
            if name in self._pages:
                self._pages.move_to_end(name)
            return self._pages.get(name)

    def get(self, name: str) -> CachedPage:
        """Return the page with this name. Raises HTTPException if it is no longer stored."""
        page = self.find(name)
        if page is None:
            raise HTTPException(404, "this page is no longer stored: trace the text again")
        return page
