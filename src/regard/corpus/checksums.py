"""Find damage in a shard's files when they are read.

pyarrow checks the page checksums of Parquet files. A shard's index has the SHA-256 of each megabyte of every file. It
covers what pages do not: the footers of Parquet files, vectors, and files that DuckDB reads.
"""

import hashlib
import json
from collections.abc import Collection
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from regard.errors import RegardError
from regard.lazy import import_from_corpus_extra

if TYPE_CHECKING:
    import pyarrow.parquet as pq

NAME = "index.json"
BLOCK = 1 << 20  # bytes that have one SHA-256


@dataclass(frozen=True)
class Index:
    """A shard's counts of parts, rows, tokens and spans, and the SHA-256 of each megabyte of its files."""

    counts: dict[str, int]
    files: dict[str, list[str]]


class ShardFiles:
    """The files of a shard's folder. Each block is checked once, before it is used."""

    def __init__(self, folder: Path, sha256: str = "") -> None:
        """Read nothing yet. sha256: of the index, if the manifest knows it."""
        self.folder = folder
        self._sha256 = sha256
        self._checked: set[tuple[str, int]] = set()

    @cached_property
    def index(self) -> Index:
        """Read the shard's index. Raises RegardError if it is missing or damaged."""
        path = self.folder / NAME
        with suppress(OSError, ValueError, TypeError):
            content = path.read_bytes()
            if self._sha256 in ("", hashlib.sha256(content).hexdigest()):
                return Index(**json.loads(content))
        raise damaged(path, "it is missing, or not the index that was written")

    def check(self, name: str, start: int = 0, stop: int | None = None) -> None:
        """Check the blocks that hold some bytes of a file, by default all. Raises RegardError if one is damaged."""
        path, sums = self.folder / name, self.index.files.get(name, [])
        stop = max(path.stat().st_size, BLOCK * len(sums)) if stop is None else stop
        with path.open("rb") as file:
            for n in range(start // BLOCK, -(-stop // BLOCK)):
                if (name, n) in self._checked:
                    continue
                file.seek(n * BLOCK)
                if [hashlib.sha256(file.read(BLOCK)).hexdigest()] != sums[n : n + 1]:
                    raise damaged(path, f"bytes {n * BLOCK:,} to {(n + 1) * BLOCK:,} are not those that were written")
                self._checked.add((name, n))

    def parquet(self, name: str, dictionaries: Collection[str] = ()) -> "pq.ParquetFile":
        """Open a Parquet file with a checked footer. Its pages are checked as they are read.

        dictionaries: columns of strings that are read as dictionaries.
        """
        path = self.folder / name
        size = max(1, path.stat().st_size)
        self.check(name, max(0, size - 8), size)
        with path.open("rb") as file:
            file.seek(max(0, size - 8))
            footer = int.from_bytes(file.read(4), "little")
        self.check(name, size - 8 - footer, size)
        return import_from_corpus_extra("pyarrow.parquet").ParquetFile(
            path, read_dictionary=list(dictionaries), pre_buffer=False, page_checksum_verification=True
        )


def damaged(path: Path, why: str) -> RegardError:
    """Make the error for a damaged file of a shard."""
    again = f"remove the folder {str(path.parent)!r}, and the same `regard embed` again makes it"
    return RegardError(f"{str(path)!r} is damaged: {why}; {again}")


def write_shard_index(folder: Path, counts: dict[str, int]) -> None:
    """Write index.json for the files in a shard's folder."""
    files = {}
    for path in sorted(folder.iterdir()):
        with path.open("rb") as file:
            files[path.name] = [hashlib.sha256(block).hexdigest() for block in iter(lambda: file.read(BLOCK), b"")]
    (folder / NAME).write_text(json.dumps(asdict(Index(counts, files))) + "\n", encoding="utf-8")


def sha256_of_shard_file(path: Path) -> str:
    """Compute the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
