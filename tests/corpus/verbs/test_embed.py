"""`regard embed` as a person calls it."""

import json
from pathlib import Path
from typing import Any

import pytest

from regard.corpus import embed_texts
from regard.corpus.store import Store
from regard.corpus.verbs.embed import _layers_option_value
from tests.support import run_all_in_process, run_in_process


def test_from_a_folder_to_a_concordance(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("We sat on the river bank.", "utf-8")
    (tmp_path / "texts" / "b.txt").write_bytes(b"\xff\x00")
    done = run_in_process(tmp_path, ["embed", "texts", "--out", "store", "--workers", "1", "--json", "told.json"])
    assert done.returncode == 0, done.stderr
    assert "6 embeddings, from 9 tokens in 1 document" in " ".join(done.stdout.split())
    assert "1 could not be read (quarantine.parquet)" in done.stdout
    assert "texts/b.txt" in done.stdout
    assert json.loads((tmp_path / "told.json").read_text())["counts"]["quarantined"] == 1
    with Store(tmp_path / "store") as store:
        assert [line.form for line in store.find("bank").lines] == ["bank"]


def test_words_that_stand_nowhere_are_said(tmp_path: Path, minilm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    here = embed_texts.embed
    monkeypatch.setattr(embed_texts, "embed", lambda *given, **more: here(*given, **{**more, "model": minilm}))
    (tmp_path / "a.txt").write_text("We sat on the river bank.", "utf-8")
    call = ["embed", "a.txt", "--out", "store", "--where", "word=bnak", "--json", "told.json"]
    done = run_in_process(tmp_path, call)
    assert done.returncode == 0, done.stderr
    assert "no word 'bnak'" in " ".join(done.stdout.split())
    told = json.loads((tmp_path / "told.json").read_text())
    assert told["notes"] == ["`--where`: the texts have no word 'bnak'. The embedding index is empty."]


def test_layers_are_read() -> None:
    given = ("last", "all", "0,3,5", "0,3-5", "-1", "0,-2")
    assert [_layers_option_value(each) for each in given] == [None, (), (0, 3, 5), (0, 3, 4, 5), (-1,), (0, -2)]


WRONG = {
    "no such path": (["embed", "none.txt", "--out", "s"], "'none.txt' cannot be read"),
    "layers": (["embed", "a.txt", "--out", "s", "--layers", "x"], "--layers: given 'x', needs last, all or numbers"),
    "where": (["embed", "a.txt", "--out", "s", "--where", "bank"], "--where: given 'bank', needs word=WORD"),
    "run": (["embed", "a.txt", "--out", "s", "--where", "word=don't"], "is not one word as a store has them"),
    "lemma": (["embed", "a.txt", "--out", "s", "--where", "lemma=go"], "needs --lemma LANGUAGE"),
    "dtype": (["embed", "a.txt", "--out", "s", "--dtype", "int8"], "dtype: given 'int8'"),
    "unit": (["embed", "a.txt", "--out", "s", "--unit", "lines"], "unit: given 'lines'"),
    "backend": (["embed", "a.txt", "--out", "s", "--backend", "x"], "backend: given 'x', needs torch or openvino"),
    "attention": (["embed", "a.txt", "--out", "s", "--backend", "openvino"], "--backend openvino gives vectors alone"),
    "precision": (["embed", "a.txt", "--out", "s", "--precision", "x"], "precision: given 'x', needs float32 or bf16"),
    "sums in bf16": (["embed", "a.txt", "--out", "s", "--precision", "bf16"], "--precision bf16 gives vectors alone"),
    "window": (["embed", "a.txt", "--out", "s", "--window", "0"], "window: given 0"),
    "no folder": (["embed", "a.txt", "--out", "no/such/s"], "there is no folder"),
    "json": (["embed", "a.txt", "--out", "s", "--json", "a.txt"], "--json: cannot write 'a.txt'"),
}


def test_bad_input_gets_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("A bank.", "utf-8")
    told = run_all_in_process(tmp_path, [arguments for arguments, _ in WRONG.values()])
    for (name, (_, said)), (code, out, error) in zip(WRONG.items(), told, strict=True):
        assert (code, out, error.count("\n")) == (2, "", 1), (name, error)
        assert said in error, (name, error)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt"]
