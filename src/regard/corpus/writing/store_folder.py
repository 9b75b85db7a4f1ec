"""The folder of a store: made, kept to one run at a time, tidied up, and taken away where nothing was written."""

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from regard.corpus.checksums import NAME as INDEX
from regard.corpus.checksums import ShardFiles
from regard.corpus.manifest import NAME
from regard.corpus.writing.shard import remove_unfinished_shards
from regard.errors import RegardError
from regard.files import LOCK, lock_folder

SHARDS = "shards"
SHARD_NAME = re.compile("[0-9a-f]{24}")
QUARANTINE = "quarantine.parquet"


def check_apart(store: Path, paths: Sequence[str], files: Sequence[Path]) -> None:
    """Check that a store is not among what is read: the next run would read the store as well.

    paths: as they were given. files: that were found there.
    """
    place = store.resolve()
    for given in paths:
        folder = Path(given).resolve()
        if given != "-" and folder.is_dir() and (folder == place or folder in place.parents):
            raise RegardError(f"--out: the store {str(store)!r} is inside {given!r}, which is to be read: give another")
    for path in files:
        if str(path) != "-" and place in path.resolve().parents:
            raise RegardError(f"--out: the store {str(store)!r} holds {str(path)!r}, which is to be read: give another")


@contextmanager
def opened_store_folder(store: Path) -> Iterator[None]:
    """Make a store's folder where it is not there, and keep other runs out of it inside the block.

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
            raise RegardError(f"--out: {str(store)!r} is a file, needs a folder")
        if not store.parent.is_dir():
            raise RegardError(f"--out: cannot make {str(store)!r}, there is no folder {str(store.parent)!r}")
        made = not store.exists()
        if not made and not (store / NAME).exists():
            others = sorted(path.name for path in store.iterdir() if path.name not in (LOCK, SHARDS))
            if others:
                raise RegardError(f"--out: the folder {str(store)!r} holds something else than a store ({others[0]!r})")
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
