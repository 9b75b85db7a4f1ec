"""Files as bytes, lines and text: compressed or not, whole or an error, in memory that does not grow with them."""

import bz2
import gzip
import io
import os
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.corpus.reading import streams
from regard.corpus.reading.streams import FAULTS, kind_of, lines, opened, reason, text_blocks
from regard.errors import RegardError

CONTENT = b"a line\n" * 100_000
frame = pa.Codec("zstd").compress
SKIPPED = b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc"  # a frame of Zstandard that holds no data


def read(path: Path, content: bytes) -> bytes:
    path.write_bytes(content)
    with opened(path) as stream:
        return stream.read()


def why(path: Path, content: bytes) -> str:
    with pytest.raises(FAULTS) as raised:
        read(path, content)
    return reason(raised.value)


def test_kinds() -> None:
    names = ["a.txt", "A.TXT", "a.b.jsonl.gz", "a.csv.ZST", "a.parquet", "a.txt.gz.csv"]
    kinds = [(".txt", ""), (".txt", ""), (".jsonl", ".gz"), (".csv", ".zst"), (".parquet", ""), (".csv", "")]
    assert [kind_of(Path(name)) for name in names] == kinds
    assert not any(kind_of(Path(name)) for name in ("a", "a.gz", "a.parquet.gz", ".txt", "a.txt.bz2", "txt", "-"))


def test_compressed_files(tmp_path: Path) -> None:
    assert read(tmp_path / "a.txt", CONTENT) == CONTENT
    assert read(tmp_path / "a.txt.gz", gzip.compress(CONTENT) + gzip.compress(b"more")) == CONTENT + b"more"
    assert (
        read(tmp_path / "a.txt.zst", frame(CONTENT, asbytes=True) + SKIPPED + frame(b"more", asbytes=True))
        == CONTENT + b"more"
    )
    assert read(tmp_path / "b.txt.zst", b"") == read(tmp_path / "b.txt.gz", b"") == b""


@pytest.mark.parametrize("kept", [1, 3, 12, 40, -9, -1])
def test_truncated_files(tmp_path: Path, kept: int) -> None:
    for ending, packed in (("zst", frame(os.urandom(10_000), asbytes=True)), ("gz", gzip.compress(os.urandom(10_000)))):
        assert why(tmp_path / f"a.txt.{ending}", packed[:kept]) == "cannot be read: Truncated compressed stream"


def test_what_is_not_what_its_name_says(tmp_path: Path) -> None:
    assert why(tmp_path / "a.txt.gz", bz2.compress(CONTENT)).startswith("cannot be read: ")
    assert why(tmp_path / "a.txt.zst", gzip.compress(CONTENT)).startswith("cannot be read: ")


def test_pipes_devices_and_what_is_not_there(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, said in (
        (tmp_path / "pipe", "needs to be a regular file"),
        (Path("/dev/zero"), "needs to be a regular file"),
        (tmp_path, "needs to be a regular file"),
    ):
        with pytest.raises(RegardError, match=said), opened(path):
            pass
    with pytest.raises(RegardError, match="No such file"), opened(tmp_path / "none"):
        pass


@pytest.mark.parametrize("ending", ["gz", "zst"])
def test_a_bomb_takes_no_memory(tmp_path: Path, ending: str) -> None:
    size, file = 100 << 20, tmp_path / f"a.txt.{ending}"
    with pa.CompressedOutputStream(str(file), {"gz": "gzip", "zst": "zstd"}[ending]) as packed:
        for _ in range(100):
            packed.write(bytes(1 << 20))
    tracemalloc.start()
    with opened(file) as stream:
        total = 0
        while block := stream.read(1 << 20):
            total += len(block)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == size
    assert peak < 40 << 20


def test_lines_and_those_that_are_too_long() -> None:
    content = b"a\r\nbb\n" + b"c" * 10 + b"\n" + b"d" * 11 + b"\n" + b"e" * 500_000 + b"\n\nf"
    assert list(lines(io.BytesIO(content), 11)) == [
        b"a\r\n",
        b"bb\n",
        b"c" * 10 + b"\n",
        b"d" * 11 + b"\n",
        None,
        b"\n",
        b"f",
    ]
    assert list(lines(io.BytesIO(b"e" * 12), 11)) == [None]
    assert list(lines(io.BytesIO(b""))) == []


@given(st.text(max_size=40), st.integers(1, 7))
def test_text_in_blocks_is_the_text(text: str, size: int) -> None:
    class Short(io.BytesIO):
        def read(self, count: int | None = -1) -> bytes:
            return super().read(size)

    content = text.replace("\0", "")
    assert "".join(text_blocks(Short(content.encode()))) == content.removeprefix("\ufeff")
    assert "".join(text_blocks(Short(content.encode("utf-8-sig")))) == content


@pytest.mark.parametrize("before", [0, 1, streams.BLOCK - 2, streams.BLOCK - 1, streams.BLOCK, 3 * streams.BLOCK + 5])
@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (b"\xff", "invalid UTF-8: byte 0xff at place {}"),
        (b"\xc3(", "invalid UTF-8: byte 0xc3 at place {}"),
        (b"\xe2\x82", "invalid UTF-8: byte 0xe2 at place {}"),
        (b"\xed\xa0\x80", "invalid UTF-8: byte 0xed at place {}"),
        (b"\0", "binary: byte 0x00 at place {}"),
    ],
)
def test_bad_bytes_are_named(before: int, bad: bytes, said: str) -> None:
    with pytest.raises(RegardError) as raised:
        list(text_blocks(io.BytesIO(b"a" * before + bad)))
    assert str(raised.value) == said.format(f"{before:,}")


def test_only_the_first_byte_order_mark_is_one() -> None:
    text = "a" * (streams.BLOCK - 3) + "\ufeffb\ufeff"
    assert "".join(text_blocks(io.BytesIO(("\ufeff" + text).encode()))) == text


def test_utf16_is_recognised() -> None:
    for encoding in ("utf-16-le", "utf-16-be"):
        with pytest.raises(RegardError, match="at place 0; it begins as UTF-16 does, needs UTF-8"):
            list(text_blocks(io.BytesIO("\ufeffa text".encode(encoding))))
