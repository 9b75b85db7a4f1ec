"""Read a shard: row groups of its tables and rows of its vectors. Strings stay dictionaries, as in the file."""

import math
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from regard.corpus import schema
from regard.corpus.checksums import BLOCK, ShardFiles, damaged
from regard.corpus.extra import import_from_corpus_extra
from regard.corpus.manifest import ShardSummary
from regard.errors import RegardError, first_line

if TYPE_CHECKING:
    import pyarrow as pa

VECTORS = "vectors.npy"
STRINGS = {
    "rows": ["word", "form", "lemma", "document"],
    "texts": ["document", "text", "source", "metadata.key_value.key", "metadata.key_value.value"],
}


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
                    wanted = groups is None or n in groups
                    if wanted and (word is None or _may_hold(parquet.metadata.row_group(n), word)):
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


def _may_hold(group: Any, word: str) -> bool:
    """Whether a row group's first and last word say that a word may be in it; rows are sorted by word."""
    known = group.column(0).statistics
    return known is None or not known.has_min_max or known.min <= word <= known.max
