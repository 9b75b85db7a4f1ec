import os
import shutil
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from regard.corpus.asking.look_up import look_up
from regard.corpus.manifest import read_manifest
from regard.corpus.store import Store
from regard.corpus.store_tables import StoreTables
from regard.corpus.store_views import TABLES
from regard.errors import RegardError
from tests.support.stores import Document, change_manifest, sign, write_store

ONE = [Document("a", "The bank of clay", {"year": "1850"}, line=3), Document("b", "A BANK note")]
OTHER = [Document("c", "No bank; the end")]


def numbered(count: int, layers: int = 2) -> np.ndarray:
    """Vectors whose numbers say which word, in the order of the text, and which layer they are of."""
    words, kinds = np.meshgrid(np.arange(count), np.arange(layers), indexing="ij")
    return np.stack([words, kinds, np.ones_like(words)], -1).astype(np.float16)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "it's a store"
    return write_store(folder, [(ONE, numbered(7)), (OTHER, numbered(4))], layers=(2, 5))


def test_vectors_belong_to_their_rows(store: Path) -> None:
    with StoreTables(store) as tables:
        found = tables.sql("SELECT row, document, start FROM rows WHERE shard = 'shard0' ORDER BY document, start")
        rows = found["row"].to_numpy()
        np.testing.assert_array_equal(tables.vectors("shard0", rows)[:, 0], np.arange(7))
        np.testing.assert_array_equal(tables.vectors("shard0", rows, 2)[:, 1], 0)
        np.testing.assert_array_equal(tables.vectors("shard0", rows, 5)[:, 1], 1)
        assert tables.vectors("shard0", rows).dtype == np.float16
        whole = list(tables.all_vectors(2))
        assert [(shard, first, len(vectors)) for shard, first, vectors in whole] == [("shard0", 0, 7), ("shard1", 0, 4)]
        assert (whole[0][2][:, 1] == 0).all()
        with pytest.raises(RegardError, match="layer 3: the store keeps 2, 5"):
            tables.vectors("shard0", rows, 3)
        with pytest.raises(RegardError, match="shard shard1 has rows 0 to 3, given 0 to 6"):
            tables.vectors("shard1", rows)
        with pytest.raises(RegardError, match="no shard 'x'"):
            tables.vectors("x", rows)


def test_what_is_no_store_is_refused_in_one_line(store: Path, tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="there is no such folder"):
        StoreTables(tmp_path / "none")
    with pytest.raises(RegardError, match=r"there is no manifest.json in it"):
        StoreTables(tmp_path)
    data = change_manifest(store, format=99)
    with pytest.raises(RegardError, match="has format 99, this version of regard reads format 1"):
        StoreTables(store)
    change_manifest(store, **data | {"shards": [data["shards"][0] | {"name": "../shards/shard0"}]})
    with pytest.raises(RegardError, match="names a shard"):
        StoreTables(store)
    change_manifest(store, **data)
    (store / "shards" / "shard1" / "vectors.npy").unlink()
    with pytest.raises(
        RegardError, match=r"shard shard1 of 2 lacks vectors.npy; the same `regard embed` again makes it"
    ):
        StoreTables(store)
    shutil.rmtree(store / "shards" / "shard1")
    with pytest.raises(RegardError, match="shard shard1 of 2 is missing"):
        StoreTables(store)


def test_vectors_that_do_not_fit_the_manifest_are_refused(store: Path) -> None:
    file = store / "shards" / "shard1" / "vectors.npy"
    good = np.load(file)
    bad = good.copy()
    bad[2, 1, 0] = np.nan
    for vectors, message in (
        (np.zeros((3, 2, 3), np.float16), r"has shape \(3, 2, 3\), the manifest says \(4, 2, 3\)"),
        (good.astype(np.int64), "its numbers are int64, the manifest says float16 or float32"),
        (np.asfortranarray(good), "its numbers are float16"),
        (bad, "row 2 holds a number that is not finite"),
    ):
        np.save(file, vectors)
        sign(store)
        with StoreTables(store) as tables:
            with pytest.raises(RegardError, match=message) as said:
                tables.vectors("shard1", np.array([2, 0]), 5)
            assert "\n" not in str(said.value)
            with pytest.raises(RegardError, match=message):
                list(tables.all_vectors(5))
    for content, message in (
        (good.tobytes(), "magic string"),
        (file.read_bytes()[:-2], "bytes, its shape"),
        (b"", "EOF"),
    ):
        file.write_bytes(content)
        sign(store)
        with StoreTables(store) as tables, pytest.raises(RegardError, match=message):
            tables.vectors("shard1", np.array([0]))


def test_a_store_without_rows_and_one_that_is_not_finished(tmp_path: Path) -> None:
    with StoreTables(write_store(tmp_path / "s", [], complete=False)) as tables:
        assert tables.sql("SELECT count(*) AS n FROM rows JOIN texts ON rows.part = texts.row").to_pylist() == [
            {"n": 0}
        ]
        said = "no shard is there so far: the same `regard embed` again goes on where it stopped"
        assert tables.notes == (f"the store is not finished, {said}",)


