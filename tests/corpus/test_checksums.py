"""The index of a shard: pieces that are checked once, when they are read."""

import hashlib
import io
import json
from itertools import pairwise
from pathlib import Path

import pytest

from regard.corpus.checksums import HEX, LARGEST, NAME, CheckedFile, read_shard_index, write_shard_index
from regard.errors import RegardError

CONTENT = bytes(range(251))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.bin").write_bytes(CONTENT)
    (tmp_path / "b.json").write_text("{}")
    write_shard_index(tmp_path, {"a.bin": [100, 200]}, [("a", "bank"), ("river", "é")], {"bank"})
    return tmp_path


def test_what_it_says(folder: Path) -> None:
    index = read_shard_index(folder)
    ends = [0, 100, 200, 251]
    assert index.pieces("a.bin") == [
        (end, hashlib.sha256(CONTENT[start:end]).hexdigest()) for start, end in pairwise(ends)
    ]
    assert index.pieces("b.json") == [(2, hashlib.sha256(b"{}").hexdigest())]
    assert index.pieces("c") == []
    assert index.words == [("a", "bank"), ("river", "é")]
    sha256 = hashlib.sha256((folder / NAME).read_bytes()).hexdigest()
    assert read_shard_index(folder, sha256).filter == index.filter
    with pytest.raises(RegardError, match="it is not the one that the manifest knows"):
        read_shard_index(folder, "0" * HEX)


def test_a_piece_is_checked_once_where_it_is_read_and_no_other(folder: Path) -> None:
    index = read_shard_index(folder)
    changed = bytearray(CONTENT)
    changed[150] ^= 4
    (folder / "a.bin").write_bytes(changed)
    with CheckedFile(folder / "a.bin", index) as file:
        assert file.read(100) == CONTENT[:100]
        assert index.checked == {"a.bin": {0}}
        with pytest.raises(RegardError, match="bytes 100 to 200 are not those that were written; remove the folder"):
            file.read(1)
        assert file.seek(-51, io.SEEK_END) == file.tell() == 200
        buffer = bytearray(60)
        assert file.readinto(buffer) == 51
        assert buffer[:51] == CONTENT[200:]
        assert index.checked == {"a.bin": {0, 2}}
        with pytest.raises(RegardError, match="bytes 100 to 200"):
            file.check()
    (folder / "a.bin").write_bytes(CONTENT[:-1])
    with pytest.raises(RegardError, match=r"it has 250 bytes, index.json says 251"):
        CheckedFile(folder / "a.bin", index)
    (folder / "c").write_bytes(b"x")
    with pytest.raises(RegardError, match=r"it has 1 bytes, index.json says none"):
        CheckedFile(folder / "c", index)
    with CheckedFile(folder / "a.bin", None) as file:  # of an earlier version: nothing is known
        assert file.read() == CONTENT[:-1]


@pytest.mark.parametrize(
    "data",
    [
        [], {}, {"files": 5}, {"files": {"a.bin": 5}}, {"files": {"a.bin": [[251], "x"]}},
        {"files": {"a.bin": [[9, 5], "0" * 2 * HEX]}}, {"files": {"a.bin": [["x"], "0" * HEX]}},
        {"files": {"a.bin": [[None], "0" * HEX]}}, {"files": {"a.bin": [[251], 7]}},
        {"files": {}, "words": 5}, {"files": {}, "words": [[1]]}, {"files": {}, "words": [], "filter": "xy"},
        {"files": {}, "words": [], "filter": 5},
    ],
)  # fmt: skip
def test_an_index_that_is_none(folder: Path, data: object) -> None:
    (folder / NAME).write_text(json.dumps(data))
    with pytest.raises(RegardError, match=r"index.json' is damaged") as said:  # which of them reads it
        index = read_shard_index(folder)
        index.pieces("a.bin")
        _ = index.words
        _ = index.filter
    assert "\n" not in str(said.value)


def test_content_that_is_no_index(folder: Path) -> None:
    for content in (b"", b"{", b"\xff", b"[" * 10**5):
        (folder / NAME).write_bytes(content)
        with pytest.raises(RegardError, match=r"index.json' is damaged"):
            read_shard_index(folder)
    (folder / NAME).write_bytes(b" " * (LARGEST + 1))
    with pytest.raises(RegardError, match="8,388,609 bytes, 8,388,608 are the most"):
        read_shard_index(folder)
