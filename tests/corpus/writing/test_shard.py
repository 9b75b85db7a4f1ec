"""Shards are written whole or not at all, and the same rows give the same bytes."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.corpus import schema
from regard.corpus.reading.document import Document, Rejected
from regard.corpus.settings import Settings
from regard.corpus.writing.shard import (
    ShardTables,
    plan_shards,
    read_counts,
    remove_unfinished_shards,
    sort_rows,
    write_shard,
)
from regard.errors import RegardError
from tests.corpus.test_manifest import MADE
from tests.support.shards import digest_of_shard


def tables() -> ShardTables:
    words = ["b", "a", "b"]
    zeros, documents = np.zeros(3, np.int32), ["y", "y", "x"]
    rows = pa.table(
        {"word": words, "form": words, "lemma": [None] * 3, "document": documents, "part": zeros, "start": [0, 2, 0],
         "end": [1, 3, 1], "window": zeros, "position": zeros, "tokens": zeros + 1},
        schema=schema.rows(3, statistics=False, sources=False),
    )  # fmt: skip
    vectors = np.arange(3, dtype=np.float32).reshape(3, 1, 1)
    rows, vectors = sort_rows(rows, vectors)
    spans = pa.table({"document": ["x"], "start": [1], "end": [2], "kind": ["unknown"], "text": ["?"]}, schema.spans())
    return ShardTables(schema.texts().empty_table(), rows, vectors, spans, None, 9)


def test_rows_are_sorted_with_their_vectors(tmp_path: Path) -> None:
    made = tables()
    assert made.rows.column("word").to_pylist() == ["a", "b", "b"]
    assert made.rows.column("document").to_pylist() == ["y", "x", "y"]
    assert made.vectors[:, 0, 0].tolist() == [1.0, 2.0, 0.0]
    path = write_shard(tmp_path, "one", made)
    assert read_counts(path) == {"parts": 0, "rows": 3, "tokens": 9, "unknown": 1}
    assert np.load(path / "vectors.npy").tolist() == made.vectors.tolist()
    assert digest_of_shard(path) == digest_of_shard(write_shard(tmp_path, "two", tables()))


def test_a_shard_that_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    write_shard(tmp_path, "one", tables())
    assert list((tmp_path / "one").iterdir()) == []


def test_half_written_folders_are_removed(tmp_path: Path) -> None:
    (tmp_path / ".one-abc.part").mkdir()
    (tmp_path / "two").mkdir()
    remove_unfinished_shards(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["two"]
    remove_unfinished_shards(tmp_path / "none")


@pytest.mark.parametrize("call", ["pyarrow.parquet.write_table", "os.fsync", "pathlib.Path.rename"])
def test_nothing_is_left_wherever_writing_fails(tmp_path: Path, call: str) -> None:
    with (
        mock.patch(call, side_effect=OSError(28, "No space left on device")),
        pytest.raises(RegardError, match="cannot write .*one'?: No space left on device"),
    ):
        write_shard(tmp_path, "one", tables())
    assert list(tmp_path.iterdir()) == []


def test_another_worker_was_first(tmp_path: Path) -> None:
    """Between the look and the renaming: the other's shard stays, and nothing is left."""
    write = pq.write_table

    def slow(*given: Any, **options: Any) -> None:
        write(*given, **options)
        with mock.patch("pyarrow.parquet.write_table", write):
            write_shard(tmp_path, "one", tables())

    with mock.patch("pyarrow.parquet.write_table", slow):
        assert write_shard(tmp_path, "one", tables()) == tmp_path / "one"
    assert [path.name for path in tmp_path.iterdir()] == ["one"]
    assert read_counts(tmp_path / "one")["rows"] == 3


def documents(lengths: list[int]) -> list[Document]:
    return [Document(f"d{n}", "x" * length, 0, "a.txt", None, {}) for n, length in enumerate(lengths)]


@given(st.lists(st.integers(1, 30), max_size=20), st.integers(1, 40))
def test_every_document_once_in_shards_that_are_full(lengths: list[int], size: int) -> None:
    manifest = replace(MADE, settings=Settings(shard=size).to_json())
    rejected: list[Rejected] = []
    bad = Rejected("b.txt", 3, "empty")
    shards = list(plan_shards([*documents(lengths), bad], manifest, rejected))
    assert [each for shard in shards for each in shard.documents] == documents(lengths)
    assert rejected == [bad]
    assert all(shard.characters <= size or len(shard.documents) == 1 for shard in shards)
    pairs = pairwise(shards)
    assert all(one.characters + len(other.documents[0].text) > size for one, other in pairs)
    assert len({shard.name for shard in shards}) == len(shards)


def test_names_depend_on_texts_places_and_settings() -> None:
    def name(document: Document, settings: Settings | None = None, digest: str = "ab12") -> str:
        manifest = replace(MADE, settings=(settings or Settings()).to_json(), model=replace(MADE.model, digest=digest))
        return next(plan_shards([document], manifest, [])).name

    (plain,) = documents([3])
    others = [
        replace(plain, text="xyx"), replace(plain, id="e"), replace(plain, start=1), replace(plain, line=1),
        replace(plain, metadata={"a": "b"}),
    ]  # fmt: skip
    names = [
        name(plain),
        *(name(each) for each in others),
        name(plain, Settings(dtype="float32")),
        name(plain, None, "c"),
    ]
    assert len(set(names)) == len(names)
    assert name(plain) == name(replace(plain))
