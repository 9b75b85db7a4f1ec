"""One process at a time trains into a folder: a lock on a file in it, which dies with the process."""

import os
import weakref
from pathlib import Path

from regard.errors import RegardError
from regard.locks import held_elsewhere

LOCK = ".lock"


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
        if held_elsewhere(handle):
            holder = os.read(handle, 20).decode("ascii", "replace").strip()
            self.release()
            process = f" (process {holder})" if holder.isdigit() else ""
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
