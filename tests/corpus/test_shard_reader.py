"""A shard's row groups and vectors: no more is read than a question needs."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from regard.corpus.shard_reader import RowColumns, cells_at, integers
from regard.corpus.store_tables import StoreTables
from tests.support.stores import Document, write_store

COUNT = 135  # in row groups of 64
VECTORS = np.random.default_rng(3).standard_normal((COUNT, 2, 2003)).astype(np.float32)
WORDS = ["bank", "river", "bank", "sée", "", "b"]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("regard.corpus.writing.shard.ROW_GROUP", 64)
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
