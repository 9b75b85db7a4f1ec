"""Static vectors of word2vec and GloVe files, in every format, whole and cut short."""

import gzip
import struct
from pathlib import Path

import pytest
import torch

from regard import RegardError
from regard.text.word_vectors import read_static

VECTORS = {"bank": [0.5, -1.25, 3.0], "River": [1.0, 0.0, -2.0], "river": [7.0, 8.0, 9.0], "new york": [1.5, 2.5, 3.5]}


def lines(*, header: bool) -> bytes:
    rows = [" ".join([word, *map(str, vector)]) for word, vector in VECTORS.items()]
    return ("\n".join([f"{len(VECTORS)} 3"] * header + rows) + "\n").encode()


def binary(*, newline: bool) -> bytes:
    rows = [word.encode() + b" " + struct.pack("<3f", *vector) + b"\n" * newline for word, vector in VECTORS.items()]
    return b"4 3\n" + b"".join(rows)


FORMATS = {
    "GloVe": lines(header=False),
    "word2vec text": lines(header=True),
    "GloVe with tabs": lines(header=False).replace(b" ", b"\t").replace(b"new\tyork", b"new york"),
    "GloVe with a byte order mark": b"\xef\xbb\xbf" + lines(header=False),
    "word2vec text with a byte order mark": b"\xef\xbb\xbf" + lines(header=True),
    "word2vec text with tabs": lines(header=True).replace(b" ", b"\t").replace(b"new\tyork", b"new york"),
    "word2vec text, two words first": b"4 3\n" + b"\n".join(lines(header=False).splitlines()[::-1]),
    "word2vec binary": binary(newline=True),
    "word2vec binary without line ends": binary(newline=False),
}


@pytest.mark.parametrize("content", FORMATS.values(), ids=FORMATS.keys())
def test_every_format(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "vectors"
    file.write_bytes(content)
    words = ["bank", "River", "Bank", "loan"] + ["new york"] * (b"\0" not in content)  # a blank ends a word in binary
    found = read_static(file, words)
    assert torch.equal(found["bank"], torch.tensor(VECTORS["bank"]))
    assert torch.equal(found["River"], torch.tensor(VECTORS["River"]))  # as it is written, before lower case
    assert torch.equal(found["Bank"], torch.tensor(VECTORS["bank"]))
    assert "loan" not in found
    if "new york" in words:
        assert torch.equal(found["new york"], torch.tensor(VECTORS["new york"]))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (FORMATS["word2vec binary"][:-7], "is cut short: it announces 4 words and holds 3"),
        (FORMATS["word2vec text"].rsplit(b"\n", 2)[0], "is cut short: it announces 4 words and holds 3"),
        (b"bank 1 2 3\nriver 1 2\n", "line 2: needs a word and 3 numbers"),
        (b"bank 1 x 3\n", "line 1: could not convert"),
        (b"bank 0,5 1 3\n", "line 1: could not convert .* needs numbers such as 0.25"),
        (b"1 3\nbank 0,5 1 3\n", "line 2: could not convert .* needs numbers such as 0.25"),
        (b"river 1 2 3\nbank nan 1 3\n", "line 2: a number is infinite, NaN or too large"),
        (b"bank 1 -inf 3\n", "line 1: a number is infinite"),
        (b"bank 1 1e40 3\n", "line 1: a number is infinite"),
        (b"1 3\nbank " + struct.pack("<3f", 1.0, float("nan"), 3.0), "word 'bank': a number is infinite, NaN"),
        (gzip.compress(FORMATS["GloVe"], mtime=0), "is compressed: unpack it first"),
        (FORMATS["GloVe"].decode().encode("utf-16"), "is UTF-16: save it as UTF-8"),
        (b"", "its first line is neither a word with numbers"),
        (b"4 0\n", "announces 4 words of width 0"),
    ],
)
def test_files_that_are_not_whole(content: bytes, says: str, tmp_path: Path) -> None:
    file = tmp_path / "vectors"
    file.write_bytes(content)
    with pytest.raises(RegardError, match=says):
        read_static(file, ["bank", "river"])


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="cannot be read: No such file"):
        read_static(tmp_path / "none", ["bank"])


def test_a_large_binary_file_is_read_in_pieces(tmp_path: Path) -> None:
    width, count = 300, 2500  # three megabytes: words and vectors fall across the pieces
    torch.manual_seed(0)
    table = torch.randn(count, width)
    file = tmp_path / "vectors"
    with file.open("wb") as out:
        out.write(f"{count} {width}\n".encode())
        for n in range(count):
            out.write(f"word{n} ".encode() + struct.pack(f"<{width}f", *table[n].tolist()) + b"\n")
    found = read_static(file, ["word0", "word877", f"word{count - 1}"])
    assert torch.equal(found["word877"], table[877])
    assert torch.equal(found[f"word{count - 1}"], table[-1])
