"""Files are written whole or not at all, and what strangers wrote is read within limits.

A target that cannot be written is found before any work is done. What a killed process was writing is removed by the
next one that writes into the same folder; a file that is being written is locked, so that nobody takes it for such a
leftover. Only regular files are read: a pipe, a device or a folder in a file's place is refused, for it could block for
ever or never end.
"""

import json
import math
import os
import re
import stat
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.locks import THERE_ARE, lock, stands_at

TEMPORARY = re.compile(r"\.regard-[a-z0-9_]{8}\.part(\..*)?")

STANDARD_OUTPUT = Path("-")  # what --json takes for it
LARGEST = 20 << 20  # bytes of a JSON file: the index of the largest checkpoints has about half of that
SMALL = 4 << 20  # bytes of a config: with 100,000 labels it has as many
DEEPEST = 64  # objects and lists inside each other: what people write has five
KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}


def check_readable(path: Path, option: str = "") -> None:
    """Refuse an input file that cannot be read later; what is no regular file is left to who reads it.

    Raises:
        RegardError: naming the option, the file and why.
    """
    try:
        if not stat.S_ISFIFO(path.stat().st_mode):  # opening it would wait for a writer
            path.open("rb").close()
    except OSError as error:
        raise unreadable(option, path, error) from error


def unreadable(option: str, path: Path, error: OSError) -> RegardError:
    """What is said of an input file that cannot be read."""
    return RegardError(f"{option} {str(path)!r} cannot be read: {error.strerror or error}".lstrip())


def check_target(path: Path, kinds: Collection[str], option: str) -> None:
    """Refuse an output file that cannot be written later: its kind, its folder, its place.

    kinds: the endings that are known, with their dot. option: what the user typed, for the message.

    Raises:
        RegardError: naming the option, the file and what is needed.
    """
    if path == STANDARD_OUTPUT and ".json" in kinds:
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
    """A temporary file beside path to write into; it takes path's place at the end, or vanishes where that fails.

    Raises:
        RegardError: the file system refuses (no space, no permission, no folder).
    """
    path = Path(path)
    try:
        remove_leftovers(path.parent)
        handle, temporary = _begun(path)
    except OSError as error:
        raise RegardError(f"cannot write {str(path)!r}: {error.strerror or error}") from error
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
        if handle is not None:
            os.close(handle)  # after the file has its name: until then it is locked
        temporary.unlink(missing_ok=True)


def write_json(data: Any, file: Path, indent: int | None = None) -> None:
    """Write JSON, floats at full precision, to a file, whole or not at all; or to standard output, which is "-".

    Raises:
        RegardError: the file system refuses.
    """
    if file != STANDARD_OUTPUT:
        with whole(file) as temporary:
            text = json.dumps(data, ensure_ascii=False, indent=indent, allow_nan=False)
            temporary.write_text(text + "\n", encoding="utf-8")
        return
    known = (sys.stdout.encoding or "utf-8").lower().replace("-", "") == "utf8"
    sys.stdout.write(json.dumps(data, ensure_ascii=not known, indent=indent, allow_nan=False) + "\n")
    sys.stdout.flush()


