"""Read the tables and vectors of a shard, and detect damaged files on reading.

Strings stay dictionary-encoded, as in the file. pyarrow checks the page checksums of Parquet files. The shard's index
has the SHA-256 of each megabyte of every file. regard uses it to check what pyarrow doesn't: the footers of Parquet
files, vectors, and files that DuckDB reads.
"""

import hashlib
import json
import math
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from regard.corpus import schema
from regard.corpus.schema import ShardSummary
from regard.errors import RegardError, first_line
from regard.lazy import import_from_corpus_extra

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

NAME = "index.json"
BLOCK = 1 << 20  # bytes per SHA-256
Cells = dict[str, list[Any]]  # cells of some rows: one list per column
VECTORS = "vectors.npy"
STRINGS = {
    "rows": ["word", "form", "lemma", "document"],
    "texts": ["document", "text", "source", "metadata.key_value.key", "metadata.key_value.value"],
}


@dataclass(frozen=True)
class Index:
    """A shard's counts of parts, rows, tokens and spans, and the SHA-256 of each megabyte of its files."""

    counts: dict[str, int]
    files: dict[str, list[str]]


class ShardFiles:
    """The files of a shard's folder. Each block of a file is checked once, before its first use."""

    def __init__(self, folder: Path, sha256: str = "") -> None:
        """Set the folder, without reading any file. sha256: the hash of the index, if known."""
        self.folder = folder
        self._sha256 = sha256
        self._checked: set[tuple[str, int]] = set()

    @cached_property
    def index(self) -> Index:
        """Read the shard's index.json. Raises RegardError if it is missing or damaged."""
        path = self.folder / NAME
        with suppress(OSError, ValueError, TypeError):
            content = path.read_bytes()
            if self._sha256 in ("", hashlib.sha256(content).hexdigest()):
                return Index(**json.loads(content))
        raise damaged(path, "it is missing, or not the index that was written")

    def check(self, name: str, start: int = 0, stop: int | None = None) -> None:
        """Check the SHA-256 of a file's blocks, by default of all. Raises RegardError if one differs from the index."""
        path, sums = self.folder / name, self.index.files.get(name, [])
        stop = max(path.stat().st_size, BLOCK * len(sums)) if stop is None else stop
        with path.open("rb") as file:
            for n in range(start // BLOCK, -(-stop // BLOCK)):
                if (name, n) in self._checked:
                    continue
                file.seek(n * BLOCK)
                if [hashlib.sha256(file.read(BLOCK)).hexdigest()] != sums[n : n + 1]:
                    raise damaged(path, f"bytes {n * BLOCK:,} to {(n + 1) * BLOCK:,} are not those that were written")
                self._checked.add((name, n))

    def parquet(self, name: str, dictionaries: Collection[str] = ()) -> "pq.ParquetFile":
        """Open a Parquet file of the shard after checking its footer. Its pages are checked on reading."""
        path = self.folder / name
        size = max(1, path.stat().st_size)
        self.check(name, max(0, size - 8), size)
        with path.open("rb") as file:
            file.seek(max(0, size - 8))
            footer = int.from_bytes(file.read(4), "little")
        self.check(name, size - 8 - footer, size)
        return import_from_corpus_extra("pyarrow.parquet").ParquetFile(
            path, read_dictionary=list(dictionaries), pre_buffer=False, page_checksum_verification=True
        )


def damaged(path: Path, reason: str) -> RegardError:
    """Return the RegardError for a damaged file of a shard. The message says how to rebuild the shard."""
    advice = f"remove the folder {str(path.parent)!r}, and the same `regard embed` again makes it"
    return RegardError(f"{str(path)!r} is damaged: {reason}; {advice}")


def write_shard_index(folder: Path, counts: dict[str, int]) -> None:
    """Write index.json into a shard's folder: its counts, and the hashes of the files there."""
    files = {}
    for path in sorted(folder.iterdir()):
        with path.open("rb") as file:
            files[path.name] = [hashlib.sha256(block).hexdigest() for block in iter(lambda: file.read(BLOCK), b"")]
    (folder / NAME).write_text(json.dumps(asdict(Index(counts, files))) + "\n", encoding="utf-8")


def sha256_of_shard_file(path: Path) -> str:
    """Return the SHA-256 of a whole file, as a hexadecimal string."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class RowColumns:
    """Columns of an index's table rows. shard: each row's shard; row: its number in that shard."""

    def __init__(self, names: Sequence[str]) -> None:
        """Create columns with these names and without rows."""
        self.names = tuple(names)
        self.shard: list[str] = []
        self._rows: list[np.ndarray] = []
        self._cells: Cells = {name: [] for name in names}

    def __len__(self) -> int:
        return len(self.shard)

    def add(self, shard: str, rows: Int[np.ndarray, " n"], cells: Cells) -> None:
        """Append rows of a shard. rows: their numbers in the shard. cells: their values by column."""
        self.shard += [shard] * len(rows)
        self._rows.append(rows)
        for name in self.names:
            self._cells[name] += cells[name]

    @property
    def row(self) -> Int[np.ndarray, " n"]:
        """Return each row's number in its shard, as int64."""
        return np.concatenate(self._rows).astype(np.int64) if self._rows else np.empty(0, np.int64)

    def numbers(self, name: str) -> Int[np.ndarray, " n"]:
        """Return a column of whole numbers, as int64."""
        return np.array(self._cells[name], np.int64)

    def list(self, name: str) -> list[Any]:
        """Return a column as a list. Equal strings of one row group are the same object."""
        return self._cells[name]


def cells_at(table: "pa.Table", rows: Int[np.ndarray, " n"], names: Sequence[str]) -> Cells:
    """Return the cells of some table rows, one list per column. Equal strings of a row group are the same object."""
    pa = import_from_corpus_extra("pyarrow")
    numbers = np.ascontiguousarray(rows, np.int64)
    at = pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers)])
    return {name: [cell for chunk in table[name].take(at).chunks for cell in _decoded_strings(chunk)] for name in names}


