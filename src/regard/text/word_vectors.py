"""Static embeddings of words: the vectors of word2vec and GloVe files, one a word, the same in every text.

Mikolov et al. 2013, "Efficient Estimation of Word Representations in Vector Space"; Pennington et al. 2014, "GloVe:
Global Vectors for Word Representation". A file is read as a stream, and only the words asked for are kept: these files
hold millions.
"""

import re
import struct
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import RegardError
from regard.files import unreadable

CHUNK = 1 << 20
LONGEST = 4096  # bytes of a word in a binary file: beyond it the file is something else
BOM, CONTROL = b"\xef\xbb\xbf", re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")  # bytes that no text has, and numbers do
PACKED, WIDE = (b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ"), (b"\xff\xfe", b"\xfe\xff")  # gzip, zip, ...; UTF-16


def read_static(file: Path, words: Collection[str]) -> dict[str, Float[Tensor, " W"]]:
    """Read the vectors of some words, each under its name; words that the file does not have are left out.

    A word is found as it is written, or else in lower case. The format is found from the file: word2vec binary (a line
    "count width", then each word, a blank and width float32s), word2vec text (the same line, then a line a word) and
    GloVe text (no such line). Blanks or tabs separate a text's numbers.
    """
    wanted: dict[str, list[str]] = {}
    for word in words:
        for form in dict.fromkeys((word, word.lower())):
            wanted.setdefault(form, []).append(word)
    vectors: dict[str, dict[str, Tensor]] = {word: {} for word in words}
    try:
        with file.open("rb") as opened:
            for form, vector in _word_vectors_in_file(opened, file, set(wanted)):
                for word in wanted[form]:
                    vectors[word].setdefault(form, vector)
    except OSError as error:
        raise unreadable("--static", file, error) from error
    chosen = {word: forms.get(word, forms.get(word.lower())) for word, forms in vectors.items()}
    return {word: vector for word, vector in chosen.items() if vector is not None}


def _word_vectors_in_file(opened: BinaryIO, file: Path, wanted: Collection[str]) -> Iterator[tuple[str, Tensor]]:
    """Yield the vectors of the wanted forms, in the file's order."""
    first = opened.readline(CHUNK)
    if first.startswith(PACKED):
        raise RegardError(f"--static {str(file)!r} is compressed: unpack it first")
    if first.startswith(WIDE):
        raise RegardError(f"--static {str(file)!r} is UTF-16: save it as UTF-8")
    head = first.removeprefix(BOM).split()
    if len(head) == 2 and all(number.isdigit() and len(number) < 16 for number in head):
        count, width = int(head[0]), int(head[1])
        start = opened.tell()
        if count < 1 or width < 1:
            raise RegardError(f"--static {str(file)!r}: its first line announces {count} words of width {width}")
        binary = CONTROL.search(opened.read(min(LONGEST + 4 * width, CHUNK)))
        opened.seek(start)
        if binary:
            yield from _read_binary_word_vectors(opened, file, count, width, wanted)
        else:
            yield from _read_text_word_vectors(opened, file, width, wanted, 2, count)
    else:
        opened.seek(len(BOM) if first.startswith(BOM) else 0)
        yield from _read_text_word_vectors(opened, file, len(head) - 1, wanted, 1, None)


def _finite_vector(numbers: Iterable[bytes | float], where: str) -> Float[Tensor, " W"]:
    """Make a vector in float32. where: names the file and the place in it. Raises RegardError."""
    try:
        vector = torch.tensor([float(number) for number in numbers], dtype=torch.float32)
    except ValueError as error:
        raise RegardError(f"{where}: {error}, needs numbers such as 0.25") from None
    if not bool(vector.isfinite().all()):
        raise RegardError(f"{where}: a number is infinite, NaN or too large for float32, needs finite ones")
    return vector


def _read_text_word_vectors(
    opened: BinaryIO, file: Path, width: int, wanted: Collection[str], line: int, count: int | None
) -> Iterator[tuple[str, Tensor]]:
    if width < 1:
        raise RegardError(
            f"--static {str(file)!r}: its first line is neither a word with numbers nor a count and a width"
        )
    read = 0
    for number, raw in enumerate(opened, line):
        if not raw.strip():
            continue
        read += 1
        parts = raw.replace(b"\t", b" ").rstrip(b" \r\n").rsplit(b" ", width)
        if len(parts) != width + 1:
            raise RegardError(f"--static {str(file)!r}, line {number}: needs a word and {width} numbers")
        form = parts[0].decode("utf-8", errors="replace")
        if form in wanted:
            yield form, _finite_vector(parts[1:], f"--static {str(file)!r}, line {number}")
    if count is not None and read < count:
        raise RegardError(f"--static {str(file)!r} is cut short: it announces {count} words and holds {read}")


def _read_binary_word_vectors(
    opened: BinaryIO, file: Path, count: int, width: int, wanted: Collection[str]
) -> Iterator[tuple[str, Tensor]]:
    buffer, at = b"", 0
    for number in range(count):
        while (end := buffer.find(b" ", at)) < 0 or len(buffer) < end + 1 + 4 * width:
            more = opened.read(CHUNK)
            if not more or (end < 0 and len(buffer) - at > LONGEST):
                raise RegardError(f"--static {str(file)!r} is cut short: it announces {count} words and holds {number}")
            buffer, at = buffer[at:] + more, 0
        form = buffer[at:end].lstrip(b"\n").decode("utf-8", errors="replace")
        at = end + 1 + 4 * width
        if form in wanted:
            numbers = struct.unpack(f"<{width}f", buffer[end + 1 : at])
            yield form, _finite_vector(numbers, f"--static {str(file)!r}, word {form!r}")
