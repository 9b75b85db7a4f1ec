"""Shards are written whole or not at all, and the same rows give the same bytes."""

import random
from collections.abc import Iterator
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
from regard.corpus.reading.documents import Unseen
from regard.corpus.schema import NAME
from regard.corpus.settings import Settings
from regard.corpus.writing.build_shard import texts_table
from regard.corpus.writing.store_folder import (
    TEXTS,
    DocumentCounts,
    ShardTables,
    StoredTexts,
    check_listable,
    check_outside_inputs,
    compare,
    opened_store_folder,
    plan_shards,
    read_counts,
    remove_other_shards,
    remove_unfinished_shards,
    sort_rows,
    write_shard,
)
from regard.errors import RegardError
from tests.corpus.test_schema import MADE
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


def test_apart_from_what_is_read(tmp_path: Path) -> None:
    texts = tmp_path / "texts"
    texts.mkdir()
    (tmp_path / "link").symlink_to(texts)
    check_outside_inputs(tmp_path / "store", [str(texts), "-"], [Path("-"), texts / "a.txt"])
    for out in (texts, texts / "store", tmp_path / "link" / "deep" / "store"):
        with pytest.raises(RegardError, match="is inside '.*texts', which is one of the inputs: use another"):
            check_outside_inputs(out, [str(texts)], [])
    with pytest.raises(RegardError, match="holds '.*a.txt', which is one of the inputs"):
        check_outside_inputs(texts, [str(texts / "a.txt")], [texts / "a.txt"])


def test_one_run_at_a_time(tmp_path: Path) -> None:
    store = tmp_path / "store"
    with opened_store_folder(store):
        (store / NAME).write_text("{}")
        with pytest.raises(RegardError, match="is being written by another run"), opened_store_folder(store):
            raise AssertionError
    with opened_store_folder(store):
        assert (store / NAME).exists()


def test_what_fails_leaves_what_was_there(tmp_path: Path) -> None:
    store = tmp_path / "store"
    with pytest.raises(KeyError), opened_store_folder(store):
        (store / NAME).write_text("{}")
        (store / "shards" / ".a-b.part").mkdir()
        raise KeyError
    assert not store.exists()
    with pytest.raises(KeyError), opened_store_folder(store):
        (store / NAME).write_text("{}")
        (store / "shards" / "whole").mkdir()
        raise KeyError
    assert (store / "shards" / "whole").is_dir()
    with pytest.raises(KeyError), opened_store_folder(store):
        (store / "shards" / "whole").rmdir()
        raise KeyError
    assert (store / NAME).exists()  # of an earlier run


def test_the_store_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "store").symlink_to("disk")
    with opened_store_folder(tmp_path / "store"):
        assert (tmp_path / "disk" / "shards").is_dir()


def test_shards_that_are_not_named_are_removed_and_nothing_else(tmp_path: Path) -> None:
    planned, stale, other, mine = ("abcdef0123456789abcdef" + end for end in ("00", "01", "02", "03"))
    for name in (planned, stale, mine):
        write_shard(tmp_path, name, tables())
    (tmp_path / mine / "notes.txt").write_text("mine")
    for name in (other, "photos", ".c-d.part"):
        (tmp_path / name).mkdir()
    (tmp_path / "letter.txt").write_text("mine")
    remove_other_shards(tmp_path, {planned})
    assert {path.name for path in tmp_path.iterdir()} == {planned, other, mine, "photos", "letter.txt"}


class Held(StoredTexts):
    """A store's documents without its files."""

    def __init__(self, documents: list[Document]) -> None:
        self.documents = documents

    def __iter__(self) -> Iterator[Document]:
        return iter(self.documents)

    def sources(self) -> dict[str, int]:
        return {name: n for n, name in enumerate(dict.fromkeys(each.source for each in self.documents))}


