"""Write one shard of a store: its files in a folder that gets its name when all of them are whole.

The same rows give the same bytes: nothing in a file depends on when, where or by which worker it was written.
"""

import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from regard.checks import is_whole
from regard.corpus.checksums import BLOCK, CheckedFile, damaged, read_shard_index, write_shard_index
from regard.corpus.checksums import NAME as INDEX
from regard.corpus.closeness import Closeness
from regard.corpus.reading.document import Document
from regard.corpus.schema import ROW_GROUP
from regard.corpus.word_filter import LEMMA
from regard.errors import RegardError, first_line
from regard.json_files import read_json

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

COUNTS = "counts.json"  # of parts, rows, tokens, and spans by their kind; in bf16 how near float32 the vectors are
TEXTS, VECTORS = "texts.parquet", "vectors.npy"
FILES = frozenset((COUNTS, INDEX, TEXTS, "rows.parquet", "spans.parquet", "heads.parquet", VECTORS))
PART = ".part"  # how the folders end that are being written


@dataclass(frozen=True, eq=False)
class ShardTables:
    """What a shard holds: see `regard.corpus.schema`. heads: None where no statistics were asked for.

    tokens: how many its texts have, special ones included, each counted once however many windows read it. closeness:
    of the vectors with float32's, None where they are that.
    """

    texts: "pa.Table"
    rows: "pa.Table"
    vectors: Float[np.ndarray, "rows layers M"]
    spans: "pa.Table"
    heads: "pa.Table | None" = None
    tokens: int = 0
    closeness: Closeness | None = None


def write_shard(folder: Path, name: str, tables: ShardTables) -> Path:
    """Write a shard into folder/name, whole or not at all; one that is there already is left as it is.

    Rows have to be sorted by (word, document, start): `sort_rows` does it.

    Raises:
        RegardError: the file system refuses (no space, no permission).
    """
    final = folder / name
    if final.is_dir():
        return final
    try:
        folder.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{name}-", suffix=PART, dir=folder))
        try:
            _write_files(temporary, tables)
            temporary.chmod(0o755)
            try:
                temporary.rename(final)
            except OSError:
                if not final.is_dir():  # else another worker was first, with the same bytes
                    raise
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except OSError as error:
        raise RegardError(f"cannot write {str(final)!r}: {error.strerror or error}") from error
    return final


def sort_rows(
    rows: "pa.Table", vectors: Float[np.ndarray, "rows layers M"]
) -> "tuple[pa.Table, Float[np.ndarray, 'rows layers M']]":
    """Sort a shard's rows and their vectors by (word, document, start)."""
    import pyarrow.compute as pc

    order = pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in ("word", "document", "start")])
    return rows.take(order), vectors[order.to_numpy()]


def read_counts(shard: Path) -> dict[str, int]:
    """Read how many parts, rows, tokens and spans of each kind a shard has. Raises RegardError where it is damaged."""
    counts = read_json(shard / COUNTS, "counts")
    if not {"parts", "rows", "tokens"} <= set(counts) or not all(is_whole(each) for each in counts.values()):
        raise damaged(shard / COUNTS, "it does not say how many parts, rows and tokens there are")
    return counts


def parquet_of(shard: Path, columns: Sequence[str] | None = None) -> "pa.Table":
    """Read some columns of a shard's texts; None for all.

    Raises:
        RegardError: they cannot be read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    index = read_shard_index(shard) if (shard / INDEX).exists() else None
    with CheckedFile(shard / TEXTS, index) as file:
        try:
            return pq.read_table(file, columns=None if columns is None else list(columns))
        except (OSError, pa.ArrowException) as error:
            raise RegardError(f"{str(file.path)!r} cannot be read: {first_line(error)}") from error


def documents_of(shard: Path) -> list[Document]:
    """Read the documents that a shard was made of, as they were read then.

    Raises:
        RegardError: they cannot be read.
    """
    rows = parquet_of(shard).to_pylist()
    try:
        return [
            Document(row["document"], row["text"], row["start"], row["source"], row["line"], dict(row["metadata"]))
            for row in rows
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise RegardError(f"{str(shard / TEXTS)!r} holds no texts of a store ({error})") from error


def has_more_than_shards(folder: Path) -> bool:
    """Tell whether there is anything in a folder that no shard has: then it is not ours to remove."""
    return any(each.name not in FILES or each.is_symlink() or not each.is_file() for each in folder.iterdir())


def remove_unfinished_shards(folder: Path) -> int:
    """Remove what killed processes left half-written; return how many shards. No other process may be writing.

    A folder that holds anything but a shard's files is somebody else's, and stays.
    """
    named = [path for path in folder.glob(f".*{PART}") if path.is_dir()] if folder.is_dir() else []
    left = [path for path in named if not path.is_symlink() and not has_more_than_shards(path)]
    for path in left:
        shutil.rmtree(path, ignore_errors=True)
    return len(left)


def _write_files(folder: Path, tables: ShardTables) -> None:
    import pyarrow.parquet as pq

    ends: dict[str, list[int]] = {}
    for name in ("texts", "rows", "spans", "heads"):
        table = getattr(tables, name)
        if table is not None:
            target = folder / f"{name}.parquet"
            pq.write_table(table, target, row_group_size=ROW_GROUP, compression="zstd")
            ends[target.name] = _group_ends(pq.read_metadata(target))
    np.save(folder / VECTORS, tables.vectors, allow_pickle=False)
    ends[VECTORS] = _block_ends(folder / VECTORS, tables.vectors)
    kinds = Counter(tables.spans.column("kind").to_pylist())
    counts = {"parts": tables.texts.num_rows, "rows": tables.rows.num_rows, "tokens": tables.tokens}
    near = {} if tables.closeness is None else tables.closeness.counts()
    (folder / COUNTS).write_text(json.dumps(counts | dict(sorted(kinds.items())) | near) + "\n")
    words, lemmas = (tables.rows.column(name) for name in ("word", "lemma"))
    edges = [(n, min(n + ROW_GROUP, len(words)) - 1) for n in range(0, len(words), ROW_GROUP)]
    names = {*words.unique().to_pylist(), *(LEMMA + each for each in lemmas.unique().to_pylist() if each is not None)}
    write_shard_index(folder, ends, [(words[first].as_py(), words[last].as_py()) for first, last in edges], names)
    for path in folder.iterdir():
        with path.open("rb+") as file:
            os.fsync(file.fileno())


def _group_ends(about: "pq.FileMetaData") -> list[int]:
    """Where the row groups of a Parquet file end, and in each the columns that are no lists: those are read alone."""
    ends = set()
    for n in range(about.num_row_groups):
        chunks = [about.row_group(n).column(each) for each in range(about.num_columns)]
        plain = [each for each in chunks if "." not in each.path_in_schema]
        for chunk in (*plain[-1:], *chunks[-1:]):
            ends.add((chunk.dictionary_page_offset or chunk.data_page_offset) + chunk.total_compressed_size)
    return sorted(ends)


def _block_ends(file: Path, vectors: Float[np.ndarray, "rows layers M"]) -> list[int]:
    """Where the rows end that are checked together: those of a megabyte, and of what precedes them."""
    start, row = file.stat().st_size - vectors.nbytes, max(1, vectors.nbytes // max(1, len(vectors)))
    step = max(1, BLOCK // row)
    return [start + n * row for n in range(step, len(vectors), step)]
