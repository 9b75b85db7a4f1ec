"""The folder of a store and its shards: made, kept to one run at a time, tidied up, taken away if nothing was written.

A shard's files are in a folder that gets its name when all of them are whole. The same rows give the same bytes:
nothing in a file depends on when, where or by which worker it was written.

A document that is missing now may have been deleted, or its disk isn't mounted. Only you know, so the index keeps it.
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
PART = ".part"  # how the folders end that are being written


@dataclass(frozen=True, eq=False)
class ShardTables:
    """The tables of a shard: see `regard.corpus.schema`. heads: None if no statistics were requested.

    tokens: how many its texts have, including special tokens, each counted once however many windows read it.
    """

    texts: "pa.Table"
    rows: "pa.Table"
    vectors: Float[np.ndarray, "rows layers M"]
    spans: "pa.Table"
    heads: "pa.Table | None" = None
    tokens: int = 0


def write_shard(folder: Path, name: str, tables: ShardTables) -> Path:
    """Write a shard into folder/name, atomically; one that is there already is left as it is.

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
    """The planned content of a shard. name: of its folder."""

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


SHARDS = "shards"
SHARD_NAME = re.compile("[0-9a-f]{24}")
QUARANTINE = "quarantine.parquet"


def check_apart(store: Path, paths: Sequence[str], files: Sequence[Path]) -> None:
    """Check that a store isn't among what is read: the next run would read the store as well."""
    place = store.resolve()
    for given in paths:
        folder = Path(given).resolve()
        if given != "-" and folder.is_dir() and (folder == place or folder in place.parents):
            raise RegardError(
                f"--out: the store {str(store)!r} is inside {given!r}, which is one of the inputs: use another"
            )
    for path in files:
        if str(path) != "-" and place in path.resolve().parents:
            raise RegardError(
                f"--out: the store {str(store)!r} holds {str(path)!r}, which is one of the inputs: use another"
            )


@contextmanager
def opened_store_folder(store: Path) -> Iterator[None]:
    """Make a store's folder where it isn't there, and keep other runs out of it inside the block.

    Where the block fails, what is half-written is removed, and a store in which no shard was written.
    """
    made = _make_store_folder(store)
    taken = f"store {str(store)!r} is being written by another run: wait until it has ended"
    lock = lock_folder(store, taken, f"--out: cannot write {str(store)!r}")
    try:
        began = (store / NAME).exists()
        try:
            yield
        except BaseException:
            remove_unfinished_shards(store / SHARDS)
            if not began:
                _remove_begun_store(store, whole=made)
            raise
    finally:
        lock.release()


def remove_others(folder: Path, names: set[str]) -> None:
    """Remove the shards of texts that were changed since an earlier run: all but the named ones."""
    remove_unfinished_shards(folder)
    try:
        for path in folder.iterdir():
            if path.name not in names and SHARD_NAME.fullmatch(path.name) and _is_shard(path):
                shutil.rmtree(path)
    except OSError as error:
        raise RegardError(f"cannot remove from {str(folder)!r}: {error.strerror or error}") from error


def _is_shard(folder: Path) -> bool:
    """Whether a folder holds a shard's files and nothing that somebody else put there."""
    with suppress(RegardError):
        known = {INDEX, *ShardFiles(folder).index.files}
        return not folder.is_symlink() and {path.name for path in folder.iterdir()} <= known
    return False


def _make_store_folder(store: Path) -> bool:
    """Make the store's folder; return whether it was not there."""
    try:
        if store.exists() and not store.is_dir():
            raise RegardError(f"--out: {str(store)!r} is a file, expected a folder")
        if not store.parent.is_dir():
            raise RegardError(f"--out: cannot make {str(store)!r}, there is no folder {str(store.parent)!r}")
        made = not store.exists()
        if not made and not (store / NAME).exists():
            others = sorted(path.name for path in store.iterdir() if path.name not in (LOCK, SHARDS))
            if others:
                raise RegardError(f"--out: the folder {str(store)!r} isn't empty and isn't a store ({others[0]!r})")
        (store / SHARDS).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RegardError(f"--out: cannot write {str(store)!r}: {error.strerror or error}") from error
    return made


