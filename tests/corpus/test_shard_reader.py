"""A shard's row groups and vectors: no more is read than a question needs."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from regard.corpus.store_tables import StoreTables
from tests.support.stores import Document, write_store

COUNT = 135  # in row groups of 64
VECTORS = np.random.default_rng(3).standard_normal((COUNT, 2, 2003)).astype(np.float32)


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
