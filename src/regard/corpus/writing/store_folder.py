"""Write, compare and clean up the folder of an embedding index and its shards, one run at a time.

A shard's folder is renamed to its final name when all its files are complete. The same rows always give the same bytes,
whichever worker writes them.

If a document is missing, it may have been deleted, or its disk isn't mounted. regard can't know, so the index keeps it.
"""

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from regard.corpus.reading.document import Document, Rejected
from regard.corpus.reading.documents import Unseen
from regard.corpus.schema import NAME, ROW_GROUP, Manifest
from regard.corpus.shard_reader import NAME as INDEX
from regard.corpus.shard_reader import VECTORS, ShardFiles, damaged, write_shard_index
from regard.errors import RegardError, first_line
from regard.files import LOCK, lock_folder

if TYPE_CHECKING:
    import pyarrow as pa


TEXTS = "texts.parquet"
PART = ".part"  # suffix of the folders of unfinished shards


@dataclass(frozen=True, eq=False)
class ShardTables:
    """The tables and vectors of a shard, as described in `regard.corpus.schema`. heads: None without statistics.

    tokens: number of tokens in its texts, including special tokens. Tokens in several windows are counted once.
    """

    texts: "pa.Table"
    rows: "pa.Table"
    vectors: Float[np.ndarray, "rows layers M"]
    spans: "pa.Table"
    heads: "pa.Table | None" = None
    tokens: int = 0


def write_shard(folder: Path, name: str, tables: ShardTables) -> Path:
    """Write a shard into folder/name atomically, unless it already exists. Return its path.

    Rows must be sorted by (word, document, start), as by `sort_rows`.
    """
    final = folder / name
    if final.is_dir():
        return final
    try:
        folder.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{name}-", suffix=PART, dir=folder))
        try:
            _write_shard_files(temporary, tables)
            temporary.chmod(0o755)
            try:
                temporary.rename(final)
            except OSError:
                if not final.is_dir():  # else another worker has written the same shard
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
    """Read a shard's number of parts, rows, tokens and spans of each kind. Raises RegardError if it is damaged."""
    return ShardFiles(shard).index.counts


def texts_of_shard(shard: Path, columns: Sequence[str] | None = None) -> "pa.Table":
    """Read columns of a shard's texts, by default all. Raises RegardError if the file is damaged."""
    import pyarrow as pa

    try:
        with ShardFiles(shard).parquet(TEXTS) as file:
            return file.read(columns=columns)
    except (OSError, pa.ArrowException) as error:
        raise damaged(shard / TEXTS, first_line(error)) from error


def documents_of(shard: Path) -> list[Document]:
    """Read the documents of a shard. Raises RegardError if the file is damaged."""
    return [
        Document(row["document"], row["text"], row["start"], row["source"], row["line"], dict(row["metadata"]))
        for row in texts_of_shard(shard).to_pylist()
    ]


def remove_unfinished_shards(folder: Path) -> None:
    """Remove unfinished shards of killed processes. No other process may be writing to the folder."""
    for path in folder.glob(f".*{PART}"):
        shutil.rmtree(path, ignore_errors=True)


def _write_shard_files(folder: Path, tables: ShardTables) -> None:
    """Write a shard's tables, vectors and index into a folder, and sync them to disk."""
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
    """The documents of a planned shard, and the name of its folder."""

    name: str
    documents: list[Document]

    @property
    def characters(self) -> int:
        """Return the total number of characters in the documents."""
        return sum(len(document.text) for document in self.documents)


def plan_shards(
    inputs: Iterable[Document | Rejected], manifest: Manifest, rejected: list[Rejected]
) -> Iterator[ShardPlan]:
    """Group documents into shards in order and yield the plans. Append rejected inputs to `rejected`.

    A shard ends before its texts exceed the setting `shard`, a number of characters.
    """
    base = hash_of_settings(manifest)
    pending: list[Document] = []
    size = 0
    for item in inputs:
        if isinstance(item, Rejected):
            rejected.append(item)
            continue
        if pending and size + len(item.text) > manifest.settings["shard"]:
            yield _plan_of_documents(base, pending)
            pending, size = [], 0
        pending.append(item)
        size += len(item.text)
    if pending:
        yield _plan_of_documents(base, pending)


