"""`regard embed`, `find`, `senses` and `shift` as a person runs them."""

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from regard.corpus import embed_texts
from regard.corpus.store import Store
from regard.corpus.verb import _layers_option_value
from tests.support import run_all_in_process, run_in_process
from tests.support.stores import change_manifest
from tests.support.web_pages import Read, build_nothing


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
    "layers": (["embed", "a.txt", "--out", "s", "--layers", "x"], "--layers: got 'x', expected last, all or numbers"),
    "where": (["embed", "a.txt", "--out", "s", "--where", "bank"], "--where: got 'bank', expected word=WORD"),
    "run": (["embed", "a.txt", "--out", "s", "--where", "word=don't"], "is not one word as a store has them"),
    "lemma": (["embed", "a.txt", "--out", "s", "--where", "lemma=go"], "needs --lemma LANGUAGE"),
    "dtype": (["embed", "a.txt", "--out", "s", "--dtype", "int8"], "dtype: got 'int8'"),
    "unit": (["embed", "a.txt", "--out", "s", "--unit", "lines"], "unit: got 'lines'"),
    "window": (["embed", "a.txt", "--out", "s", "--window", "0"], "window: got 0"),
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


def test_lines_files_and_a_sentence_to_compare_with(regard_command, bank_folder: Path, tmp_path: Path) -> None:
    result = regard_command(
        "find", "bank", "--store", str(bank_folder), "--like", "He fished from the bank of the river.", "--top", "3",
        "--csv", "a.csv", "--parquet", "a.parquet", "--json", "a.json",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    data = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert (data["format"], data["total"], len(data["lines"])) == ("regard find", 16, 3)
    assert all(line["metadata"] == {"kind": "river"} for line in data["lines"])
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["document"] for row in rows] == [line["document"] for line in data["lines"]]
    assert "Wrote a.parquet" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert f"{data['lines'][0]['similarity']:.2f}" in result.stdout


def test_a_model_that_the_store_names_is_not_loaded(regard_command, bank_folder: Path, tmp_path: Path) -> None:
    store = shutil.copytree(bank_folder, tmp_path / "s")
    change_manifest(store, model=change_manifest(store)["model"] | {"source": "stranger/model"})
    like = ("bank", "--store", "s", "--like", "The river bank.")
    for call, message in (
        (("find", *like), "says that 'stranger/model' made it: what a store names is not loaded, name the model"),
        (("find", *like, "--model", "./none"), "model './none': there is no such folder"),
        (("senses", "bank", "--store", "s", "--k", "2", "--checked", "1"), "name the model yourself (--model;"),
    ):
        result = regard_command(*call)
        assert (result.returncode, result.stdout) == (2, "")
        assert message in result.stderr
        assert len(result.stderr.splitlines()) == 1
    assert regard_command("find", "bank", "--store", "s").returncode == 0  # nothing else needs it


def test_what_is_wrong_is_one_line(regard_command, bank_folder: Path, tmp_path: Path) -> None:
    for arguments, message in (
        (["sea", "--store", str(bank_folder)], "word 'sea' does not occur"),
        (["bnk", "--store", str(bank_folder)], ": the nearest are 'bank'"),
        (["bank", "--store", "none"], "there is no such folder"),
        (["bank", "--store", str(bank_folder), "--csv", "a.txt"], "must end in .csv"),
        (["bank", "--store", str(bank_folder), "--everywhere"], "everywhere needs like"),
    ):
        result = regard_command("find", *arguments)
        assert (result.returncode, result.stdout) == (2, "")
        assert message in result.stderr
        assert len(result.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_senses_in_a_spreadsheet_a_picture_and_json(regard_command, bank_folder: Path, tmp_path: Path) -> None:
    result = regard_command(
        "senses", "bank", "--store", str(bank_folder), "--checked", "4", "--words", "2", "--figure", "a.png",
        "--csv", "a.csv", "--json", "a.json",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    data = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert data["occurrences"] == len(rows) == 16
    kinds = {(row["sense"], row["metadata.kind"]) for row in rows}
    assert len(kinds) == len(data["senses"]) == 2
    assert "16 occurrences, 2 senses" in result.stdout
    assert "changes" in result.stdout


def test_a_page_has_what_json_has(
    regard_command, bank_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_nothing(tmp_path / "built", monkeypatch)
    call = ["senses", "bank", "--store", str(bank_folder), "--checked", "0", "--words", "2", "--context", "12"]
    result = regard_command(*call, "--html", "a.html", "--json", "a.json")
    assert result.returncode == 0, result.stderr
    assert "Wrote a.html" in result.stdout
    page, data = Read(tmp_path / "a.html").data, json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    cloud, table = page["panels"][:2]
    points = sorted((each["x"], each["y"], f"sense {each['sense']}") for each in data["points"])
    for one, (x, y, sense) in zip(sorted((p["x"], p["y"], p["group"]) for p in cloud["points"]), points, strict=True):
        assert one == (pytest.approx(x, abs=1e-6), pytest.approx(y, abs=1e-6), sense)
    assert [row[1] for row in table["rows"]] == [each["occurrences"] for each in data["senses"]]
    assert all(len(p["context"]["left"]) <= 14 for p in cloud["points"])  # and "… "
    before = (tmp_path / "a.html").read_bytes()
    assert regard_command(*call, "--html", "a.html").returncode == 0
    assert (tmp_path / "a.html").read_bytes() == before


@pytest.mark.parametrize(
    ("word", "file", "says"),
    [
        ("bank", "none/a.html", "there is no folder"),
        ("bank", "folder.html", "folder.html"),
        ("bank", "a.txt", "must end in .html"),
        ("zebra", "a.html", "'zebra' does not occur in embedding index"),
    ],
)
def test_a_page_that_cannot_be_written(
    regard_command, bank_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str, file: str, says: str
) -> None:
    build_nothing(tmp_path / "built", monkeypatch)
    (tmp_path / "folder.html").mkdir()
    before = sorted(tmp_path.rglob("*"))
    result = regard_command("senses", word, "--store", str(bank_folder), "--csv", "a.csv", "--html", file)
    assert (result.returncode, result.stdout) == (2, "")
    assert says in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_two_parts_of_one_store(regard_command, bank_folder: Path, tmp_path: Path) -> None:
    result = regard_command(
        "shift", "bank", "--store", str(bank_folder), "--column", "kind", "--values", "river,money", "--json", "a.json",
        "--csv", "a.csv",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    data = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert data["groups"] == ["kind=river", "kind=money"]
    assert data["change"]["p"] <= 0.01
    assert {each["fate"] for each in data["senses"]} == {"gained", "lost"}
    assert "gained" in result.stdout
    assert "permutations of documents" in result.stdout
    assert len((tmp_path / "a.csv").read_text(encoding="utf-8").splitlines()) == 17


def test_a_store_beside_itself_has_not_changed(regard_command, bank_folder: Path) -> None:
    result = regard_command("shift", "bank", "--store", str(bank_folder), "--store", str(bank_folder), "--json", "-")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["change"]["p"] > 0.5


def test_what_does_not_fit(regard_command, bank_folder: Path) -> None:
    for arguments, message in (
        (["--store", str(bank_folder)], "--store: got 1, expected two, or one with --column NAME"),
        (["--store", str(bank_folder), "--store", str(bank_folder), "--values", "a,b"], "--values needs --column"),
        (["--store", str(bank_folder), "--column", "year"], "has a column 'year'; there are kind"),
    ):
        result = regard_command("shift", "bank", *arguments)
        assert (result.returncode, result.stdout) == (2, "")
        assert message in result.stderr
