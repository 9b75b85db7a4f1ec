"""Write files atomically, and read regular files of limited size."""

import json
import math
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from filelock import FileLock, Timeout

from regard.errors import RegardError, first_line

STANDARD_OUTPUT = Path("-")  # the value of --json for standard output
JSON_VERSION = 1  # the version of all --json formats
LARGEST = 20 << 20  # maximum bytes of a file read at once, about twice the index of the largest checkpoints
TEMPORARY = ".regard-*.part*"  # the names of files that are being written
LOCK = ".lock"  # an empty file that stays in the folder
NAMES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", list: "a list", dict: "names"}


def check_readable(path: Path, option: str = "") -> None:
    """Check that an input file or pipe exists and is readable."""
    if not path.is_fifo():  # opening it would wait for a writer
        open_regular(path, option).close()


def unreadable(option: str, path: Path | str, error: object) -> RegardError:
    """Return the error for an input file that can't be read. error: an exception, or the reason in words."""
    reason = getattr(error, "strerror", None) or error
    return RegardError(f"{option} {str(path)!r} cannot be read: {reason}".lstrip())


def check_output_file(path: Path, kinds: Collection[str], option: str) -> None:
    """Check an output file's extension, and that its folder exists and is writable.

    kinds: the allowed extensions, with their dots. option: the name of the option, for the error message.
    """
    if path == STANDARD_OUTPUT and ".json" in kinds:
        if sys.__stdout__ is None:
            raise RegardError(f"{option}: standard output is closed: pass a file name")
        return
    named = f"{option}: cannot write {str(path)!r}"
    if path.suffix.lower() not in kinds:
        raise RegardError(f"{named}, but the file name must end in {' or '.join(sorted(kinds))}")
    if path.is_dir():
        raise RegardError(f"{named}, but it is a folder: pass a file name")
    if not path.parent.is_dir():
        raise RegardError(f"{named}, but there is no folder {str(path.parent)!r}")
    if not os.access(path.parent, os.W_OK):
        raise RegardError(f"{named}, but the folder {str(path.parent)!r} is read-only")


@contextmanager
def whole(path: Path | str) -> Iterator[Path]:
    """Yield a temporary file next to path. It replaces path at the end of the block, or is removed after an error."""
    path = Path(path)
    temporary = path.with_name(f".regard-{secrets.token_hex(4)}.part{path.suffix}")
    try:
        temporary.touch(exist_ok=False)
        try:
            yield temporary
            with temporary.open("rb+") as written:
                os.fsync(written.fileno())
            if path.exists():
                shutil.copymode(path, temporary)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise RegardError(f"cannot write {str(path)!r}: {error.strerror or error}") from error


def check_regular(path: Path | str, kind: str = "") -> int:
    """Return the size of a regular file in bytes, without opening it: a pipe could block, a device could be endless.

    kind: of the file, printed before its name in error messages.
    """
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:  # ValueError: a name with a null character
        raise unreadable(kind, path, error) from error
    if not stat.S_ISREG(status.st_mode):
        raise unreadable(kind, path, "it isn't a regular file")
    return status.st_size


def read_regular(path: Path | str, kind: str = "", *, most: int = LARGEST) -> bytes:
    """Return the content of a regular file of at most `most` bytes."""
    with open_regular(path, kind) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise unreadable(kind, path, f"it has {size:,} bytes, at most {most:,} are allowed")
        return file.read(most)


def open_regular(path: Path | str, kind: str = "") -> BinaryIO:
    """Open a regular file to read its bytes."""
    check_regular(path, kind)
    try:
        return open(path, "rb")
    except OSError as error:
        raise unreadable(kind, path, error) from error


def is_temporary(name: str) -> bool:
    """Return whether a file name belongs to a temporary file of `whole`, which a killed process may have left."""
    return Path(name).match(TEMPORARY)


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of killed processes from a folder. No other process may be writing to it."""
    for path in folder.glob(TEMPORARY):
        path.unlink(missing_ok=True)


def lock_folder(folder: Path, taken: str, unwritable: str) -> FileLock:
    """Lock a folder for this process, until it calls `release` on the lock.

    taken: the message if another process has the lock. unwritable: the start of the message if locking fails.
    """
    lock = FileLock(folder / LOCK, timeout=0, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        raise RegardError(taken) from None
    except OSError as error:
        raise RegardError(f"{unwritable}: {error.strerror or error}") from error
    return lock


def parse_json(content: bytes | str) -> Any:
    """Parse JSON. Raises RegardError, whose message is a reason to print after the file's name."""
    try:
        return json.loads(content if isinstance(content, str) else content.decode("utf-8-sig"))
    except RecursionError:
        raise RegardError("it is nested too deep") from None
    except ValueError as error:
        raise RegardError(first_line(error)) from error


def read_json(path: Path | str, kind: str = "") -> dict[str, Any]:
    """Return the object in a JSON file. kind: of the file, for error messages."""
    content = read_regular(path, kind)
    try:
        return expect_type("its content", parse_json(content), dict)
    except RegardError as error:
        raise unreadable(kind, path, error) from error


def write_json(data: Any, file: Path, indent: int | None = None) -> None:
    """Write data as JSON with full-precision floats, to a file (atomically) or to standard output ("-")."""
    if file != STANDARD_OUTPUT:
        with whole(file) as temporary:
            text = json.dumps(data, ensure_ascii=False, indent=indent, allow_nan=False)
            temporary.write_text(text + "\n", encoding="utf-8")
        return
    utf8 = (sys.stdout.encoding or "utf-8").lower().replace("-", "") == "utf8"
    sys.stdout.write(json.dumps(data, ensure_ascii=not utf8, indent=indent, allow_nan=False) + "\n")
    sys.stdout.flush()


def plain_json_values(value: Any) -> Any:
    """Convert dicts, sequences, tensors and arrays to JSON's own types. NaN and infinity become null."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: plain_json_values(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, range)):
        return [plain_json_values(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def expect_type(name: str, value: Any, *kinds: type | None) -> Any:
    """Return a value of a JSON file if it has one of these types. None means null, and an int also fits float."""
    types = tuple(type(None) if kind is None else kind for kind in kinds)
    number = type(value) is int and float in kinds
    if not (number or (isinstance(value, types) and (type(value) is not bool or bool in kinds))):
        needed = " or ".join("null" if kind is None else NAMES[kind] for kind in kinds)
        raise RegardError(f"{name} is {short(value)}, expected {needed}")
    return value


def short(value: Any) -> str:
    """Return the repr of a value, cut to 40 characters, for an error message."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
