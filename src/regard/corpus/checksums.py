"""Write the SHA-256 of every piece of a shard's files into its index, and check each piece when it is first read.

A piece is what is read at once: a row group of a Parquet file, a megabyte of vectors, any other file whole. So a
flipped bit is found where it would be shown, and nothing else has to be read for it.
"""

import hashlib
import io
import json
import sys
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from regard.corpus.word_filter import make_store_word_filter
from regard.errors import RegardError
from regard.files import open_regular, read_regular

if TYPE_CHECKING:
    from typing_extensions import Buffer

NAME = "index.json"
LARGEST = 8 << 20  # bytes that it may have: enough for 20 million rows
HEX = 64  # digits of a SHA-256
BLOCK = 1 << 20  # bytes of vectors in a piece, and of what is hashed at once


Piece = tuple[int, str]  # where it ends, and its SHA-256; it begins where the one before it ends


class Index:
    """What a shard's files have to be, and which words it has: what index.json says."""

    def __init__(self, folder: Path, data: dict[str, Any]) -> None:
        """Take what the index of this folder says; nothing of it is trusted."""
        self._file, self._data = folder / NAME, data
        self._pieces: dict[str, list[Piece]] = {}
        self.checked: dict[str, set[int]] = {}  # of each file the pieces that were found whole in this process

    def pieces(self, file: str) -> list[Piece]:
        """List the pieces of a file; none of one that it does not name. Raises RegardError where they are no pieces."""
        if file not in self._pieces:
            with self._typed():
                ends, sums = self._data["files"].get(file, ([], ""))
                found = [(int(end), str(sums[n * HEX : (n + 1) * HEX])) for n, end in enumerate(ends)]
                if len(sums) != HEX * len(ends) or any(a > b for a, b in pairwise([0, *ends])):
                    raise ValueError(f"pieces of {file!r}")
                self._pieces[file] = found
        return self._pieces[file]

    @cached_property
    def words(self) -> list[tuple[str, str]]:
        """The first and last word of each row group of rows.parquet. Raises RegardError where there are none."""
        with self._typed():
            return [(str(first), str(last)) for first, last in self._data["words"]]

    @cached_property
    def filter(self) -> bytes:
        """Read the filter of its words. Raises RegardError where there is none."""
        with self._typed():
            return bytes.fromhex(self._data["filter"])

    @contextmanager
    def _typed(self) -> Iterator[None]:
        try:
            yield
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise damaged(self._file, f"it lacks or misnames an entry ({error})") from error


class CheckedFile(io.RawIOBase):
    """A file to read, each piece of which is checked when the first byte of it is read."""

    def __init__(self, path: Path, index: Index | None) -> None:
        """Open a regular file. index: of its shard; None where it has none: then nothing is checked.

        Raises:
            RegardError: it cannot be read, is no regular file or a link, or has not its size.
        """
        self.path = path
        self._file = open_regular(path)
        self._pieces = [] if index is None else index.pieces(path.name)
        self._checked = set() if index is None else index.checked.setdefault(path.name, set())
        self._ends = [end for end, _ in self._pieces]
        size = self._file.seek(0, io.SEEK_END)
        self._file.seek(0)
        if index is not None and size != (self._ends[-1] if self._ends else -1):
            self._file.close()
            written = f"{self._ends[-1]:,}" if self._ends else "none"
            raise damaged(path, f"it has {size:,} bytes, {NAME} says {written}")

    def readable(self) -> bool:
        """Say that it can be read, as pyarrow asks."""
        return True

    def seekable(self) -> bool:
        """Say that any place can be read, as pyarrow asks."""
        return True

    def tell(self) -> int:
        """Return the place of the byte that is read next."""
        return self._file.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place; returns it, from the beginning."""
        return self._file.seek(offset, whence)

    def read(self, size: int = -1) -> bytes:
        """Read so many bytes, -1 for the rest. Raises RegardError where a piece of them is not what was written."""
        start = self._file.tell()
        content = self._file.read(size)
        self.check(start, start + len(content))
        return content

    def readinto(self, buffer: "Buffer") -> int:
        """Read as many bytes as there is room for; returns how many there were. Errors are those of `read`."""
        start = self._file.tell()
        count = int(self._file.readinto(buffer))  # type: ignore[attr-defined]  # typeshed's BinaryIO lacks it
        self.check(start, start + count)
        return count

    def check(self, start: int = 0, stop: int = sys.maxsize) -> None:
        """Check the pieces of some bytes, all by default. Raises RegardError where one is not what was written."""
        place = self._file.tell()
        n = bisect_right(self._ends, start)
        while n < len(self._ends) and (self._ends[n - 1] if n else 0) < stop:
            if n not in self._checked:
                self._check(n)
                self._checked.add(n)
            n += 1
        self._file.seek(place)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()

    def _check(self, n: int) -> None:
        start, end = (self._ends[n - 1] if n else 0), self._ends[n]
        self._file.seek(start)
        if _hash_of_shard_bytes(self._file, end - start) != self._pieces[n][1]:
            raise damaged(self.path, f"bytes {start:,} to {end:,} are not those that were written")


def damaged(path: Path, why: str) -> RegardError:
    """Make the error for a file of a shard that is not what was written."""
    again = f"remove the folder {str(path.parent)!r}, and the same `regard embed` again makes it"
    return RegardError(f"{str(path)!r} is damaged: {why}; {again}")


def write_shard_index(
    folder: Path, ends: dict[str, list[int]], words: Sequence[tuple[str, str]], names: Collection[str]
) -> None:
    """Write index.json into a shard's folder.

    ends: of files in pieces, where each ends; others are one each. words: the first and last of each row group of
    rows.parquet. names: what the filter holds, all words, and lemmas as `word_filter.LEMMA` marks them.
    """
    files = {}
    for path in sorted(each for each in folder.iterdir() if each.name != NAME):
        size = path.stat().st_size
        with path.open("rb") as file:
            stops = sorted({*ends.get(path.name, ()), size})
            sums = [_hash_of_shard_bytes(file, end - start) for start, end in pairwise([0, *stops])]
        files[path.name] = [stops, "".join(sums)]
    data = {"files": files, "words": list(map(list, words)), "filter": make_store_word_filter(names).hex()}
    (folder / NAME).write_text(json.dumps(data, ensure_ascii=False) + "\n", encoding="utf-8")


def read_shard_index(folder: Path, sha256: str = "") -> Index:
    """Read a shard's index.json. sha256: what it has to be, where that is known.

    Raises:
        RegardError: it is not there, is damaged, or is no index.
    """
    path = folder / NAME
    content = read_regular(path, most=LARGEST)
    if sha256 and hashlib.sha256(content).hexdigest() != sha256:
        raise damaged(path, "it is not the one that the manifest knows")
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise damaged(path, str(error).splitlines()[0]) from error
    if not isinstance(data, dict):
        raise damaged(path, "it is no JSON object")
    return Index(folder, data)


def sha256_of_shard_file(path: Path) -> str:
    """Compute the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _hash_of_shard_bytes(file: BinaryIO, count: int) -> str:
    """The SHA-256 of a file's next bytes."""
    whole = hashlib.sha256()
    while count > 0:
        block = file.read(min(count, BLOCK))
        if not block:
            break
        whole.update(block)
        count -= len(block)
    return whole.hexdigest()
