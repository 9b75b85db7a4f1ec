"""Write one shard of a store: its files in a folder that gets its name when all of them are whole.

The same rows give the same bytes: nothing in a file depends on when, where or by which worker it was written.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from regard.corpus.manifest import Manifest
from regard.corpus.reading.document import Document, Rejected
from regard.corpus.schema import ROW_GROUP
from regard.corpus.shard_reader import VECTORS, ShardFiles, damaged, write_shard_index
from regard.errors import RegardError, first_line

if TYPE_CHECKING:
    import pyarrow as pa

TEXTS = "texts.parquet"
PART = ".part"  # how the folders end that are being written


@dataclass(frozen=True, eq=False)
class ShardTables:
    """What a shard holds: see `regard.corpus.schema`. heads: None where no statistics were asked for.

    tokens: how many its texts have, special ones included, each counted once however many windows read it.
    """

    texts: "pa.Table"
    rows: "pa.Table"
    vectors: Float[np.ndarray, "rows layers M"]
    spans: "pa.Table"
    heads: "pa.Table | None" = None
    tokens: int = 0


def write_shard(folder: Path, name: str, tables: ShardTables) -> Path:
    """Write a shard into folder/name, whole or not at all; one that is there already is left as it is.

    Rows have to be sorted by (word, document, start): `sort_rows` does it.
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
    """Read how many parts, rows, tokens and spans of each kind a shard has. Raises RegardError if it is damaged."""
    return ShardFiles(shard).index.counts


def texts_of_shard(shard: Path, columns: Sequence[str] | None = None) -> "pa.Table":
    """Read some columns of a shard's texts, None for all. Raises RegardError if they are damaged."""
    import pyarrow as pa

    try:
        with ShardFiles(shard).parquet(TEXTS) as file:
            return file.read(columns=columns)
    except (OSError, pa.ArrowException) as error:
        raise damaged(shard / TEXTS, first_line(error)) from error


def documents_of(shard: Path) -> list[Document]:
    """Read the documents that a shard was made of. Raises RegardError if they are damaged."""
    return [
        Document(row["document"], row["text"], row["start"], row["source"], row["line"], dict(row["metadata"]))
        for row in texts_of_shard(shard).to_pylist()
    ]


def remove_unfinished_shards(folder: Path) -> None:
    """Remove the shards that killed processes left half-written. No other process may be writing."""
    for path in folder.glob(f".*{PART}"):
        shutil.rmtree(path, ignore_errors=True)


def _write_files(folder: Path, tables: ShardTables) -> None:
    import pyarrow.parquet as pq

    for name in ("texts", "rows", "spans", "heads"):
        table = getattr(tables, name)
        if table is not None:
            target = folder / f"{name}.parquet"
            pq.write_table(table, target, row_group_size=ROW_GROUP, compression="zstd", write_page_checksum=True)
    np.save(folder / VECTORS, tables.vectors, allow_pickle=False)
    kinds = Counter(tables.spans.column("kind").to_pylist())
    counts = {"parts": tables.texts.num_rows, "rows": tables.rows.num_rows, "tokens": tables.tokens}
    write_shard_index(folder, counts | dict(sorted(kinds.items())))
    for path in folder.iterdir():
        with path.open("rb+") as file:
            os.fsync(file.fileno())


@dataclass(frozen=True, eq=False)
class ShardPlan:
    """What one shard will hold. name: of its folder."""

    name: str
    documents: list[Document]

    @property
    def characters(self) -> int:
        """Return how many characters its texts have."""
        return sum(len(each.text) for each in self.documents)


def plan_shards(
    read: Iterable[Document | Rejected], manifest: Manifest, rejected: list[Rejected]
) -> Iterator[ShardPlan]:
    """Yield the shards of documents in the order in which they are read; what could not be read goes to rejected.

    A shard is full when its texts have as many characters as the settings say.
    """
    base = hash_of_settings(manifest)
    held: list[Document] = []
    size = 0
    for each in read:
        if isinstance(each, Rejected):
            rejected.append(each)
            continue
        if held and size + len(each.text) > manifest.settings["shard"]:
            yield _planned(base, held)
            held, size = [], 0
        held.append(each)
        size += len(each.text)
    if held:
        yield _planned(base, held)


def hash_of_settings(manifest: Manifest) -> bytes:
    """Return a hash of everything but the texts that a shard's bytes depend on."""
    parts = [manifest.format, manifest.model.digest, manifest.settings, manifest.environment, manifest.layers]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).digest()


def _planned(base: bytes, documents: list[Document]) -> ShardPlan:
    """The plan of a shard, named by a hash of its documents. base: of `hash_of_settings`."""
    whole = hashlib.sha256(base)
    for each in documents:
        whole.update(json.dumps(astuple(each), sort_keys=True).encode() + b"\n")
    return ShardPlan(whole.hexdigest()[:24], documents)