def check_regular(path: Path | str, what: str = "") -> int:
    """The size of a regular file, in bytes, without opening it; links are followed.

    what: what the file is, before its name in a message.

    Raises:
        RegardError: there is no such file, it cannot be looked at, or it is a pipe, a socket, a device or a folder.
    """
    named = f"{what} {str(path)!r}".lstrip()
    try:
        found = os.stat(path)
    except (OSError, ValueError) as error:  # ValueError: a name with a null character
        raise RegardError(f"{named} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if not stat.S_ISREG(found.st_mode):
        kind = KINDS.get(stat.S_IFMT(found.st_mode), "something else")
        raise RegardError(f"{named} cannot be read: it is {kind}, needed is a regular file")
    return found.st_size


def read_regular(path: Path | str, what: str = "", *, most: int = LARGEST) -> bytes:
    """All of a regular file. most: how many bytes it may have.

    Raises:
        RegardError: as `check_regular`, or the file is larger.
    """
    named = f"{what} {str(path)!r}".lstrip()
    size = check_regular(path, what)
    if size > most:
        raise RegardError(f"{named} cannot be read: it has {size:,} bytes, {most:,} are the most")
    try:
        # a file that was exchanged for a pipe meanwhile does not block
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(handle, "rb") as file:
            return file.read(most)
    except OSError as error:
        raise RegardError(f"{named} cannot be read: {error.strerror or error}") from error


def read_json(
    path: Path | str, what: str = "", *, most: int = LARGEST, deepest: int = DEEPEST, infinite: bool = False
) -> dict[str, Any]:
    """The object that a JSON file holds, read strictly.

    what: what the file is, before its name in a message. most: how many bytes it may have. deepest: how many objects
    and lists may lie inside each other. infinite: whether numbers may be infinite or NaN, as Python writes them.

    Raises:
        RegardError: it is no regular file, too large, no UTF-8, no JSON, nested too deep, names an entry twice, holds a
            number that is none, or is no object; one line, with the file's name.
    """
    content = read_regular(path, what, most=most)
    named = f"{what} {str(path)!r}".lstrip()
    try:
        found = json.loads(content.decode("utf-8"), object_pairs_hook=_once)
        _check_values(found, deepest, infinite)
    except RecursionError:  # deeper than Python itself goes
        raise RegardError(f"{named} cannot be read: it is nested deeper than {deepest} levels") from None
    except ValueError as error:
        raise RegardError(f"{named} cannot be read: {str(error).splitlines()[0]}") from error
    if not isinstance(found, dict):
        raise RegardError(f"{named}: needed is a JSON object, given {type(found).__name__}")
    return found


def read_header(path: Path | str, key: str = "regard", *, most: int = 16 << 20) -> dict[str, Any]:
    """What a safetensors file says about itself in its metadata under a key, without its tensors.

    Raises:
        RegardError: it is no such file, or says nothing of the kind.
    """
    size = check_regular(path)
    try:
        with Path(path).open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > min(size, most):
                raise ValueError("its header is longer than the file, or than any that is read")
            found = json.loads(json.loads(file.read(length))["__metadata__"][key])
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise RegardError(f"{str(path)!r} cannot be read: {type(error).__name__}") from error
    if not isinstance(found, dict):
        raise RegardError(f"{str(path)!r} cannot be read: needed is a JSON object, given {type(found).__name__}")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object each of whose entries is named once."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the entry {twice[:80]!r} is there twice")
    return found


def _check_values(found: Any, deepest: int, infinite: bool) -> None:
    """Refuse what is nested too deep, and numbers that are none."""
    level, depth = [found], 0
    while level:
        if depth > deepest:
            raise ValueError(f"it is nested deeper than {deepest} levels")
        inner: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                inner.extend(each.values())
            elif isinstance(each, list):
                inner.extend(each)
            elif isinstance(each, float) and not infinite and not math.isfinite(each):
                raise ValueError(f"it holds the number {each}")
        level, depth = inner, depth + 1


def is_temporary(name: str) -> bool:
    """Whether a file's name is that of one that is being written, or was when its process was killed."""
    return TEMPORARY.fullmatch(name) is not None


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of processes that were killed; those that are being written are locked, and stay."""
    try:
        found = [folder / name for name in os.listdir(folder) if is_temporary(name)] if THERE_ARE else []
    except OSError:  # what cannot be listed may be written to all the same
        return
    for path in found:
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


def _begun(path: Path) -> tuple[int | None, Path]:
    """A new temporary file beside path, open and locked; closed where there are no locks."""
    while True:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".regard-", suffix=f".part{path.suffix}")
        if not THERE_ARE:
            os.close(handle)
            return None, Path(name)
        lock(handle, wait=True)
        if stands_at(handle, Path(name)):
            return handle, Path(name)
        os.close(handle)  # somebody took it for a leftover between its making and its lock


def _umask() -> int:
    """The process's umask; reading it means setting it for a moment."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