def hash_of_settings(manifest: Manifest) -> bytes:
    """Return the SHA-256 of everything that determines a shard's bytes, except its texts."""
    parts = [manifest.format, manifest.model.digest, manifest.settings, manifest.environment, manifest.layers]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).digest()


def _plan_of_documents(base: bytes, documents: list[Document]) -> ShardPlan:
    """Return the plan of a shard, named by a hash of its documents and the settings."""
    digest = hashlib.sha256(base)
    for document in documents:
        digest.update(json.dumps(astuple(document), sort_keys=True).encode() + b"\n")
    return ShardPlan(digest.hexdigest()[:24], documents)


SHARDS = "shards"
SHARD_NAME = re.compile("[0-9a-f]{24}")
QUARANTINE = "quarantine.parquet"


def check_outside_inputs(store: Path, paths: Sequence[str], files: Sequence[Path]) -> None:
    """Check that the index isn't inside an input folder and contains no input file, as the next run would read it."""
    resolved = store.resolve()
    for source in paths:
        folder = Path(source).resolve()
        if source != "-" and folder.is_dir() and (folder == resolved or folder in resolved.parents):
            raise RegardError(
                f"--out: the store {str(store)!r} is inside {source!r}, which is one of the inputs: use another"
            )
    for path in files:
        if str(path) != "-" and resolved in path.resolve().parents:
            raise RegardError(
                f"--out: the store {str(store)!r} holds {str(path)!r}, which is one of the inputs: use another"
            )


@contextmanager
def opened_store_folder(store: Path) -> Iterator[None]:
    """Create the index's folder if needed, and lock it against other runs inside the block.

    If the block raises, unfinished shards are removed, as well as a new index without shards.
    """
    created = _make_store_folder(store)
    message = f"store {str(store)!r} is being written by another run: wait until it has ended"
    lock = lock_folder(store, message, f"--out: cannot write {str(store)!r}")
    try:
        existed = (store / NAME).exists()
        try:
            yield
        except BaseException:
            remove_unfinished_shards(store / SHARDS)
            if not existed:
                _remove_empty_store(store, remove_folder=created)
            raise
    finally:
        lock.release()


def remove_other_shards(folder: Path, names: set[str]) -> None:
    """Remove all shards except the named ones, because their texts have changed since an earlier run."""
    remove_unfinished_shards(folder)
    try:
        for path in folder.iterdir():
            if path.name not in names and SHARD_NAME.fullmatch(path.name) and _is_shard(path):
                shutil.rmtree(path)
    except OSError as error:
        raise RegardError(f"cannot remove from {str(folder)!r}: {error.strerror or error}") from error


def _is_shard(folder: Path) -> bool:
    """Return whether a folder has a shard's files and no other file."""
    with suppress(RegardError):
        names = {INDEX, *ShardFiles(folder).index.files}
        return not folder.is_symlink() and {path.name for path in folder.iterdir()} <= names
    return False


def _make_store_folder(store: Path) -> bool:
    """Create the index's folder, and return whether it didn't exist before."""
    try:
        if store.exists() and not store.is_dir():
            raise RegardError(f"--out: {str(store)!r} is a file, expected a folder")
        if not store.parent.is_dir():
            raise RegardError(f"--out: cannot make {str(store)!r}, there is no folder {str(store.parent)!r}")
        created = not store.exists()
        if not created and not (store / NAME).exists():
            others = sorted(path.name for path in store.iterdir() if path.name not in (LOCK, SHARDS))
            if others:
                raise RegardError(f"--out: the folder {str(store)!r} isn't empty and isn't a store ({others[0]!r})")
        (store / SHARDS).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RegardError(f"--out: cannot write {str(store)!r}: {error.strerror or error}") from error
    return created


