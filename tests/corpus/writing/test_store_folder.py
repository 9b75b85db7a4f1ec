"""A store's folder: one run at a time, apart from what is read, and none where nothing was written."""

from dataclasses import replace
from pathlib import Path

import pytest

from regard.corpus.manifest import NAME
from regard.corpus.reading.document import Document
from regard.corpus.writing.plan_shards import shard_name
from regard.corpus.writing.shard import write_shard
from regard.corpus.writing.shard_tables import texts_table
from regard.corpus.writing.store_folder import check_apart, opened_store_folder, remove_others
from regard.errors import RegardError
from tests.corpus.writing.test_shard import tables


def test_apart_from_what_is_read(tmp_path: Path) -> None:
    texts = tmp_path / "texts"
    texts.mkdir()
    (tmp_path / "link").symlink_to(texts)
    check_apart(tmp_path / "store", [str(texts), "-"], [Path("-"), texts / "a.txt"])
    for out in (texts, texts / "store", tmp_path / "link" / "deep" / "store"):
        with pytest.raises(RegardError, match="is inside '.*texts', which is to be read: give another"):
            check_apart(out, [str(texts)], [])
    with pytest.raises(RegardError, match="holds '.*a.txt', which is to be read"):
        check_apart(texts, [str(texts / "a.txt")], [texts / "a.txt"])


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


def test_shards_of_the_store_are_removed_and_nothing_else(tmp_path: Path) -> None:
    planned, stale, touched = (write_own(tmp_path, text).name for text in ("a", "b", "c"))
    foreign = write_own(tmp_path, "d", base=b"of another store").name
    (tmp_path / touched / "photo.jpg").write_bytes(b"mine")
    photos = tmp_path / "photos"
    photos.mkdir()
    (photos / "1.jpg").write_bytes(b"mine")
    (tmp_path / "letter.txt").write_text("mine")
    named = tmp_path / ("0" * 24)  # a shard's name, and no shard
    named.mkdir()
    hidden = tmp_path / ".photos.part"
    hidden.mkdir()
    (hidden / "2.jpg").write_bytes(b"mine")
    (tmp_path / ".c-d.part").mkdir()  # half-written, of a run that was killed
    lost = write_own(tmp_path, "e")
    (lost / "counts.json").unlink()
    remove_others(tmp_path, {planned}, BASE)
    kept = {planned, touched, foreign, "photos", "letter.txt", named.name, hidden.name, lost.name}
    assert {path.name for path in tmp_path.iterdir()} == kept
    assert stale not in kept
    assert (photos / "1.jpg").exists()
    assert (hidden / "2.jpg").exists()


@pytest.mark.parametrize("name", ["shards", "manifest.json", "quarantine.parquet", ".lock", "shards/0123"])
def test_a_link_in_a_store_is_refused(tmp_path: Path, name: str) -> None:
    """What it leads to was taken for shards that nothing plans, and removed."""
    others, store = tmp_path / "photos", tmp_path / "store"
    (others / "2019").mkdir(parents=True)
    (others / "2019" / "1.jpg").write_bytes(b"mine")
    (store / name).parent.mkdir(parents=True)
    (store / name).symlink_to(others)
    before = sorted(tmp_path.rglob("*"))
    with (
        pytest.raises(RegardError, match=f"'.*{name}' is a link: what a store consists of"),
        opened_store_folder(store),
    ):
        raise AssertionError
    assert sorted(tmp_path.rglob("*")) == before


def test_the_store_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "store").symlink_to("disk")
    with opened_store_folder(tmp_path / "store"):
        assert (tmp_path / "disk" / "shards").is_dir()


BASE = b"of this store"


def write_own(folder: Path, text: str, base: bytes = BASE) -> Path:
    """A shard as a store writes it, of one document."""
    documents = [Document("d", text, 0, "a.txt", 3, {"year": "1851"})]
    return write_shard(folder, shard_name(base, documents), replace(tables(), texts=texts_table(documents)))
