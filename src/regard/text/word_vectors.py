"""Static embeddings of words: the vectors of word2vec and GloVe files, one a word, the same in every text.

Mikolov et al. 2013, "Efficient Estimation of Word Representations in Vector Space"; Pennington et al. 2014, "GloVe:
Global Vectors for Word Representation". A file is read as a stream, and only the words asked for are kept: these files
hold millions.
"""

import struct
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import BinaryIO

import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import RegardError
from regard.files import unreadable

CHUNK = 1 << 20
LONGEST = 4096  # bytes of a word in a binary file: beyond it the file is something else


def read_static(file: Path, words: Collection[str]) -> dict[str, Float[Tensor, " W"]]:
    """Read the vectors of some words, each under its name; words that the file does not have are left out.

    A word is found as it is written, or else in lower case. The format is found from the file: word2vec binary (a line
    "count width", then each word, a blank and width float32s), word2vec text (the same line, then a line a word) and
    GloVe text (no such line).

    Raises:
        RegardError: the file cannot be read, is of none of these formats, or is cut short; the place is named.
    """
    wanted: dict[str, list[str]] = {}
    for word in words:
        for form in dict.fromkeys((word, word.lower())):
            wanted.setdefault(form, []).append(word)
    found: dict[str, dict[str, Tensor]] = {word: {} for word in words}
    try:
        with file.open("rb") as opened:
            for form, vector in _word_vectors_in_file(opened, file, set(wanted)):
                for word in wanted[form]:
                    found[word].setdefault(form, vector)
    except OSError as error:
        raise unreadable("--static", file, error) from error
    kept = {word: forms.get(word, forms.get(word.lower())) for word, forms in found.items()}
    return {word: vector for word, vector in kept.items() if vector is not None}


def _word_vectors_in_file(opened: BinaryIO, file: Path, wanted: Collection[str]) -> Iterator[tuple[str, Tensor]]:
    """Yield the vectors of the wanted forms, in the file's order."""
    first = opened.readline(CHUNK)
    head = first.split()
    if len(head) == 2 and head[0].isdigit() and head[1].isdigit():
        count, width = int(head[0]), int(head[1])
        start = opened.tell()
        if count < 1 or width < 1:
            raise RegardError(f"--static {str(file)!r}: its first line tells of {count} words of width {width}")
        if _word_vectors_are_binary(opened.read(LONGEST + 4 * width), width):
            opened.seek(start)
            yield from _read_binary_word_vectors(opened, file, count, width, wanted)
            return
        opened.seek(start)
        yield from _read_text_word_vectors(opened, file, width, wanted, 2, count)
        return
    opened.seek(0)
    yield from _read_text_word_vectors(opened, file, len(head) - 1, wanted, 1, None)


def _word_vectors_are_binary(head: bytes, width: int) -> bool:
    """Tell whether what follows the first line is no line of numbers."""
    line = head.split(b"\n", 1)[0].split(b" ")
    try:
        [float(number) for number in line[1:] if number.strip()]
        return len([number for number in line[1:] if number.strip()]) != width
    except ValueError:
        return True


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
        parts = raw.rstrip(b" \r\n").rsplit(b" ", width)
        if len(parts) != width + 1:
            raise RegardError(f"--static {str(file)!r}, line {number}: needs a word and {width} numbers")
        form = parts[0].decode("utf-8", errors="replace")
        if form not in wanted:
            continue
        try:
            yield form, torch.tensor([float(each) for each in parts[1:]])
        except ValueError as error:
            raise RegardError(f"--static {str(file)!r}, line {number}: {error}") from None
    if count is not None and read < count:
        raise RegardError(f"--static {str(file)!r} is cut short: it tells of {count} words and holds {read}")


def _read_binary_word_vectors(
    opened: BinaryIO, file: Path, count: int, width: int, wanted: Collection[str]
) -> Iterator[tuple[str, Tensor]]:
    buffer, at = b"", 0
    for number in range(count):
        while (end := buffer.find(b" ", at)) < 0 or len(buffer) < end + 1 + 4 * width:
            more = opened.read(CHUNK)
            if not more or (end < 0 and len(buffer) - at > LONGEST):
                raise RegardError(f"--static {str(file)!r} is cut short: it tells of {count} words and holds {number}")
            buffer, at = buffer[at:] + more, 0
        form = buffer[at:end].lstrip(b"\n").decode("utf-8", errors="replace")
        at = end + 1 + 4 * width
        if form in wanted:
            yield form, torch.tensor(struct.unpack(f"<{width}f", buffer[end + 1 : at]))
