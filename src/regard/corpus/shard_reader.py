"""Read a shard: row groups of its tables and rows of its vectors, checked as they are read.

A store may come from anybody. Strings stay the dictionaries that they are in the file, and no page is unpacked before
its header has been read, so that what is in memory is in proportion to what is on disk.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property, partial
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from regard.corpus import schema
from regard.corpus.checksums import BLOCK, CheckedFile, Index, damaged, read_shard_index
from regard.corpus.extra import import_from_corpus_extra
from regard.corpus.manifest import Manifest, ShardSummary
from regard.corpus.parquet_pages import Chunk, column_chunks, parquet_page_sizes
from regard.corpus.settings import DTYPES
from regard.corpus.word_filter import LEMMA, may_have
from regard.errors import RegardError, first_line

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

FOOTER, FOOTER_OF_GROUP = 1 << 16, 1 << 18  # bytes that a Parquet file's footer may have, and more for each row group
UNPACKED, RATIO = 1 << 26, 64  # bytes that a column of a row group may unpack to, and more for each byte that it has
ENTRIES = 1000  # of metadata, a row
OPTIONAL = ("line", "lemma")  # columns that may lack values
STRINGS = {
    "rows": ["word", "form", "lemma", "document"],
    "texts": ["document", "text", "source", "metadata.key_value.key", "metadata.key_value.value"],
}

_known: "dict[tuple[str, ...], pq.ParquetSchema]" = {}  # of a table and some columns one that has been checked


class ShardReader:
    """A shard of a store, of which nothing is open but while it is read."""

    def __init__(self, folder: Path, summary: ShardSummary, manifest: Manifest) -> None:
        """Look at nothing yet. folder: the shard's. summary: what the manifest says of it."""
        self.folder, self.summary, self.manifest = folder, summary, manifest
        self._unpacked: set[tuple[str, int, str]] = set()  # columns of row groups whose pages have been checked
        self._chunks: dict[str, list[list[Chunk]]] = {}  # of each table that was read

    @cached_property
    def index(self) -> Index | None:
        """Read its index; None where an earlier version wrote it, which wrote none.

        Raises:
            RegardError: it is not there, or not the one that the manifest knows.
        """
        return read_shard_index(self.folder, self.summary.sha256) if self.summary.sha256 else None

    def groups_with(self, field: str, value: str) -> list[int] | None:
        """Number the row groups of rows.parquet that may hold a word or a lemma; None for all. field: which of both."""
        if self.index is not None and not may_have(self.index.filter, value if field == "word" else LEMMA + value):
            return []
        if self.index is None or field != "word":
            return None
        return [n for n, (first, last) in enumerate(self.index.words) if first <= value <= last]

    def tables(
        self, name: str, columns: Sequence[str], groups: Sequence[int] | None = None
    ) -> "Iterator[tuple[int, pa.Table]]":
        """Read some columns of a table, a row group at a time, each with the number of its first row.

        name: "rows", "texts" or "heads". groups: those to read, None for all.

        Raises:
            RegardError: the file is damaged, or is not what a store has.
        """
        pa = import_from_corpus_extra("pyarrow")
        wanted = None if groups is None else set(groups)
        with self._table(name) as (file, parquet):
            self._check_columns(name, parquet, columns)
            for n in range(parquet.num_row_groups):
                if wanted is not None and n not in wanted:
                    continue
                about = parquet.metadata.row_group(n)
                try:
                    self._check_pages(file, parquet, name, n, columns)
                    table = parquet.read_row_group(n, columns=list(columns), use_threads=False)
                    table.validate(full=True)  # strings are UTF-8, places of dictionaries are there
                except RegardError:  # it is a ValueError too, and says all
                    raise
                except (pa.ArrowException, OSError, ValueError) as error:
                    raise damaged(file.path, first_line(error)) from error
                lacking = [each for each in columns if table[each].null_count and each not in OPTIONAL]
                if len(table) != about.num_rows or lacking:
                    raise damaged(file.path, f"row group {n} lacks values of {', '.join(lacking) or 'all columns'}")
                yield n * schema.ROW_GROUP, table

    def check(self, name: str) -> None:
        """Check a table's whole file, as far as this process has not. Raises RegardError where it is damaged."""
        with CheckedFile(self.folder / f"{name}.parquet", self.index) as file:
            file.check()

    def vectors(self, rows: Int[np.ndarray, " n"], place: int) -> Float[np.ndarray, "n M"]:
        """Read the embeddings of some rows from one layer. place: which of those that are kept.

        Raises:
            RegardError: there is no such row, the file is damaged, or a number in it is not finite.
        """
        count = self.summary.rows
        if rows.size and not (rows.min() >= 0 and rows.max() < count):
            raise RegardError(
                f"vectors: shard {self.summary.name} has rows 0 to {count - 1}, given {rows.min()} to {rows.max()}"
            )
        with CheckedFile(self.folder / "vectors.npy", self.index) as file:
            start, kind = self._header(file)
            found = np.empty((len(rows), self.manifest.model.width), kind)
            size = max(1, BLOCK // max(1, self._row_bytes(kind)))
            order = np.argsort(rows, kind="stable")
            edges = np.flatnonzero(np.diff(rows[order] // size)) + 1
            for own in np.split(order, edges) if len(order) else ():
                first, last = int(rows[own].min()), int(rows[own].max())
                found[own] = self._read(file, start, kind, first, last + 1)[rows[own] - first, place]
        return self._finite(found, rows)

    def all_vectors(self, place: int) -> Iterator[tuple[int, Float[np.ndarray, "n M"]]]:
        """Yield the embeddings of all rows from one layer, some megabytes at a time, with the number of the first.

        Raises:
            RegardError: as `vectors`.
        """
        with CheckedFile(self.folder / "vectors.npy", self.index) as file:
            start, kind = self._header(file)
            size = max(1, 8 * BLOCK // max(1, self._row_bytes(kind)))
            edges = [*range(0, self.summary.rows, size), self.summary.rows]
            read = partial(self._read, file, start, kind)
            with ThreadPoolExecutor(1) as ahead:  # the next ones are read and checked while these are computed with
                coming = [ahead.submit(read, first, last) for first, last in pairwise(edges[:2])]
                for first, after in zip_longest(edges[:-1], pairwise(edges[1:])):
                    found = coming.pop().result()[:, place]
                    if after is not None:
                        coming.append(ahead.submit(read, *after))
                    yield first, self._finite(found, np.arange(first, first + len(found)))

    @contextmanager
    def _table(self, name: str) -> "Iterator[tuple[CheckedFile, pq.ParquetFile]]":
        """Open a table's file; its footer is what the manifest says."""
        pa, pq = import_from_corpus_extra("pyarrow"), import_from_corpus_extra("pyarrow.parquet")
        model = self.manifest.model
        count = {"rows": self.summary.rows, "texts": self.summary.parts, "heads": model.layers * model.heads}[name]
        with CheckedFile(self.folder / f"{name}.parquet", self.index) as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - 8))
            footer = int.from_bytes(file.read(4), "little")
            if footer > FOOTER + FOOTER_OF_GROUP * (count // schema.ROW_GROUP + 1):
                raise damaged(file.path, f"its footer has {footer:,} bytes")
            file.seek(0)
            try:
                parquet = pq.ParquetFile(file, read_dictionary=STRINGS.get(name), pre_buffer=False)
                groups = [parquet.metadata.row_group(n).num_rows for n in range(parquet.num_row_groups)]
            except RegardError:  # it is a ValueError too, and says all
                raise
            except (pa.ArrowException, OSError, ValueError, KeyError) as error:  # KeyError: it lacks one of STRINGS
                raise damaged(file.path, first_line(error)) from error
            if sum(groups) != count:
                raise damaged(file.path, f"it has {sum(groups):,} rows, the manifest says {count:,}")
            if any(each != schema.ROW_GROUP for each in groups[:-1]) or any(each > schema.ROW_GROUP for each in groups):
                raise damaged(file.path, f"its row groups have not {schema.ROW_GROUP:,} rows each")
            yield file, parquet

    def _check_pages(
        self, file: CheckedFile, parquet: "pq.ParquetFile", name: str, group: int, columns: Sequence[str]
    ) -> None:
        """Refuse columns of a row group before they are unpacked, once, where one would take more than is on disk."""
        new = {each for each in columns if (name, group, each) not in self._unpacked}
        if new and name not in self._chunks:
            size = file.seek(0, 2)
            file.seek(size - 8)
            length = int.from_bytes(file.read(4), "little")
            file.seek(size - 8 - length)
            self._chunks[name] = chunks = column_chunks(file.read(length))
            paths = [tuple(parquet.schema.column(n).path.split(".")) for n in range(len(parquet.schema))]
            if len(chunks) != parquet.num_row_groups or any([each.path for each in own] != paths for own in chunks):
                raise ValueError(
                    "its columns are not in their order"
                )  # by which pyarrow finds them, not by their names
        for chunk in self._chunks[name][group] if new else ():
            column, *inside = chunk.path
            if column not in new:
                continue
            file.seek(chunk.start)
            content = file.read(chunk.size)
            pages = list(parquet_page_sizes(content))
            unpacked, values = sum(page.unpacked for page in pages), sum(page.values for page in pages)
            most = parquet.metadata.row_group(group).num_rows * (ENTRIES if inside else 1)
            if unpacked > UNPACKED + RATIO * len(content) or values > most:
                raise ValueError(f"{len(content):,} bytes of column {column!r} hold {unpacked:,} and {values:,} values")
        self._unpacked.update((name, group, each) for each in new)

    def _check_columns(self, name: str, parquet: "pq.ParquetFile", columns: Sequence[str]) -> None:
        """Refuse a table whose columns are not those of a store, or of another type."""
        if (name, *columns) in _known and _known[name, *columns].equals(parquet.metadata.schema):
            return
        wanted = {"rows": schema.rows(1, statistics=False, sources=False), "texts": schema.texts()}.get(name)
        wanted = schema.heads() if wanted is None else wanted
        given = parquet.metadata.schema.to_arrow_schema()
        for column in columns:
            found = [field for field in given if field.name == column]
            if len(found) != 1 or not _alike(found[0].type, wanted.field(column).type):
                kind = f"is {found[0].type}" if len(found) == 1 else f"is there {len(found)} times"
                raise damaged(
                    self.folder / f"{name}.parquet", f"column {column!r} {kind}, needs {wanted.field(column).type}"
                )

        _known[name, *columns] = parquet.metadata.schema

    def _header(self, file: CheckedFile) -> tuple[int, Any]:
        """Where the numbers of vectors.npy begin, and of which kind they are."""
        try:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, fortran, kind = read(file)
        except RegardError:
            raise
        except (ValueError, OSError) as error:
            raise damaged(file.path, str(error).splitlines()[0]) from error
        wanted = (self.summary.rows, len(self.manifest.layers), self.manifest.model.width)
        if shape != wanted:
            raise damaged(file.path, f"it has shape {shape}, the manifest says {wanted}")
        kept = self.manifest.settings.get("dtype")
        if fortran or kind.name not in ((kept,) if kept else DTYPES):
            raise damaged(file.path, f"its numbers are {kind.name}, the manifest says {kept or ' or '.join(DTYPES)}")
        start = file.tell()
        size = file.seek(0, 2)
        if size != start + wanted[0] * self._row_bytes(kind):
            raise damaged(file.path, f"it has {size:,} bytes, its shape {shape} needs others")
        return start, kind

    def _row_bytes(self, kind: Any) -> int:
        return len(self.manifest.layers) * self.manifest.model.width * int(kind.itemsize)

    def _read(self, file: CheckedFile, start: int, kind: Any, first: int, last: int) -> np.ndarray:
        """Rows first to last of the file, (rows, layers, M)."""
        size = self._row_bytes(kind)
        file.seek(start + first * size)
        found = np.empty((last - first, len(self.manifest.layers), self.manifest.model.width), kind)
        if file.readinto(found.reshape(-1).view(np.uint8).data) != found.nbytes:
            raise damaged(file.path, "it is cut short")
        return found

    def _finite(self, found: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Refuse what is not finite. rows: their numbers."""
        half = found.dtype == np.float16  # whose exponent is compared twice as fast
        if not ((found.view(np.uint16) & 0x7C00).max(initial=0) < 0x7C00 if half else np.isfinite(found).all()):
            row = rows[np.flatnonzero(~np.isfinite(found).all(1))[0]]
            raise damaged(self.folder / "vectors.npy", f"row {row} holds a number that is not finite")
        return found


def _alike(given: "pa.DataType", wanted: "pa.DataType") -> bool:
    """Whether a column has the type that a store's has; a map's names are anybody's."""
    pa = import_from_corpus_extra("pyarrow")
    if pa.types.is_map(wanted):
        return bool(pa.types.is_map(given)) and (given.key_type, given.item_type) == (wanted.key_type, wanted.item_type)
    return bool(given == wanted)
