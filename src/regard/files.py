"""Write files whole or not at all, and read regular files up to a size.

A target that cannot be written is refused before any work is done. A killed process's temporary file is removed by the
next process that writes into the same folder; a file that is being written is locked, so that it is not taken for such
a leftover. Only regular files are read: a pipe, a device or a folder in a file's place is refused, for it could block
for ever or never end.
"""

import os
import re
import stat
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from regard.errors import RegardError
from regard.locks import AVAILABLE, lock, stands_at

TEMPORARY = re.compile(r"\.regard-[a-z0-9_]{8}\.part(\..*)?")

STANDARD_OUTPUT = Path("-")  # what --json takes for it
LARGEST = 20 << 20  # bytes of a file that is read whole: the index of the largest checkpoints has about half of that
KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}


def check_readable(path: Path, option: str = "") -> None:
    """Check that an input file can be read later; whether it is a regular file is checked when it is read.

    Raises:
        RegardError: naming the option, the file and why.
    """
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
        if kind in (stat.S_IFCHR, stat.S_IFBLK):  # reading it might never end
            raise RegardError(f"{option} {str(path)!r} cannot be read: it is a device, needs a file".lstrip())
        if kind != stat.S_IFIFO:  # opening it would wait for a writer
            path.open("rb").close()
    except OSError as error:
        raise unreadable(option, path, error) from error


def unreadable(option: str, path: Path, error: OSError) -> RegardError:
    """Make the error for an input file that cannot be read."""
    return RegardError(f"{option} {str(path)!r} cannot be read: {error.strerror or error}".lstrip())


def names_apart(paths: Sequence[Path]) -> list[str]:
    """Name files or folders by their last part, those of one name by as much of where they are as tells them apart."""
    whole = [path.resolve().parts for path in paths]
    names = []
    for own in whole:
        others = [other for other in whole if other != own]
        ends = (own[-n:] for n in range(1, len(own) + 1) if all(other[-n:] != own[-n:] for other in others))
        names.append(Path(*next(ends, own)).as_posix())
    return names


def check_output_file(path: Path, kinds: Collection[str], option: str) -> None:
    """Check that an output file can be written later: its ending, its folder, its place.

    kinds: the endings that are known, with their dot. option: what the user typed, for the message.

    Raises:
        RegardError: naming the option, the file and what is needed.
    """
    if path == STANDARD_OUTPUT and ".json" in kinds:
        if sys.__stdout__ is None:
            raise RegardError(f"{option}: cannot write to standard output, it is closed: give a file's name")
        return
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
        handle, probe = tempfile.mkstemp(dir=path.parent, prefix=".regard-", suffix=".part")
    except OSError as error:
        raise RegardError(f"{option}: cannot write {str(path)!r}: {error.strerror or error}") from error
    os.close(handle)
    Path(probe).unlink(missing_ok=True)


@contextmanager
def whole(path: Path | str) -> Iterator[Path]:
    """Open a temporary file beside path to write into; it replaces path at the end, or is removed where that fails.

    Raises:
        RegardError: the file system refuses (no space, no permission, no folder).
    """
    path = Path(path)
    try:
        remove_leftovers(path.parent)
        handle, temporary = _locked_temporary(path)
    except OSError as error:
        raise RegardError(f"cannot write {str(path)!r}: {error.strerror or error}") from error
    try:
        yield temporary
        with temporary.open("rb+") as written:  # Windows writes out no file that is open for reading alone
            os.fsync(written.fileno())
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
        temporary.chmod(mode)
        temporary.replace(path)
    except OSError as error:
        raise RegardError(f"cannot write {str(path)!r}: {error.strerror or error}") from error
    finally:
        if handle is not None:
            os.close(handle)  # after the file has its name: until then it is locked
        temporary.unlink(missing_ok=True)


def check_regular(path: Path | str, what: str = "") -> int:
    """Look up the size of a regular file, in bytes, without opening it; links are followed.

    what: what the file is, before its name in a message.

    Raises:
        RegardError: there is no such file, it cannot be looked at, or it is a pipe, a socket, a device or a folder.
    """
    named = f"{what} {str(path)!r}".lstrip()
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:  # ValueError: a name with a null character
        raise RegardError(f"{named} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if not stat.S_ISREG(status.st_mode):
        kind = KINDS.get(stat.S_IFMT(status.st_mode), "something else")
        raise RegardError(f"{named} cannot be read: it is {kind}, needs a regular file")
    return status.st_size


def read_regular(path: Path | str, what: str = "", *, most: int = LARGEST) -> bytes:
    """Read all of a regular file. most: how many bytes it may have.

    Raises:
        RegardError: as `check_regular`, or the file is larger.
    """
    named = f"{what} {str(path)!r}".lstrip()
    size = check_regular(path, what)
    if size > most:
        raise RegardError(f"{named} cannot be read: it has {size:,} bytes, {most:,} are the most")
    with open_regular(path, what) as file:
        try:
            return file.read(most)
        except OSError as error:
            raise RegardError(f"{named} cannot be read: {error.strerror or error}") from error


def open_regular(path: Path | str, what: str = "", *, links: bool = True) -> BinaryIO:
    """Open a regular file to read. what: what it is, before its name in a message. links: follow a link.

    Raises:
        RegardError: as `check_regular`, or it is a link that is not to be followed.
    """
    named = f"{what} {str(path)!r}".lstrip()
    try:
        if links or not stat.S_ISREG(os.lstat(path).st_mode):
            check_regular(path, what)
            if not links:
                raise RegardError(f"{named} cannot be read: it is a link, needs a regular file")
        # a file that was exchanged for a pipe meanwhile does not block
        return os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)), "rb")
    except OSError as error:
        raise RegardError(f"{named} cannot be read: {error.strerror or error}") from error


def is_link(path: Path) -> bool:
    """Whether a path is a link, or what Windows has for a link to a folder; what it leads to need not be there."""
    return path.is_symlink() or bool(getattr(os.path, "isjunction", lambda _: False)(path))


def is_temporary(name: str) -> bool:
    """Whether a file's name is that of one that is being written, or was when its process was killed."""
    return TEMPORARY.fullmatch(name) is not None


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of processes that were killed; those that are being written are locked, and stay."""
    try:
        leftovers = [folder / name for name in os.listdir(folder) if is_temporary(name)] if AVAILABLE else []
    except OSError:  # what cannot be listed may be written to all the same
        return
    for path in leftovers:
        try:
            handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:  # another user's, or gone by now
            continue
        try:
            if lock(handle) and stands_at(handle, path):
                path.unlink()
        except OSError:
            continue
        finally:
            os.close(handle)


def _locked_temporary(path: Path) -> tuple[int | None, Path]:
    """A new temporary file beside path, open and locked; closed where there are no locks."""
    while True:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".regard-", suffix=f".part{path.suffix}")
        if not AVAILABLE:
            os.close(handle)
            return None, Path(name)
        lock(handle, wait=True)
        if stands_at(handle, Path(name)):
            return handle, Path(name)
        os.close(handle)  # another process took it for a leftover before it was locked


def _umask() -> int:
    """The process's umask; reading it means setting it for a moment."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