def _remove_begun_store(store: Path, *, whole: bool) -> None:
    """Remove a store that has only its beginning. whole: the folder as well."""
    if any((store / SHARDS).iterdir()):
        return
    with suppress(OSError):
        for path in (store / NAME, store / LOCK):
            path.unlink(missing_ok=True)
        (store / SHARDS).rmdir()
        if whole:
            store.rmdir()


@dataclass
class Compared:
    """What was read, beside what a store held. read: documents; gone: of the store, not read again; first: of these."""

    read: int = 0
    gone: int = 0
    first: str = ""


class StoredTexts:
    """The documents of a store, in the order in which they were read; shards that aren't there have none."""

    def __init__(self, folder: Path, shards: Sequence[str]) -> None:
        """Look at the shards of a folder. shards: their names, in order."""
        self._shards = [folder / name for name in shards if (folder / name / TEXTS).is_file()]

    def __iter__(self) -> Iterator[Document]:
        for shard in self._shards:
            yield from documents_of(shard)

    def sources(self) -> dict[str, int]:
        """Number the files that documents are from, in order."""
        found: dict[str, int] = {}
        for shard in self._shards:
            for name in texts_of_shard(shard, ("source",)).column("source").unique().to_pylist():
                found.setdefault(name, len(found))
        return found


def check_seen(found: Iterable[Path | Rejected], stored: StoredTexts) -> None:
    """Check that whatever a store has documents from can be looked at: else nobody knows whether they are gone."""
    unseen = [each for each in found if isinstance(each, Unseen)]
    sources = stored.sources() if unseen else {}
    for each in unseen:
        count = sum(source.startswith(f"{each.source}/") for source in sources)
        if count:
            why = each.reason.removeprefix("cannot be read: ")
            raise RegardError(
                f"folder {each.source!r} cannot be listed ({why}), and the store has texts of {count:,} files in it: "
                "make it readable, or use another --out"
            )


def compare(
    read: Iterable[Document | Rejected], stored: StoredTexts, found: Compared, *, by_id: bool, prune: bool = False
) -> Iterator[Document | Rejected]:
    """Yield what is read and, unless they are pruned, the store's documents that aren't read again.

    Each stands where it was before: then its shard is the same.
    """
    for gone, each in _by_id(read, stored) if by_id else _in_place(read, stored):
        if gone and isinstance(each, Document) and each.start == 0:
            found.gone += 1
            found.first = found.first or each.id
        if not gone:
            found.read += isinstance(each, Document) and each.start == 0
        if not (gone and prune):
            yield each


def _in_place(read: Iterable[Document | Rejected], stored: StoredTexts) -> Iterator[tuple[bool, Document | Rejected]]:
    """Go through both at once: files are in one order whenever they are read, and rows in that of their lines.

    Yields whether a document is gone, and the document.
    """
    numbers = stored.sources()
    ahead = iter(stored)
    held, file = next(ahead, None), -1
    for each in read:
        if isinstance(each, Document):
            here = numbers.get(each.source, -1)
            while held is not None and here != file and numbers[held.source] <= file:  # the rest of the file before
                yield True, held
                held = next(ahead, None)
            file = here
        if isinstance(each, Document) and each.source in numbers:
            place = numbers[each.source], each.line or 0
            while held is not None and (numbers[held.source], held.line or 0) < place:
                yield True, held
                held = next(ahead, None)
            while held is not None and (numbers[held.source], held.line or 0) == place:
                held = next(ahead, None)
        yield False, each
    if held is not None:
        yield True, held
        yield from ((True, each) for each in ahead)


def _by_id(read: Iterable[Document | Rejected], stored: StoredTexts) -> Iterator[tuple[bool, Document | Rejected]]:
    ids = set()
    for each in read:
        if isinstance(each, Document):
            ids.add(each.id)
        yield False, each
    yield from ((True, part) for part in stored if part.id not in ids)
