"""A shard's row groups and vectors: no more is read than a question needs."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from regard.corpus.shard_reader import (
    BLOCK,
    NAME,
    RowColumns,
    ShardFiles,
    cells_at,
    integers,
    sha256_of_shard_file,
    write_shard_index,
)
from regard.corpus.store_tables import StoreTables
from regard.errors import RegardError
from tests.support.stores import Document, write_store


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


COUNT = 135  # in row groups of 64
VECTORS = np.random.default_rng(3).standard_normal((COUNT, 2, 2003)).astype(np.float32)
WORDS = ["bank", "river", "bank", "sée", "", "b"]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("regard.corpus.writing.store_folder.ROW_GROUP", 64)
    monkeypatch.setattr("regard.corpus.schema.ROW_GROUP", 64)
    document = Document("a", " ".join(f"w{n:05}" for n in range(COUNT)))
    return write_store(tmp_path / "s", [([document], VECTORS)], layers=(1, 4))


def test_vectors_are_read_in_blocks_and_in_any_order(store: Path) -> None:
    with StoreTables(store) as tables:
        [shard] = tables.shards.values()
        rows = np.random.default_rng(4).permutation(COUNT)[:77]
        np.testing.assert_array_equal(shard.vectors(rows, 1), VECTORS[rows, 1])
        blocks = list(shard.all_vectors(0))
        assert [first for first, _ in blocks] == np.cumsum([0, *(len(each) for _, each in blocks[:-1])]).tolist()
        np.testing.assert_array_equal(np.concatenate([each for _, each in blocks]), VECTORS[:, 0])
        assert shard.vectors(np.empty(0, np.int64), 0).shape == (0, 2003)


@pytest.mark.parametrize(("word", "groups"), [("w00007", 1), ("w00063x", 0), ("w00064", 1), ("bank", 0), ("z", 0)])
def test_row_groups_that_cannot_hold_a_word_are_not_read(
    store: Path, word: str, groups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    before = pq.ParquetFile.read_row_group
    monkeypatch.setattr(
        pq.ParquetFile, "read_row_group", lambda self, n, **options: read.append(n) or before(self, n, **options)
    )
    with StoreTables(store) as tables:
        assert len(tables.rows_with("word", word, ["form"])) == groups
        assert len(read) == groups
        assert len(tables.rows_with("lemma", word, ["form"])) == 0
        assert len(read) == groups + 3


def test_some_rows_of_a_table_are_lists_and_equal_strings_one() -> None:
    table = pa.table(
        {"word": pa.array(WORDS).dictionary_encode(), "n": pa.array(range(6), pa.int32()), "line": [1, None] * 3}
    )
    found = cells_at(table.slice(1), np.array([4, 1, 1]), ["word", "n", "line"])
    assert found == {"word": ["b", "bank", "bank"], "n": [5, 2, 2], "line": [None, 1, 1]}
    assert found["word"][1] is found["word"][2]
    columns = RowColumns(["n", "word"])
    assert len(columns) == 0
    assert columns.row.tolist() == columns.numbers("n").tolist() == columns.list("word") == []
    columns.add("s", np.array([7, 8, 8]), found)
    columns.add("t", np.array([1]), {"word": ["x"], "n": [9]})
    assert (columns.shard, columns.row.tolist()) == (["s", "s", "s", "t"], [7, 8, 8, 1])
    assert columns.numbers("n").tolist() == [5, 2, 2, 9]
    assert columns.list("word") == ["b", "bank", "bank", "x"]


def test_numbers_as_they_lie_in_memory() -> None:
    for kind in (pa.int32(), pa.int64()):
        assert integers(pa.array([3, 1, 2], kind).slice(1)).tolist() == [1, 2]
    assert integers(pa.array([3, None])).tolist() == [3, -1]
