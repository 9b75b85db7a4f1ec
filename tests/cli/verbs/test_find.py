"""`regard find` as a person runs it."""

import csv
import json
import shutil
from pathlib import Path

from tests.support.stores import change_manifest


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
        (["bank", "--store", str(bank_folder), "--csv", "a.txt"], "needs to be .csv"),
        (["bank", "--store", str(bank_folder), "--everywhere"], "everywhere: needs like"),
    ):
        result = regard_command("find", *arguments)
        assert (result.returncode, result.stdout) == (2, "")
        assert message in result.stderr
        assert len(result.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_store_of_texts_is_asked_for_those_like_one(regard_command, tmp_path: Path) -> None:
    texts = {"a": "The river flooded the fields.", "b": "The bank raised its rates.", "c": "She planted beans."}
    for name, text in texts.items():
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    made = regard_command("embed", "a.txt", "b.txt", "c.txt", "--out", "s", "--unit", "texts", "--no-statistics")
    assert made.returncode == 0, made.stderr
    assert "3 embeddings" in (said := " ".join(made.stdout.split()))
    assert "3 documents" in said
    asked = ("find", "Money was lent at higher interest.", "--store", "s")
    found = regard_command(*asked, "--top", "1", "--json", "a.json", "--csv", "a.csv")
    assert found.returncode == 0, found.stderr
    assert texts["b"] in found.stdout
    assert texts["c"] not in found.stdout
    data = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert (data["format"], [line["text"] for line in data["lines"]]) == ("regard find texts", [texts["b"]])
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as file:
        assert [row["text"] for row in csv.DictReader(file)] == [texts["b"]]
    for given, message in (
        (["--like", "a bank"], "--like: store 's' keeps texts, so this option does not apply"),
        (["--lookup", "lemma"], "--lookup: store 's' keeps texts"),
        (["--layer", "5"], "--layer: store 's' keeps texts"),
        (["--context", "9"], "--context: store 's' keeps texts"),
        (
            ["--text-prompt", "x " * 600],
            "embedding: text has 609 tokens, special ones included: all-MiniLM-L6",
        ),
    ):
        refused = regard_command(*asked, *given)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert message in refused.stderr
        assert len(refused.stderr.splitlines()) == 1
    asked_of_texts = regard_command("senses", "bank", "--store", "s")
    assert "has texts, not words: search it for the texts nearest to yours" in asked_of_texts.stderr