def _remove_empty_store(store: Path, *, remove_folder: bool) -> None:
    """Remove an index if it has no shard. remove_folder: remove its folder as well."""
    if any((store / SHARDS).iterdir()):
        return
    with suppress(OSError):
        for path in (store / NAME, store / LOCK):
            path.unlink(missing_ok=True)
        (store / SHARDS).rmdir()
        if remove_folder:
            store.rmdir()


@dataclass
class DocumentCounts:
    """Counts of documents: `read` in this run, and `gone` from the inputs. first: the id of the first missing one."""

    read: int = 0
    gone: int = 0
    first: str = ""


class StoredTexts:
    """The documents of an index in the order of reading. Missing shards are skipped."""

    def __init__(self, folder: Path, shards: Sequence[str]) -> None:
        """Find the shards that exist. shards: names of all shards, in order."""
        self._shards = [folder / name for name in shards if (folder / name / TEXTS).is_file()]

    def __iter__(self) -> Iterator[Document]:
        for shard in self._shards:
            yield from documents_of(shard)

    def sources(self) -> dict[str, int]:
        """Return the source files of the documents, numbered in order."""
        numbers: dict[str, int] = {}
        for shard in self._shards:
            for name in texts_of_shard(shard, ("source",)).column("source").unique().to_pylist():
                numbers.setdefault(name, len(numbers))
        return numbers


def check_listable(entries: Iterable[Path | Rejected], stored: StoredTexts) -> None:
    """Check that no unreadable folder has documents in the index, as regard can't know whether they still exist."""
    unseen = [entry for entry in entries if isinstance(entry, Unseen)]
    sources = stored.sources() if unseen else {}
    for entry in unseen:
        count = sum(source.startswith(f"{entry.source}/") for source in sources)
        if count:
            reason = entry.reason.removeprefix("cannot be read: ")
            raise RegardError(
                f"folder {entry.source!r} cannot be listed ({reason}), and the store has texts of {count:,} files "
                "in it: make it readable, or use another --out"
            )


def compare(
    new: Iterable[Document | Rejected], stored: StoredTexts, counts: DocumentCounts, *, by_id: bool, prune: bool = False
) -> Iterator[Document | Rejected]:
    """Yield the documents of this run and, unless `prune`, stored documents that are missing in it.

    Documents keep their order from earlier runs, so that shards stay the same. counts: updated here.
    """
    for missing, item in _merge_ids(new, stored) if by_id else _merge_rows(new, stored):
        if missing and isinstance(item, Document) and item.start == 0:
            counts.gone += 1
            counts.first = counts.first or item.id
        if not missing:
            counts.read += isinstance(item, Document) and item.start == 0
        if not (missing and prune):
            yield item


def _merge_rows(new: Iterable[Document | Rejected], stored: StoredTexts) -> Iterator[tuple[bool, Document | Rejected]]:
    """Merge the documents of this run with the stored ones by file and line. Yield pairs (is missing, document).

    Both sequences are sorted: files have the same order in every run, and rows are in the order of lines.
    """
    numbers = stored.sources()
    remaining = iter(stored)
    old, file = next(remaining, None), -1
    for item in new:
        if isinstance(item, Document):
            new_file = numbers.get(item.source, -1)
            while old is not None and new_file != file and numbers[old.source] <= file:  # the rest of the previous file
                yield True, old
                old = next(remaining, None)
            file = new_file
        if isinstance(item, Document) and item.source in numbers:
            location = numbers[item.source], item.line or 0
            while old is not None and (numbers[old.source], old.line or 0) < location:
                yield True, old
                old = next(remaining, None)
            while old is not None and (numbers[old.source], old.line or 0) == location:
                old = next(remaining, None)
        yield False, item
    if old is not None:
        yield True, old
        yield from ((True, document) for document in remaining)


def _merge_ids(new: Iterable[Document | Rejected], stored: StoredTexts) -> Iterator[tuple[bool, Document | Rejected]]:
    """Yield the documents of this run, then stored documents with other ids, as pairs (is missing, document)."""
    ids = set()
    for item in new:
        if isinstance(item, Document):
            ids.add(item.id)
        yield False, item
    yield from ((True, part) for part in stored if part.id not in ids)
