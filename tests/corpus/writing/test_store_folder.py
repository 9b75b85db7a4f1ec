"""A store's folder: one run at a time, apart from what is read, and none where nothing was written."""

from pathlib import Path

import pytest

from regard.corpus.manifest import NAME
from regard.corpus.writing.store_folder import check_apart, opened, remove_others
from regard.errors import RegardError


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
    with opened(store):
        (store / NAME).write_text("{}")
        with pytest.raises(RegardError, match="is being written by another run"), opened(store):
            raise AssertionError
    with opened(store):
        assert (store / NAME).exists()


def test_what_fails_leaves_what_was_there(tmp_path: Path) -> None:
    store = tmp_path / "store"
    with pytest.raises(KeyError), opened(store):
        (store / NAME).write_text("{}")
        (store / "shards" / ".a-b.part").mkdir()
        raise KeyError
    assert not store.exists()
    with pytest.raises(KeyError), opened(store):
        (store / NAME).write_text("{}")
        (store / "shards" / "whole").mkdir()
        raise KeyError
    assert (store / "shards" / "whole").is_dir()
    with pytest.raises(KeyError), opened(store):
        (store / "shards" / "whole").rmdir()
        raise KeyError
    assert (store / NAME).exists()  # of an earlier run


def test_others_are_removed(tmp_path: Path) -> None:
    for name in ("a", "b", ".c-d.part"):
        (tmp_path / name).mkdir()
    remove_others(tmp_path, {"a"})
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