def integers(cells: "pa.IntegerArray") -> Int[np.ndarray, " n"]:
    """Convert Arrow integers to NumPy; null is -1."""  # from the buffer: Arrow's to_numpy imports pandas (0.5 s)
    if cells.null_count:
        return np.array([-1 if cell is None else cell for cell in cells.to_pylist()], np.int64)
    kind = np.dtype(f"i{cells.type.bit_width // 8}")
    return np.frombuffer(cells.buffers()[1], kind, len(cells), cells.offset * kind.itemsize)


def _decoded_strings(chunk: "pa.Array") -> list[Any]:
    """Return a column chunk as a list, with one Python string per distinct value."""
    if not hasattr(chunk, "dictionary"):
        return list(chunk.to_pylist())
    codes, strings = chunk.indices.to_pylist(), chunk.dictionary
    texts = {code: None if code is None else strings[code].as_py() for code in set(codes)}
    return [texts[code] for code in codes]


class ShardReader:
    """A reader of one shard of an index. Its files are open only while they are read."""

    def __init__(self, folder: Path, summary: ShardSummary) -> None:
        """Set the folder, without reading any file. summary: the shard's entry in the manifest."""
        self.folder, self.summary = folder, summary
        self._files = ShardFiles(folder, summary.sha256)

    def tables(
        self, name: str, columns: Sequence[str], groups: Collection[int] | None = None, word: str | None = None
    ) -> "Iterator[tuple[int, pa.Table]]":
        """Yield columns of a table, one row group at a time, each with its first row's number in the shard.

        name: "rows", "texts" or "heads". groups: numbers of the row groups to read, None for all. word: skip row groups
        that can't contain this word, by their first and last word.
        """
        file = f"{name}.parquet"
        try:
            with self._files.parquet(file, STRINGS.get(name, ())) as parquet:
                for n in range(parquet.num_row_groups):
                    if groups is not None and n not in groups:
                        continue
                    edges = parquet.metadata.row_group(n).column(0).statistics  # the first and the last word
                    has_range = word is not None and edges is not None and edges.has_min_max
                    if not has_range or edges.min <= word <= edges.max:
                        table = parquet.read_row_group(n, columns=list(columns), use_threads=False)
                        yield n * schema.ROW_GROUP, table
        except (import_from_corpus_extra("pyarrow").ArrowException, OSError) as error:
            raise damaged(self.folder / file, first_line(error)) from error

    def check(self, name: str) -> None:
        """Check the hashes of a whole table, unless they were checked before. Raises RegardError if it is damaged."""
        self._files.check(f"{name}.parquet")

    def vectors(self, rows: Int[np.ndarray, " n"], layer_index: int) -> Float[np.ndarray, "n M"]:
        """Read the embeddings of some rows from a layer. layer_index: the layer's index among the stored layers."""
        count = self.summary.rows
        if rows.size and not (rows.min() >= 0 and rows.max() < count):
            raise RegardError(
                f"vectors: shard {self.summary.name} has rows 0 to {count - 1}, got {rows.min()} to {rows.max()}"
            )
        vectors, start, size = self._mapped_vectors()
        first = start + rows * size
        for block in np.unique(np.concatenate([first, first + size - 1]) // BLOCK).tolist():
            self._files.check(VECTORS, block * BLOCK, (block + 1) * BLOCK)
        return vectors[rows, layer_index]

    def all_vectors(self, layer_index: int) -> Iterator[tuple[int, Float[np.ndarray, "n M"]]]:
        """Yield the embeddings of all rows from a layer in blocks, each with its first row's number."""
        vectors, _, size = self._mapped_vectors()
        self._files.check(VECTORS)
        step = max(1, 8 * BLOCK // size)
        for first in range(0, len(vectors), step):
            yield first, vectors[first : first + step, layer_index]

    def _mapped_vectors(self) -> tuple[Any, int, int]:
        """Map vectors.npy into memory. Return it, the offset of its data, and the bytes per row."""
        self._files.check(VECTORS, 0, 1)
        vectors = np.load(self.folder / VECTORS, mmap_mode="c")
        return vectors, vectors.offset, vectors.itemsize * math.prod(vectors.shape[1:])
