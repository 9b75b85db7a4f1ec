"""Keep what was traced for as long as there is room, so that its numbers can be asked for one by one.

Tiles of an attention matrix of any size: exact means of 2^z × 2^z weights, from all to single ones. One pass
over the matrix keeps the means of 32 × 32 weights of each head, and from them those of 2, 4, 8, … times as many; and
those of 16 × 16 of the mean of heads, for which all heads would have to be computed. Finer tiles are computed when they
are requested. At 100,000 tokens 52 MB a head are kept, and 156 MB for their mean.
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
from regard.attention.cell_means import CELL, cell_means, region_cell_means
from regard.attention.given_map import one_head
from regard.web.page import Page

if TYPE_CHECKING:
    from regard.server.corpora import PanelOccurrences


SIDE = 128  # cells of a tile each way, as in web/src/map/pyramid.ts
PASS = CELL.bit_length() - 1  # the level that the pass computes: cells of 2^PASS weights each way
FINEST = PASS + 1  # the finest level that is kept of a head

Progress = Callable[[float], None]
Means = Float32[np.ndarray, "_ _"]


class ZoomMap:
    """The map (H, L, S) of one call. Regions may be asked for from several threads."""

    def __init__(self, weights: AttentionMap) -> None:
        self.weights = weights
        self.heads, self.length, self.keys = weights.shape
        self._each = [one_head(weights, head) for head in range(self.heads)]  # each keeps its own row sums
        self._levels: list[list[Means]] = []  # of each head that is known, from FINEST on
        self._begun: Means = np.zeros((0, 0), np.float32)  # FINEST of the head that the pass is at
        self._next = 0  # the query where the pass goes on
        self._together: Means = np.zeros((0, 0), np.float32)  # the sum of all heads at level PASS
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """The bytes that it takes, its kept means included."""
        cells = -(-self.length // CELL) * -(-self.keys // CELL)
        numbers = sum(each.numel() * each.element_size() for each in (self.weights.query, self.weights.key))
        return numbers + 4 * cells + self.heads * cells * 4 // 3

    @property
    def _top(self) -> int:
        """The coarsest level: the whole matrix in one tile, but no finer than what is kept."""
        return max(FINEST, (max(self.length, self.keys) - 1).bit_length() - (SIDE - 1).bit_length())

    @property
    def ready(self) -> bool:
        """Whether the pass was made."""
        return len(self._levels) == self.heads

    @property
    def done(self) -> float:
        """The share of the pass that was made."""
        return (len(self._levels) + self._next / self.length) / self.heads

    def prepare(self, progress: Progress) -> None:
        """Make the pass over all heads; what is there of a pass that was stopped isn't computed again.

        progress: told the share that was just done; what it raises stops the pass.
        """
        with self._lock:
            if not self._together.size:
                self._together = np.zeros((-(-self.length // CELL), -(-self.keys // CELL)), np.float32)
            while not self.ready:
                self._pass(len(self._levels), progress)

    def _pass(self, head: int, progress: Progress) -> None:
        """Go through one head, from where it was stopped."""
        if self._next == 0:
            self._begun = np.zeros([-(-cells // 2) for cells in self._together.shape], np.float32)
        rest = cell_means(self._each[head], self._next) if self._next < self.length else ()
        for first, band in rest:
            self._next = min(self.length, first + len(band) * CELL)
            row, means = first // CELL, band.float().numpy()
            self._together[row : row + len(means)] += means
            coarser = _coarser_tile_means(means, CELL, self._next - first, self.keys)
            self._begun[row // 2 : row // 2 + len(coarser)] = coarser
            progress((self._next - first) / self.length / self.heads)
        levels, cell = [self._begun], 1 << FINEST
        while max(levels[-1].shape) > SIDE:
            levels.append(_coarser_tile_means(levels[-1], cell, self.length, self.keys))
            cell *= 2
        self._levels.append(levels)
        self._next = 0

    def tile(self, head: int | None, level: int, row: int, col: int) -> Float32[np.ndarray, "s s"]:
        """Return the means of a tile's cells, SIDE × SIDE, 0 in cells without weights. head: None for their mean.

        level: a cell is of 2^level × 2^level weights. row, col: of the tile, from 0.
        """
        self.check_tile(head, level, row, col)
        cell, heads = 1 << level, self._heads_of(head)
        if not self.ready:
            raise HTTPException(409, "the pass over this matrix was not made: ask for it first")
        found = np.zeros((SIDE, SIDE), np.float32)
        rows, cols = slice(row * SIDE, (row + 1) * SIDE), slice(col * SIDE, (col + 1) * SIDE)
        if head is None and level == PASS:
            part = self._together[rows, cols]
            found[: part.shape[0], : part.shape[1]] = part
            return found / self.heads
        for each in heads:
            part = self._kept(each, level, rows, cols) if level >= FINEST else self._region(each, cell, rows, cols)
            found[: part.shape[0], : part.shape[1]] += part
        return found / len(heads)

    def check_tile(self, head: int | None, level: int, row: int, col: int) -> None:
        """Raise HTTPException if there is no such tile."""
        cell = 1 << level
        if not 0 <= row * SIDE * cell < self.length or not 0 <= col * SIDE * cell < self.keys:
            raise HTTPException(
                404, f"tile {level}/{row}/{col}: the matrix of {self.length} × {self.keys} has no such tile"
            )
        self._heads_of(head)
        if level > self._top:
            raise HTTPException(404, f"level: got {level}, but the coarsest is {self._top}")

    def row(self, head: int | None, query: int) -> Float32[np.ndarray, " S"]:
        """Return what a query gives to every key. Raises HTTPException if there is no such query."""
        if not 0 <= query < self.length:
            raise HTTPException(404, f"query: got {query}, but there are {self.length}")
        return self._mean(head, lambda each: each[0, query : query + 1, :][0])

    def column(self, head: int | None, key: int) -> Float32[np.ndarray, " L"]:
        """Return what a key gets from every query. Raises HTTPException if there is no such key."""
        if not 0 <= key < self.keys:
            raise HTTPException(404, f"key: got {key}, but there are {self.keys}")
        return self._mean(head, lambda each: each[0, :, key : key + 1][:, 0])

    def _mean(self, head: int | None, read: Callable[[AttentionMap], Tensor]) -> Float32[np.ndarray, " n"]:
        heads = self._heads_of(head)
        return (sum(read(self._each[each]).float() for each in heads) / len(heads)).numpy()  # type: ignore[union-attr]

    def _heads_of(self, head: int | None) -> Sequence[int]:
        """This head, or all of them. Raises HTTPException if there is no such head."""
        if head is not None and not 0 <= head < self.heads:
            raise HTTPException(404, f"head: got {head}, but there are {self.heads}")
        return range(self.heads) if head is None else [head]

    def _kept(self, head: int, level: int, rows: slice, cols: slice) -> Means:
        return self._levels[head][level - FINEST][rows, cols]

    def _region(self, head: int, cell: int, rows: slice, cols: slice) -> Means:
        top, bottom = rows.start * cell, min(self.length, rows.stop * cell)
        left, right = cols.start * cell, min(self.keys, cols.stop * cell)
        return region_cell_means(self._each[head][0, top:bottom, left:right].float(), cell).numpy()


def _coarser_tile_means(means: Means, cell: int, length: int, size: int) -> Means:
    """The means of twice as many numbers each way, of a matrix (length, size) whose cells are of cell × cell."""
    down = np.minimum(cell, length - cell * np.arange(means.shape[0]))[:, None]
    across = np.minimum(cell, size - cell * np.arange(means.shape[1]))[None]
    sums = _sums_of_tile_pairs(_sums_of_tile_pairs(means.astype(np.float64) * down * across).T).T
    return (sums / (_sums_of_tile_pairs(down) * _sums_of_tile_pairs(across.T).T)).astype(np.float32)


def _sums_of_tile_pairs(numbers: np.ndarray) -> np.ndarray:
    """Add neighbours up, two rows to one."""
    return np.add.reduceat(numbers, np.arange(0, len(numbers), 2), axis=0)


@dataclass
class CachedPage:
    """One page. data: its JSON. maps: of the calls whose weights come as tiles, by their number. size: in bytes.

    places: what the points or rows of panels are, by the panel's number, where they are places in a store's texts.
    alone: makes the page that works without the server, if that is another one.
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
        looked_up = sum(each.size for each in self.places.values())
        self.size = len(self.data) + blobs + looked_up + sum(each.size for each in self.maps.values())

    def numbers(self, at: int) -> bytes:
        """Return the deflated bytes of its numbers. Raises HTTPException if there are none of that number."""
        if not 0 <= at < len(self.page.numbers.blobs):
            raise HTTPException(404, f"numbers: got {at}, but the page has {len(self.page.numbers.blobs)}")
        return self.page.numbers.blobs[at]

    def map(self, call: int) -> ZoomMap:
        """The map of a call whose weights come as tiles. Raises HTTPException if there is none of that number."""
        if call not in self.maps:
            raise HTTPException(404, f"call {call} doesn't exist, or its weights aren't served")
        return self.maps[call]

    def places_of(self, panel: int) -> "PanelOccurrences":
        """What the points or rows of a panel are. Raises HTTPException where they are no places, or there is none."""
        if panel not in self.places:
            raise HTTPException(404, f"panel {panel} doesn't exist, or its rows aren't positions")
        return self.places[panel]


class PageCache:
    """The pages that are kept, those looked at last for the longest."""

    def __init__(self, most: int) -> None:
        self._most, self._kept, self._lock = most, OrderedDict[str, CachedPage](), threading.Lock()

    def put(self, name: str, kept: CachedPage) -> None:
        """Keep a page, and let go of what was not looked at for the longest if there is no room for both."""
        with self._lock:
            self._kept[name] = kept
            self._kept.move_to_end(name)
            while len(self._kept) > 1 and sum(each.size for each in self._kept.values()) > self._most:
                self._kept.popitem(last=False)

    def find(self, name: str) -> CachedPage | None:
        """Find the page of a name, None if it isn't kept."""
        with self._lock:
            if name in self._kept:
                self._kept.move_to_end(name)
            return self._kept.get(name)

    def get(self, name: str) -> CachedPage:
        """Find the page of a name. Raises HTTPException where it isn't kept, or no longer."""
        found = self.find(name)
        if found is None:
            raise HTTPException(404, "this page is no longer stored: trace the text again")
        return found
