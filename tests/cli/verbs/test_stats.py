"""`regard stats` as a person calls it."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from regard.corpus.embed_texts import embed
from regard.corpus.store import Store
from tests.support import run_in_process
from tests.support.web_pages import Read, build_nothing


def test_shows_and_writes_every_head(minilm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_nothing(tmp_path / "built", monkeypatch)
    (tmp_path / "a.txt").write_text("The cat saw the cat and the dog saw the dog.", "utf-8")
    embed(tmp_path / "a.txt", tmp_path / "store", model=minilm)
    files = [tmp_path / name for name in ("a.png", "a.csv", "a.json", "a.html")]
    names = ("--figure", "--csv", "--json", "--html")
    options = [given for name, file in zip(names, files, strict=True) for given in (name, str(file))]
    done = run_in_process(tmp_path, ["stats", "--store", str(tmp_path / "store"), *options])
    assert done.returncode == 0, done.stderr
    assert "The heads with most of each score (over 12 tokens)" in done.stdout
    assert "The scores are means over 12 tokens (duplicate over 6 and induction over" in " ".join(done.stdout.split())
    with Store(tmp_path / "store") as store:
        rows = store.stats().rows()
    told = json.loads(files[2].read_text("utf-8"))["heads"]
    assert told == rows
    with files[1].open(encoding="utf-8") as file:
        assert [float(row["previous"]) for row in csv.DictReader(file)] == [row["previous"] for row in rows]
    assert files[0].stat().st_size > 10_000
    grids = {panel["name"]: panel for panel in Read(files[3]).data["panels"]}
    for row in rows:
        assert grids["previous"]["values"][row["layer"]][row["head"]] == row["previous"]


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    done = run_in_process(tmp_path, ["stats", "--store", str(tmp_path / "none")])
    assert done.returncode == 2
    assert "there is no such folder" in done.stderr


def test_a_page_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_nothing(tmp_path / "built", monkeypatch)
    (tmp_path / "folder.html").mkdir()
    for file, says in (("none/a.html", "there is no folder"), ("folder.html", "folder.html"), ("a.png", ".html")):
        done = run_in_process(tmp_path, ["stats", "--store", str(tmp_path), "--html", file])
        assert (done.returncode, done.stdout) == (2, "")
        assert "--html" in done.stderr
        assert says in done.stderr
