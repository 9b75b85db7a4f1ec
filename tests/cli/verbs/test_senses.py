"""`regard senses` as a person runs it."""

import csv
import json
from pathlib import Path

import pytest

from tests.support.web_pages import Read, build_nothing


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
    assert [row[2] for row in table["rows"]] == [each["occurrences"] for each in data["senses"]]
    assert all(len(p["context"]["left"]) <= 14 for p in cloud["points"])  # and "… "
    before = (tmp_path / "a.html").read_bytes()
    assert regard_command(*call, "--html", "a.html").returncode == 0
    assert (tmp_path / "a.html").read_bytes() == before


@pytest.mark.parametrize(
    ("word", "file", "says"),
    [
        ("bank", "none/a.html", "there is no folder"),
        ("bank", "folder.html", "folder.html"),
        ("bank", "a.txt", "needs to be .html"),
        ("zebra", "a.html", "'zebra' does not occur in store"),
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
