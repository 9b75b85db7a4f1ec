"""Open the files of a corpus as bytes, uncompressed on the way, and read them as lines or text in bounded memory."""

import codecs
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, runtime_checkable

from regard.errors import RegardError
from regard.files import check_regular
from regard.lazy import import_from_corpus_extra

BLOCK = 1 << 18  # bytes that are read at once
UNPACKED = 1 << 13  # bytes that are uncompressed at once: as many are lost before the end of a truncated file
LONGEST_LINE = 128 << 20  # bytes of a line that is read: of some text it takes eight times as much memory
FAULTS = (OSError, RegardError)  # what reading raises if a file is not as it should be

KINDS = (".txt", ".jsonl", ".csv", ".parquet")
COMPRESSED = {".gz": "gzip", ".zst": "zstd"}  # as pyarrow calls them
NEEDED = "needs files .txt, .jsonl or .csv (each also .gz or .zst), or .parquet"


@runtime_checkable
class Stream(Protocol):
    """Bytes to read from: a file, or what is uncompressed from one."""

    def read(self, size: int = -1, /) -> bytes:
        """Read at most so many bytes; none at the end."""
        ...

    def readline(self, size: int = -1, /) -> bytes:
        """Read to the end of a line, and at most so many bytes."""
        ...


def kind_of(path: Path) -> tuple[str, str] | None:
    """Tell a file's kind and its compression from its name: (".csv", ".gz"), (".csv", ""); None where it is unknown."""
    endings = [ending.lower() for ending in path.suffixes[-2:]]
    if endings and endings[-1] in KINDS:
        return endings[-1], ""
    if len(endings) == 2 and endings[1] in COMPRESSED and endings[0] in KINDS and endings[0] != ".parquet":
        return endings[0], endings[1]
    return None


@contextmanager
def opened(path: Path) -> Iterator[Stream]:
    """Open a regular file, uncompressed on the way if its name says that it is compressed."""
    check_regular(path)
    with path.open("rb") as file:
        kind = kind_of(path)
        compression = kind[1] if kind else ""
        if not compression:
            yield file
            return
        packed = import_from_corpus_extra("pyarrow").CompressedInputStream(file, COMPRESSED[compression])
        with io.BufferedReader(packed, UNPACKED) as inside:
            yield inside


def reason(error: Exception) -> str:
    """Say in one line why something could not be read; error: of FAULTS."""
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read: {error.strerror}"
    said = str(error).splitlines()[0] if str(error) else type(error).__name__
    return said if isinstance(error, RegardError) else f"cannot be read: {said}"


def lines(stream: Stream, longest: int | None = None) -> Iterator[bytes | None]:
    """Read lines with their ends; None for one of more than `longest` bytes (LONGEST_LINE), which is never held."""
    most = LONGEST_LINE if longest is None else longest
    while line := stream.readline(most + 1):
        if len(line) <= most or line.endswith(b"\n"):
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(BLOCK)
        yield None


def text_blocks(stream: Stream) -> Iterator[str]:
    """Decode UTF-8 block by block: characters as they stand, without the byte order mark at the start."""
    decoder, place, begun = codecs.getincrementaldecoder("utf-8")(), 0, False
    while True:
        block = stream.read(BLOCK)
        if (nul := block.find(b"\0")) >= 0 and not _document_begins_as_utf16(block, place):
            raise RegardError(f"binary: byte 0x00 at place {place + nul:,}")
        held = len(decoder.getstate()[0])
        try:
            text = decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            raise RegardError(no_utf8(error, place - held)) from None
        if text and not begun:
            text, begun = text.removeprefix("\ufeff"), True
        if text:
            yield text
        if not block:
            return
        place += len(block)


def no_utf8(error: UnicodeDecodeError, before: int = 0) -> str:
    """Say which byte is no UTF-8. before: how many bytes came before those that the error is about."""
    byte, place = error.object[error.start], before + error.start
    hint = "; it begins as UTF-16 does, needs UTF-8" if _document_begins_as_utf16(error.object, before) else ""
    return f"invalid UTF-8: byte {byte:#04x} at place {place:,}{hint}"


def _document_begins_as_utf16(block: bytes, place: int) -> bool:
    return place == 0 and block[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
