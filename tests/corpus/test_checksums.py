"""A shard's files are checked by megabytes, once each, and Parquet files by pages."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from regard.corpus.checksums import BLOCK, NAME, ShardFiles, sha256_of_shard_file, write_shard_index
from regard.errors import RegardError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.bin").write_bytes(bytes(2 * BLOCK + 7))
    pq.write_table(pa.table({"word": ["bank", "river"]}), tmp_path / "b.parquet", write_page_checksum=True)
    write_shard_index(tmp_path, {"rows": 2})
    return tmp_path


def flip(file: Path, place: int) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= 4
    file.write_bytes(content)


def test_only_the_block_that_is_used_is_checked_and_once(folder: Path) -> None:
    files = ShardFiles(folder, sha256_of_shard_file(folder / NAME))
    assert files.index.counts == {"rows": 2}
    files.check("a.bin", 5, 6)
    flip(folder / "a.bin", 3)  # was checked
    flip(folder / "a.bin", BLOCK)
    files.check("a.bin", 0, BLOCK)
    files.check("a.bin", 2 * BLOCK, 2 * BLOCK + 1)
    for start, stop in ((BLOCK - 1, BLOCK + 1), (0, None)):
        with pytest.raises(RegardError, match="bytes 1,048,576 to 2,097,152 are not those that were written; remove"):
            files.check("a.bin", start, stop)


@pytest.mark.parametrize("content", [b"", b"abc", bytes(BLOCK), bytes(3 * BLOCK)])
def test_a_file_of_another_length(folder: Path, content: bytes) -> None:
    for name in ("a.bin", "b.parquet"):
        (folder / name).write_bytes(content)
        with pytest.raises(RegardError, match=f"{name}' is damaged: bytes"):
            ShardFiles(folder).check(name)
    with pytest.raises(RegardError, match=r"b.parquet' is damaged: bytes"):
        ShardFiles(folder).parquet("b.parquet")


@pytest.mark.parametrize("content", [None, "", "{", "[]", '{"counts": {}}'])
def test_an_index_that_is_none(folder: Path, content: str | None) -> None:
    data = json.loads((folder / NAME).read_text())
    (folder / NAME).unlink()
    if content is not None:
        (folder / NAME).write_text(content)
    with pytest.raises(RegardError, match=r"index.json' is damaged: it is missing, or not"):
        _ = ShardFiles(folder).index
    (folder / NAME).write_text(json.dumps(data, indent=1))
    assert ShardFiles(folder).index.counts == {"rows": 2}
    with pytest.raises(RegardError, match=r"index.json' is damaged"):
        _ = ShardFiles(folder, "0" * 64).index
