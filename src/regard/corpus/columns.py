"""Gather rows of many shards as columns: strings as lists, numbers as arrays, nothing of the files they came from.

Arrow's own `to_numpy`, and its comparison with a Python string, import pandas first, for half a second: so numbers go
both ways as they lie in its memory.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int

from regard.corpus.extra import import_from_corpus_extra

if TYPE_CHECKING:
    import pyarrow as pa

Cells = dict[str, list[Any]]  # of some rows, a list a column


class Columns:
    """Columns of rows. shard: the shard of each row; row: its number there."""

    def __init__(self, names: Sequence[str]) -> None:
        """Begin without a row. names: of the columns."""
        self.names = tuple(names)
        self.shard: list[str] = []
        self._rows: list[np.ndarray] = []
        self._cells: Cells = {name: [] for name in names}

    def __len__(self) -> int:
        return len(self.shard)

    def add(self, shard: str, rows: Int[np.ndarray, " n"], cells: Cells) -> None:
        """Add rows of a shard, by their numbers, and their cells."""
        self.shard += [shard] * len(rows)
        self._rows.append(rows)
        for name in self.names:
            self._cells[name] += cells[name]

    @property
    def row(self) -> Int[np.ndarray, " n"]:
        """Return the number of each row in its shard."""
        return np.concatenate(self._rows).astype(np.int64) if self._rows else np.empty(0, np.int64)

    def numbers(self, name: str) -> Int[np.ndarray, " n"]:
        """Return a column of whole numbers."""
        return np.array(self._cells[name], np.int64)

    def list(self, name: str) -> list[Any]:
        """Return a column as Python's own: equal strings of one row group are one string."""
        return self._cells[name]


def cells_at(table: "pa.Table", rows: Int[np.ndarray, " n"], names: Sequence[str]) -> Cells:
    """Return some rows of a table, by their numbers, a list a column: equal strings of a row group are one string."""
    pa = import_from_corpus_extra("pyarrow")
    numbers = np.ascontiguousarray(rows, np.int64)
    wanted = pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers)])
    return {name: [cell for chunk in table[name].take(wanted).chunks for cell in _decoded(chunk)] for name in names}


def integers(cells: "pa.IntegerArray") -> Int[np.ndarray, " n"]:
    """Return whole numbers; a null is -1."""
    if cells.null_count:
        return np.array([-1 if cell is None else cell for cell in cells.to_pylist()], np.int64)
    kind = np.dtype(f"i{cells.type.bit_width // 8}")
    return np.frombuffer(cells.buffers()[1], kind, len(cells), cells.offset * kind.itemsize)


def _decoded(chunk: "pa.Array") -> list[Any]:
    if not hasattr(chunk, "dictionary"):
        return list(chunk.to_pylist())
    codes, strings = chunk.indices.to_pylist(), chunk.dictionary
    texts = {code: None if code is None else strings[code].as_py() for code in set(codes)}
    return [texts[code] for code in codes]