def drawn(draw: random.Random, ids: bool) -> list[Document]:
    """What a folder holds: texts, some in parts, and tables of some rows; ids: of their own, wherever they stand."""
    found: list[Document] = []
    rows = draw.sample(range(40), 12)
    for name in sorted(draw.sample("abcdefgh", draw.randint(1, 6))):
        text = draw.choice("xyz")
        if draw.random() < 0.5:
            parts = draw.randint(1, 3)
            found += [Document(f"{name}.txt", text, 10 * n, f"{name}.txt", None, {}) for n in range(parts)]
        else:
            for line in sorted(draw.sample(range(1, 9), draw.randint(1, 4))):
                own = f"id{rows.pop()}" if ids and rows else f"{name}.csv:{line}"
                found.append(Document(own, text, 0, f"{name}.csv", line, {}))
    return found


def merged(
    read: list[Document], held: list[Document], ids: bool, prune: bool = False
) -> tuple[list[Document], DocumentCounts]:
    counted = DocumentCounts()
    whole = list(compare(read, Held(held), counted, by_id=ids, prune=prune))
    return [each for each in whole if isinstance(each, Document)], counted


@pytest.mark.parametrize("ids", [False, True])
def test_what_is_gone_stays_and_what_is_read_counts(ids: bool) -> None:
    for seed in range(200):
        draw = random.Random(seed)
        held, read = drawn(draw, ids), drawn(draw, ids)
        whole, counted = merged(read, held, ids)
        names = {each.id for each in read}
        gone = [each for each in held if each.id not in names]
        assert [each for each in whole if each.id in names] == read, "what is read is there as it was read"
        assert [each for each in whole if each.id not in names] == gone, "and what is gone as it was"
        assert counted.gone == len({each.id for each in gone})
        assert counted.first == (gone[0].id if gone else "")
        assert counted.read == sum(each.start == 0 for each in read)
        again, same = merged(read, whole, ids)
        assert (again, same.gone) == (whole, counted.gone), "and the next run changes nothing"
        assert merged(read, held, ids, prune=True) == (read, counted)


def test_where_one_was_it_stays_so_that_shards_are_the_same() -> None:
    held = [Document(f"{name}.txt", name, 0, f"{name}.txt", None, {}) for name in "abcd"]
    for lost in range(4):
        read = held[:lost] + held[lost + 1 :]
        assert merged(read, held, ids=False)[0] == held


@pytest.fixture
def stored(tmp_path: Path) -> tuple[StoredTexts, list[Document]]:
    """Two shards on the disk, and what is in them."""
    documents = [
        Document("n/a.txt", "one ", 0, "n/a.txt", None, {}),
        Document("n/a.txt", "more", 4, "n/a.txt", None, {}),
        Document("n/b.csv:2", "two", 0, "n/b.csv", 2, {"year": "1851", "by": ""}),
        Document("n/b.csv:3", "three", 0, "n/b.csv", 3, {}),
    ]
    for name, some in (("one", documents[:3]), ("two", documents[3:])):
        write_shard(tmp_path, name, replace(tables(), texts=texts_table(some)))
    return StoredTexts(tmp_path, ["one", "none", "two"]), documents


def test_documents_come_back_as_they_were_read(stored: tuple[StoredTexts, list[Document]], tmp_path: Path) -> None:
    texts, documents = stored
    assert list(texts) == documents
    assert texts.sources() == {"n/a.txt": 0, "n/b.csv": 1}
    (tmp_path / "two" / TEXTS).write_bytes(b"PAR1 damaged")
    with pytest.raises(RegardError, match="texts.parquet' is damaged"):
        list(texts)


def test_a_folder_that_cannot_be_listed_is_an_error_where_the_store_has_texts_of_it(
    stored: tuple[StoredTexts, list[Document]],
) -> None:
    texts, _ = stored
    reason = "cannot be read: Permission denied"
    check_listable([Path("n/a.txt"), Unseen("m", None, reason), Rejected("n", None, "it is the same folder")], texts)
    with pytest.raises(
        RegardError, match=r"folder 'n' cannot be listed \(Permission denied\), .* texts of 2 files in it"
    ):
        check_listable([Path("n/a.txt"), Unseen("n", None, reason)], texts)
