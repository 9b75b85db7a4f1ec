"""`regard heads` as a person calls it."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from regard.corpus.embed_texts import embed
from regard.corpus.store import Store
from regard.explain.weights.head_means import mean_scores
from regard.explain.weights.head_scores import head_scores
from tests.support import run_in_process
from tests.support.web_pages import Read, build_nothing

TEXTS = ["The old man walked slowly along the river bank.", "The cat saw the cat and the dog saw the dog."]


def test_texts_and_tests(minilm: Any, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a.png", "a.csv", "a.json")]
    options = ["--figure", str(files[0]), "--csv", str(files[1]), "--json", str(files[2])]
    done = run_in_process(tmp_path, ["heads", *TEXTS, "--tests", *options])
    assert done.returncode == 0, done.stderr
    expected = mean_scores([head_scores(trace) for trace in minilm.trace(TEXTS)])
    told = json.loads(files[2].read_text("utf-8"))
    assert (told["format"], list(told["tables"])) == (
        "regard heads", ["texts", "random tokens, repeated", "tokens exchanged"]
    )  # fmt: skip
    assert told["tables"]["texts"]["counts"] == expected.counts
    shown = [row["previous"] for row in told["tables"]["texts"]["heads"]]
    assert shown == pytest.approx(expected.scores["previous"].flatten().tolist(), abs=1e-6)
    with files[1].open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["previous"]) for row in rows if row["of"] == "texts"] == shown
    assert files[0].stat().st_size > 10_000
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["previous", "the", "previous", "token", "L0H2"] in [line[:5] for line in lines]


@pytest.mark.browser
def test_its_page_has_a_grid_for_every_score_of_every_table(tmp_path: Path) -> None:
    done = run_in_process(tmp_path, ["heads", *TEXTS, "--tests", "--html", "a.html", "--json", "a.json"])
    assert done.returncode == 0, done.stderr
    told, page = json.loads((tmp_path / "a.json").read_text("utf-8"))["tables"], Read(tmp_path / "a.html")
    grids = {panel["name"]: panel["values"] for panel in page.data["panels"] if panel["kind"] == "heat"}
    assert set(grids) == {
        f"{name}: {score}"
        for name, table in told.items()
        for score in table["heads"][0]
        if score not in ("layer", "head") and (score != "sinks" or any(row[score] for row in table["heads"]))
    }
    for name, table in told.items():
        for row in table["heads"]:
            shown = grids[f"{name}: {'induction' if 'induction' in row else 'position'}"][row["layer"]][row["head"]]
            assert shown == pytest.approx(row["induction" if "induction" in row else "position"], abs=1e-12)
    done = run_in_process(tmp_path, ["heads", TEXTS[0], "--html", "b.html"])
    assert done.returncode == 0, done.stderr
    assert [panel["name"] for panel in Read(tmp_path / "b.html").data["panels"]][:2] == ["previous", "next"]


def test_over_a_corpus_it_shows_and_writes_every_head(minilm: Any, tmp_path: Path, monkeypatch: Any) -> None:
    build_nothing(tmp_path / "built", monkeypatch)
    (tmp_path / "a.txt").write_text("The cat saw the cat and the dog saw the dog.", "utf-8")
    embed(tmp_path / "a.txt", tmp_path / "store", model=minilm)
    files = [tmp_path / name for name in ("a.png", "a.csv", "a.json", "a.html")]
    names = ("--figure", "--csv", "--json", "--html")
    options = [given for name, file in zip(names, files, strict=True) for given in (name, str(file))]
    done = run_in_process(tmp_path, ["heads", "--store", str(tmp_path / "store"), *options])
    assert done.returncode == 0, done.stderr
    assert "Heads with the highest scores, 12 tokens" in done.stdout
    with Store(tmp_path / "store") as store:
        rows = store.stats().tables["corpus"].rows()
    told = json.loads(files[2].read_text("utf-8"))["tables"]["corpus"]["heads"]
    assert told == rows
    with files[1].open(encoding="utf-8") as file:
        assert [float(row["previous"]) for row in csv.DictReader(file)] == [row["previous"] for row in rows]
    assert files[0].stat().st_size > 10_000
    grids = {panel["name"]: panel for panel in Read(files[3]).data["panels"]}
    for row in rows:
        assert grids["previous"]["values"][row["layer"]][row["head"]] == row["previous"]


def test_a_page_of_a_corpus_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_nothing(tmp_path / "built", monkeypatch)
    (tmp_path / "folder.html").mkdir()
    for file, says in (("none/a.html", "there is no folder"), ("folder.html", "folder.html"), ("a.png", ".html")):
        done = run_in_process(tmp_path, ["heads", "--store", str(tmp_path), "--html", file])
        assert (done.returncode, done.stdout) == (2, "")
        assert "--html" in done.stderr
        assert says in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no text given: regard heads TEXT..."),
        (["a", "--store", "s"], "--store and TEXT: a store has its own texts and model, pass one of them"),
        (["--tests", "--store", "s"], "--store and --tests: a store has its own texts"),
        (["too short", "--tests"], "a text has 2 tokens, expected 8 or more"),
        (["a text", "--figure", "a.txt"], "--figure"),
    ],
)
def test_what_is_refused(tmp_path: Path, arguments: list[str], said: str) -> None:
    done = run_in_process(tmp_path, ["heads", *arguments])
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
