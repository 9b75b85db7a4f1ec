"""Keep a folder to one process at a time, by a lock that the system releases when its process ends, however it ends."""

from pathlib import Path

from filelock import FileLock, Timeout

from regard.errors import RegardError

LOCK = ".lock"  # an empty file that stays in the folder
PAUSE = 0.1  # seconds: `is_locked` has the lock for a moment


def lock_folder(folder: Path, taken: str, unwritable: str) -> FileLock:
    """Lock a folder for this process, until it calls `release`.

    taken: the message if another process has the lock. unwritable: the message's start if the file system refuses.
    """
    lock = FileLock(folder / LOCK, timeout=PAUSE, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        raise RegardError(taken) from None
    except OSError as error:
        raise RegardError(f"{unwritable}: {error.strerror or error}") from error
    return lock


def is_locked(folder: Path) -> bool | None:
    """Whether a process, this one included, has locked a folder; None if the file system does not say."""
    if not (folder / LOCK).exists():
        return False
    try:
        with FileLock(folder / LOCK, timeout=0):
            return False
    except Timeout:
        return True
    except OSError:
        return None
