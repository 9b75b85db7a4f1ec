"""A store opened, and the versions and products that its bytes depend on."""

import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.corpus.asking.occurrences import look_up
from regard.corpus.schema import read_manifest
from regard.corpus.store import Store
from regard.corpus.store_tables import (
    TABLES,
    StoreTables,
    check_store_environment,
    describe_store_environment,
    digest_model,
)
from regard.errors import RegardError
from regard.model_files.stored_weight import StoredWeight
from tests.support import make_tiny
from tests.support.stores import Document, change_manifest, write_store


def test_a_store_of_other_versions_is_refused() -> None:
    here = describe_store_environment()
    assert here["torch"] == torch.__version__
    with pytest.raises(RegardError, match="made with torch 1.0, here is"):
        check_store_environment(here | {"torch": "1.0"})


def test_a_store_of_other_products_is_refused_and_the_way_on_is_said() -> None:
    here = describe_store_environment()
    check_store_environment(here)
    with pytest.raises(RegardError, match=f"product none, here is {here['tiles']}: .*REGARD_PRODUCT=none continues it"):
        check_store_environment(here | {"tiles": "none"})


def test_a_digest_is_of_weights_and_tokenizer_not_of_what_calls_left(minilm: Any) -> None:
    first = digest_model(minilm)
    minilm.tokenizer(["a", "b c"], padding=True, truncation=True, max_length=3)
    assert digest_model(minilm) == first
    bias = next(minilm.model.parameters())
    with torch.no_grad():
        bias[0, 0] += 1
        changed = digest_model(minilm)
        bias[0, 0] -= 1
    assert changed != first


def test_weights_kept_in_half_precision_are_the_model_that_they_are_in_float32(minilm: Any, tmp_path: Path) -> None:
    make_tiny(tmp_path, minilm)
    regard.load(tmp_path, device="cpu", dtype="bfloat16").model.save_pretrained(tmp_path)
    stored, wide = (regard.load(tmp_path, device="cpu", dtype=dtype) for dtype in ("auto", "float32"))
    assert any(isinstance(each, StoredWeight) for each in stored.model.parameters())
    assert digest_model(stored) == digest_model(wide)


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
        with pytest.raises(RegardError, match="shard shard1 has rows 0 to 3, got 0 to 6"):
            tables.vectors("shard1", rows)
        with pytest.raises(RegardError, match="no shard 'x'"):
            tables.vectors("x", rows)


def test_what_is_no_store_is_refused_in_one_line(store: Path, tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="there is no such folder"):
        StoreTables(tmp_path / "none")
    with pytest.raises(RegardError, match=r"there is no manifest.json in it"):
        StoreTables(tmp_path)
    data = change_manifest(store, format=99)
    with pytest.raises(RegardError, match="has format 99, this version of regard reads format 2"):
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


def test_a_store_without_rows_and_one_that_is_not_finished(tmp_path: Path) -> None:
    with StoreTables(write_store(tmp_path / "s", [], complete=False)) as tables:
        assert tables.sql("SELECT count(*) AS n FROM shards").to_pylist() == [{"n": 0}]
        with pytest.raises(RegardError, match="Table with name rows does not exist"):
            tables.sql("SELECT count(*) FROM rows")
        [note] = tables.notes
        assert "not finished (0 shards so far)" in note


def test_the_model_has_to_be_the_one_that_made_the_store(
    bank_folder: Path, minilm, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr("regard.corpus.store_tables.load", lambda _source: minilm)
    with StoreTables(bank_folder) as tables:
        assert tables.model is minilm
    other = shutil.copytree(bank_folder, tmp_path / "s")
    change_manifest(other, model=change_manifest(other)["model"] | {"digest": "x"})
    with StoreTables(other) as tables, pytest.raises(RegardError, match="is not the one that made it"):
        _ = tables.model


def test_what_a_store_names_is_never_loaded(bank_folder: Path, minilm, tmp_path: Path, monkeypatch) -> None:
    """A stranger's store could name any repository or folder: the user names the model, or it is the default one."""
    asked = []
    monkeypatch.setattr("regard.corpus.store_tables.load", lambda source: asked.append(source) or minilm)
    monkeypatch.setattr("regard.corpus.store_tables.digest_model", lambda _: read_manifest(bank_folder).model.digest)
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


def test_every_flipped_bit_is_found_or_changes_nothing(store: Path) -> None:
    before, random = everything(store), np.random.default_rng(7)
    for file in sorted(each for each in store.rglob("*") if each.is_file()):
        whole = file.read_bytes()
        for place in random.choice(len(whole), min(len(whole), 11), replace=False).tolist():
            file.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :])
            with pytest.raises(RegardError) as said:
                if everything(store) == before:  # blanks of JSON
                    raise RegardError("nothing was changed")
            assert "\n" not in str(said.value), (file, place)
        file.write_bytes(whole)
    assert everything(store) == before


def test_views_tell_where_each_row_stands(store: Path) -> None:
    with StoreTables(store) as tables:
        found = tables.sql(
            "SELECT shard, row, document, form, start FROM rows WHERE word = ? ORDER BY shard, row", ["bank"]
        )
        assert [tuple(each.values()) for each in found.to_pylist()] == [
            ("shard0", 1, "a", "bank", 4), ("shard0", 2, "b", "BANK", 2), ("shard1", 0, "c", "bank", 3)
        ]  # fmt: skip
        joined = tables.sql(
            'SELECT substr(t.text, r.start + 1, r."end" - r.start) AS cut, r.form, '
            "t.metadata['year'] AS year, t.line FROM rows r JOIN texts t ON r.shard = t.shard AND r.part = t.row"
        ).to_pylist()
        assert len(joined) == 11
        assert all(each["cut"] == each["form"] for each in joined)
        assert {(each["year"], each["line"]) for each in joined} == {("1850", 3), (None, None)}
        assert tables.sql("SELECT count(*) AS n FROM spans").to_pylist() == [{"n": 0}]
        assert tables.sql("SELECT * FROM quarantine").column_names == ["source", "line", "reason"]
        assert tables.sql("SELECT sum(rows) AS n FROM shards").to_pylist() == [{"n": 11}]
        assert repr(tables).endswith("11 rows in 2 shards)")
        assert tables.notes == ()


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT * FROM read_text('/etc/hostname')", "Permission Error"),
        ("SELECT * FROM read_csv('../a.csv')", "Permission Error"),
        ("COPY (SELECT 1) TO 'x.csv'", "needs one statement that selects"),
        ("SELECT 1; SELECT 2", "needs one statement that selects"),
        ("SET enable_external_access = true", "needs one statement that selects"),
        ("ATTACH 'x.db'", "needs one statement that selects"),
        ("DROP VIEW rows", "needs one statement that selects"),
        ("", "needs one statement that selects"),
        ("SELEC 1", "syntax error"),
        ("SELECT nothing FROM rows", 'column "nothing" not found'),
    ],
)
def test_queries_reach_no_further_than_the_store(store: Path, query: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    before = sorted(each for each in tmp_path.rglob("*"))
    with StoreTables(store) as tables, pytest.raises(RegardError, match=message) as raised:
        tables.sql(query)
    assert "\n" not in str(raised.value)
    assert sorted(each for each in tmp_path.rglob("*")) == before


def test_the_settings_are_locked(store: Path) -> None:
    import duckdb

    with StoreTables(store) as tables:
        tables.sql("SELECT 1")
        assert tables._views is not None
        with pytest.raises(duckdb.Error, match="configuration has been locked"):
            tables._views.execute("SET enable_external_access = true")
