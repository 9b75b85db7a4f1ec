"""A store's folder: one run at a time, apart from what is read, and none where nothing was written."""

from pathlib import Path

import pytest

from regard.corpus.manifest import NAME
from regard.corpus.writing.shard import write_shard
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
    remove_others(tmp_path, {planned})
    assert {path.name for path in tmp_path.iterdir()} == {planned, other, mine, "photos", "letter.txt"}
