"""`regard senses` as a person runs it."""

import csv
import json
from pathlib import Path


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
    assert "changed" in result.stdout


def test_labelled_sentences(regard_command, bank_folder: Path, tmp_path: Path) -> None:
    sentences = {
        "shore": ["a muddy bank", "the river bank", "a bank of clay", "a steep bank"],
        "firm": ["an account at the bank", "a loan from the bank", "money in a bank", "a bank robbery"],
    }
    lines = [f"{text},{text.split().index('bank')},{label}\n" for label, texts in sentences.items() for text in texts]
    (tmp_path / "a.csv").write_text("sentence,position,label\n" + "".join(lines), encoding="utf-8")
    arguments = ["senses", "bank", "--store", str(bank_folder), "--checked", "0", "--train"]
    result = regard_command(*arguments, "a.csv", "--json", "-")
    assert result.returncode == 0, result.stderr
    data = json.loads(result.stdout)
    assert {each["name"] for each in data["senses"]} == {"shore", "firm"}
    assert data["accuracy"]["by_word"]["bank"]["asked"] == 2
    result = regard_command(*arguments, "none.csv")
    assert (result.returncode, result.stdout) == (2, "")
    assert "there is no such file" in result.stderr