def test_opening_reads_no_table(store: Path) -> None:
    began = time.perf_counter()
    tables = StoreTables(store)
    assert time.perf_counter() - began < 1
    assert tables._views is None
    assert not any("index" in vars(shard) for shard in tables.shards.values())


def test_the_model_has_to_be_the_one_that_made_the_store(
    bank_folder: Path, minilm, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr("regard.models.load.load", lambda _source: minilm)
    with StoreTables(bank_folder) as tables:
        assert tables.model is minilm
    other = shutil.copytree(bank_folder, tmp_path / "s")
    change_manifest(other, model=change_manifest(other)["model"] | {"digest": "x"})
    with StoreTables(other) as tables, pytest.raises(RegardError, match="is not the one that made it"):
        _ = tables.model


def test_what_a_store_names_is_never_loaded(bank_folder: Path, minilm, tmp_path: Path, monkeypatch) -> None:
    """A stranger's store could name any repository or folder: the user names the model, or it is the default one."""
    asked = []
    monkeypatch.setattr("regard.models.load.load", lambda source: asked.append(source) or minilm)
    monkeypatch.setattr("regard.models.digest.digest_model", lambda _: read_manifest(bank_folder).model.digest)
    folder = shutil.copytree(bank_folder, tmp_path / "s")
    data = change_manifest(folder)
    for stranger in ({"source": "stranger/model"}, {"source": str(tmp_path)}, {"name": "mine"}):
        change_manifest(folder, model=data["model"] | stranger)
        with StoreTables(folder) as tables:
            with pytest.raises(RegardError, match="what a store names is not loaded, name the model yourself") as said:
                _ = tables.model
            assert repr(next(iter(stranger.values()))) in str(said.value)
        assert asked == []
        with StoreTables(folder, model=minilm) as tables:
            assert tables.model is minilm
        with StoreTables(folder, model="mine") as tables:
            assert tables.model is minilm
        assert asked.pop() == "mine"


def test_the_named_model_is_held_against_what_the_store_says(bank_folder: Path, minilm, tmp_path: Path) -> None:
    folder = shutil.copytree(bank_folder, tmp_path / "s")
    data = change_manifest(folder)
    for said, fits in (
        ({"digest": "x"}, False),
        ({"digest": "", "name": "mine"}, False),  # without a digest the name tells
        ({"digest": "", "source": "mine"}, True),
    ):
        change_manifest(folder, model=data["model"] | said)
        with StoreTables(folder, model=minilm) as tables:
            if fits:
                assert tables.model is minilm
            else:
                with pytest.raises(RegardError, match="model 'all-MiniLM-L6-v2' is not the one that made it"):
                    _ = tables.model


def everything(store: Path) -> list[object]:
    """All that a store can be asked without a model."""
    with Store(store) as opened:
        found = look_up(opened, "bank")
        return [
            [asdict(line) for line in found.lines(20)],
            opened.distinct("word"),
            [vectors.tobytes() for _, _, vectors in opened.all_vectors()],
            [opened.sql(f"SELECT * FROM {name}").to_pylist() for name in (*TABLES[:3], "quarantine", "shards")],
            opened.manifest,
        ]


def test_every_flipped_bit_is_noticed_where_it_is_read(store: Path) -> None:
    before, random = everything(store), np.random.default_rng(7)
    for file in sorted(each for each in store.rglob("*") if each.is_file() and each.name != "counts.json"):
        whole = file.read_bytes()
        for place in random.choice(len(whole), min(len(whole), 11), replace=False).tolist():
            file.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :])
            with pytest.raises(RegardError) as said:
                if everything(store) == before:  # blanks of JSON
                    raise RegardError("nothing was changed")
            assert "\n" not in str(said.value), (file, place)
            assert str(said.value).count("is damaged") <= 1, (file, place)
        file.write_bytes(whole)
    assert everything(store) == before


def test_a_store_of_an_earlier_version_is_read_and_says_that_nothing_is_checked(store: Path) -> None:
    before = everything(store)
    shards = change_manifest(store)["shards"]
    for each in shards:
        del each["sha256"]
        (store / "shards" / each["name"] / "index.json").unlink()
    change_manifest(store, shards=shards)
    after = everything(store)
    assert after[:-1] == before[:-1]
    with StoreTables(store) as tables:
        assert len(tables.notes) == 1
        assert "without checksums" in tables.notes[0]
        assert [shard.groups_with("word", "bank") for shard in tables.shards.values()] == [None] * 2  # all of them


@pytest.mark.parametrize("name", ["rows.parquet", "texts.parquet", "vectors.npy", "index.json"])
@pytest.mark.parametrize("kind", ["pipe", "link", "folder", "missing"])
def test_what_is_no_regular_file_is_refused_without_waiting(store: Path, name: str, kind: str) -> None:
    file = store / "shards" / "shard1" / name
    moved = file.rename(store.parent / name)
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "link":
        file.symlink_to(moved)
    elif kind == "folder":
        file.mkdir()
    with pytest.raises(RegardError, match=f"{name}.*(link|lacks|cannot be read)|lacks {name}|no regular file") as said:
        everything(store)
    assert "\n" not in str(said.value)
