"""The folder of a store: made, kept to one run at a time, tidied up, and taken away where nothing was written."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from regard.corpus.manifest import NAME
from regard.corpus.writing.plan_shards import is_shard
from regard.corpus.writing.shard import remove_unfinished_shards
from regard.errors import RegardError
from regard.locks import LOCK, lock_folder

SHARDS = "shards"
QUARANTINE = "quarantine.parquet"


def check_apart(store: Path, paths: Sequence[str], files: Sequence[Path]) -> None:
    """Check that a store is not among what is read: the next run would read the store as well.

    paths: as they were given. files: that were found there.

    Raises:
        RegardError: the store is in a folder that is read, or a file that is read is in the store.
    """
    place = store.resolve()
    for given in paths:
        folder = Path(given).resolve()
        if given != "-" and folder.is_dir() and (folder == place or folder in place.parents):
            raise RegardError(f"--out: the store {str(store)!r} is inside {given!r}, which is to be read: give another")
    for path in files:
        if str(path) != "-" and place in path.resolve().parents:
            raise RegardError(f"--out: the store {str(store)!r} holds {str(path)!r}, which is to be read: give another")


def _check_own(store: Path) -> None:
    """Check that a store's parts are in its own folder: where one is a link, others' files would be written or removed.

    Raises:
        RegardError: one of them, or of its shards, is a link.
    """
    shards = store / SHARDS
    parts = [store / name for name in (NAME, LOCK, QUARANTINE)] + [shards]
    try:
        within = sorted(shards.iterdir()) if shards.is_dir() and not shards.is_symlink() else []
    except OSError as error:
        raise RegardError(f"--out: {str(shards)!r} cannot be listed: {error.strerror or error}") from error
    for path in (*parts, *within):
        if path.is_symlink():
            raise RegardError(
                f"--out: {str(path)!r} is a link: what a store consists of needs to be in its own folder, which itself "
                "may be anywhere"
            )


@contextmanager
def opened_store_folder(store: Path) -> Iterator[None]:
    """Make a store's folder where it is not there, and keep other runs out of it inside the block.

    Where the block fails, what is half-written is removed, and a store in which no shard was written.

    Raises:
        RegardError: it is a file, holds something else than a store or a link, cannot be made or written to, or
            another run is writing into it.
    """
    _check_own(store)
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


def remove_others(folder: Path, names: set[str], base: bytes) -> None:
    """Remove the shards of texts that were changed since an earlier run of the same paths, and nothing else.

    base: of the store's manifest, by `hash_of_settings`: which shards are its own.

    Raises:
        RegardError: the file system refuses.
    """
    remove_unfinished_shards(folder)
    try:
        for path in folder.iterdir():
            if path.name not in names and is_shard(path, base):
                shutil.rmtree(path)
    except OSError as error:
        raise RegardError(f"cannot remove from {str(folder)!r}: {error.strerror or error}") from error


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
