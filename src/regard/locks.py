"""Lock open files, by flock; the system releases a lock when its process ends, however it ends.

The locks are advisory: they keep out processes that ask for them, and no others. Where a system or a file system has
none, nothing is locked. AVAILABLE: whether the system has them.
"""

import os
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

AVAILABLE = fcntl is not None


def lock(handle: int, *, wait: bool = False) -> bool:
    """Lock an open file; False where another open file of it is locked, or where there are no locks.

    wait: until the other one is closed.
    """
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def held_elsewhere(handle: int) -> bool:
    """Whether another open file of this one is locked; where it is not, this one is locked now, where it can be."""
    return fcntl is not None and _is_locked(handle, fcntl.LOCK_EX)


def is_held(handle: int) -> bool:
    """Whether another open file of this one is locked, found by a lock that many may have and that is let go at once.

    False where there are no locks. Who wants the file for itself in that moment has to ask once more.
    """
    if fcntl is None:
        return False
    locked = _is_locked(handle, fcntl.LOCK_SH)
    with suppress(OSError):  # a file system without locks
        fcntl.flock(handle, fcntl.LOCK_UN)
    return locked


def _is_locked(handle: int, kind: int) -> bool:
    """Whether another open file of it is locked, found by locking it, where there are locks."""
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except OSError as error:
        return isinstance(error, BlockingIOError)
    return False


def stands_at(handle: int, path: Path) -> bool:
    """Whether an open file is the one that its path names, and not one that was removed or replaced meanwhile."""
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except OSError:
        return False
