"""Read a shard: row groups of its tables and rows of its vectors. Strings stay dictionaries, as in the file."""

import math
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from regard.corpus import schema
from regard.corpus.checksums import BLOCK, ShardFiles, damaged
from regard.corpus.manifest import ShardSummary
from regard.errors import RegardError, first_line
from regard.lazy import import_from_corpus_extra

if TYPE_CHECKING:
    import pyarrow as pa

Cells = dict[str, list[Any]]  # of some rows, a list a column
VECTORS = "vectors.npy"
STRINGS = {
    "rows": ["word", "form", "lemma", "document"],
    "texts": ["document", "text", "source", "metadata.key_value.key", "metadata.key_value.value"],
}


class RowColumns:
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
    """Return whole numbers; a null is -1."""  # from the buffer: Arrow's to_numpy imports pandas, for half a second
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


class ShardReader:
    """A shard of a store. Its files are open only while they are read."""

    def __init__(self, folder: Path, summary: ShardSummary) -> None:
        """Read nothing yet. summary: the manifest's entry of this shard."""
        self.folder, self.summary = folder, summary
        self._files = ShardFiles(folder, summary.sha256)

    def tables(
        self, name: str, columns: Sequence[str], groups: Collection[int] | None = None, word: str | None = None
    ) -> "Iterator[tuple[int, pa.Table]]":
        """Read some columns of a table, one row group at a time, each with the number of its first row.

        name: "rows", "texts" or "heads". groups: those to read, None for all. word: read only row groups that may hold
        it, by their first and last word.
        """
        file = f"{name}.parquet"
        try:
            with self._files.parquet(file, STRINGS.get(name, ())) as parquet:
                for n in range(parquet.num_row_groups):
                    if groups is not None and n not in groups:
                        continue
                    edges = parquet.metadata.row_group(n).column(0).statistics  # the first and the last word
                    known = word is not None and edges is not None and edges.has_min_max
                    if not known or edges.min <= word <= edges.max:
                        table = parquet.read_row_group(n, columns=list(columns), use_threads=False)
                        yield n * schema.ROW_GROUP, table
        except (import_from_corpus_extra("pyarrow").ArrowException, OSError) as error:
            raise damaged(self.folder / file, first_line(error)) from error

    def check(self, name: str) -> None:
        """Check a whole table, unless this process has. Raises RegardError if it is damaged."""
        self._files.check(f"{name}.parquet")

    def vectors(self, rows: Int[np.ndarray, " n"], place: int) -> Float[np.ndarray, "n M"]:
        """Read the embeddings of some rows from one layer. place: its place among the layers that are kept."""
        count = self.summary.rows
        if rows.size and not (rows.min() >= 0 and rows.max() < count):
            raise RegardError(
                f"vectors: shard {self.summary.name} has rows 0 to {count - 1}, given {rows.min()} to {rows.max()}"
            )
        vectors, start, size = self._vectors()
        first = start + rows * size
        for block in np.unique(np.concatenate([first, first + size - 1]) // BLOCK).tolist():
            self._files.check(VECTORS, block * BLOCK, (block + 1) * BLOCK)
        return vectors[rows, place]

    def all_vectors(self, place: int) -> Iterator[tuple[int, Float[np.ndarray, "n M"]]]:
        """Yield the embeddings of all rows from one layer, some megabytes at a time, with the number of the first."""
        vectors, _, size = self._vectors()
        self._files.check(VECTORS)
        step = max(1, 8 * BLOCK // size)
        for first in range(0, len(vectors), step):
            yield first, vectors[first : first + step, place]

    def _vectors(self) -> tuple[Any, int, int]:
        """Map the file into memory; also return where the numbers begin and the bytes of a row."""
        self._files.check(VECTORS, 0, 1)
        vectors = np.load(self.folder / VECTORS, mmap_mode="c")
        return vectors, vectors.offset, vectors.itemsize * math.prod(vectors.shape[1:])
