"""Files are written whole or not at all, and a target that cannot be written is found before any work is done."""

import os
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from regard.errors import RegardError


def check_target(path: Path, kinds: Collection[str], option: str) -> None:
    """Refuse an output file that cannot be written later: its kind, its folder, its place.

    kinds: the endings that are known, with their dot. option: what the user typed, for the message.

    Raises:
        RegardError: naming the option, the file and what is needed.
    """
    if path == Path():
        raise RegardError(f"{option}: given no name or a folder, needs a file's name")
    if path.suffix.lower() not in kinds:
        needed = " or ".join(sorted(kinds))
        raise RegardError(f"{option}: cannot write {str(path)!r}, the file's ending needs to be {needed}")
    if path.is_dir():
        raise RegardError(f"{option}: cannot write {str(path)!r}, it is a folder; a file's name is needed")
    if not path.parent.is_dir():
        raise RegardError(f"{option}: cannot write {str(path)!r}, there is no folder {str(path.parent)!r}")
    try:
        handle, probe = tempfile.mkstemp(dir=path.parent, prefix=".regard-")
    except OSError as error:
        raise RegardError(f"{option}: cannot write {str(path)!r}: {error.strerror or error}") from error
    os.close(handle)
    Path(probe).unlink()


@contextmanager
def whole(path: Path | str) -> Iterator[Path]:
    """A temporary file beside path to write into; it takes path's place at the end, or vanishes where that fails.

    Raises:
        RegardError: the file system refuses (no space, no permission, no folder).
    """
    path = Path(path)
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix)
        os.close(handle)
    except OSError as error:
        raise RegardError(f"cannot write {str(path)!r}: {error.strerror or error}") from error
    temporary = Path(name)
    try:
        yield temporary
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
        temporary.chmod(mode)
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.replace(path)
    except OSError as error:
        raise RegardError(f"cannot write {str(path)!r}: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    """The process's umask; reading it means setting it for a moment."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
