"""An answer told: files written, the same sentences and numbers in all of them, what was written named at the end."""

import csv
import json
from pathlib import Path

import pytest
from rich.console import Console

from regard.cli.outputs import Outputs, options_for_more, report
from tests.display.test_answer import Example
from tests.questions.patch.test_answer import SWEEP


def test_files_and_terminal_tell_one_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    outputs = Outputs(tmp_path / "a.svg", csv=tmp_path / "a.csv", json=tmp_path / "a.json")
    console = Console(width=100, highlight=False)
    monkeypatch.setattr("regard.cli.outputs.consoles", lambda _: (console, console))
    report(SWEEP, outputs, 10, ["First of all."])
    text = capsys.readouterr().out
    assert text.startswith("First of all.")
    shown = " ".join(text.split())
    written = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    for sentence in written["findings"]:
        assert " ".join(sentence.split()) in shown
    with (tmp_path / "a.csv").open(encoding="utf-8") as file:
        assert [float(row["share"]) for row in csv.DictReader(file)] == [each for row in SWEEP.shares for each in row]
    assert (tmp_path / "a.svg").stat().st_size > 1000
    for name in ("a.csv", "a.json", "a.svg"):
        assert f"Wrote {tmp_path / name}" in "".join(text.splitlines())


def test_only_what_shows_more_is_offered() -> None:
    files = "--json, --csv, --parquet, --figure or --html FILE"
    bars = Example({"bank": 2.5})
    assert options_for_more(bars, 10) == f"--top K, {files}"
    assert options_for_more(bars, None) == files  # all are named
    assert options_for_more(SWEEP, 10) == files  # a grid alone
    assert options_for_more(bars, 10, ["json", "figure"]) == "--top K, --json or --figure FILE"
