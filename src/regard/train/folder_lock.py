"""One process at a time trains into a folder: a lock on a file in it, which dies with the process."""

import os
import time
import weakref
from pathlib import Path

from regard.errors import RegardError
from regard.locks import AVAILABLE, held_elsewhere, is_held

LOCK = ".lock"
TRIES, PAUSE = 5, 0.02  # who only looks whether it is locked has it for a moment


class FolderLock:
    """A lock on a run's folder for this process, until it is released or the process ends, however it ends.

    The file stays, empty but for the process's number; it is the lock on it that counts.
    """

    def __init__(self, run: Path) -> None:
        """Lock the folder, which has to be there.

        Raises:
            RegardError: another process trains into it, or the file system refuses.
        """
        try:
            handle = os.open(run / LOCK, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        except OSError as error:
            raise RegardError(f"--out {str(run)!r} cannot be written to: {error.strerror or error}") from error
        self.release = weakref.finalize(self, os.close, handle)
        if _run_lock_held_long(handle):
            holder = _process_in_run_lock(handle)
            self.release()
            process = "" if holder is None else f" (process {holder})"
            raise RegardError(
                f"--out {str(run)!r}: another regard train{process} is writing to it: wait for it to end, stop it, "
                "or name another folder"
            )
        try:
            os.truncate(handle, 0)
            os.write(handle, f"{os.getpid()}\n".encode())
        except OSError as error:
            self.release()
            raise RegardError(f"--out {str(run)!r} cannot be written to: {error.strerror or error}") from error


def training_process(run: Path) -> tuple[bool | None, int | None]:
    """Look whether a process trains into a folder now, and which; None where that cannot be told.

    Nothing is written, and nobody is kept out of the folder.
    """
    try:
        handle = os.open(run / LOCK, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        return False, None
    except OSError:
        return None, None
    try:
        if not AVAILABLE:
            return None, None
        return (True, _process_in_run_lock(handle)) if is_held(handle) else (False, None)
    finally:
        os.close(handle)


def _run_lock_held_long(handle: int) -> bool:
    for _ in range(TRIES - 1):
        if not held_elsewhere(handle):
            return False
        time.sleep(PAUSE)
    return held_elsewhere(handle)


def _process_in_run_lock(handle: int) -> int | None:
    """The number of the process that the file names."""
    holder = os.read(handle, 20).decode("ascii", "replace").strip()
    return int(holder) if holder.isdigit() else None
