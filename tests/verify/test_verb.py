"""`regard check`: its screen, its files, its exit codes, and what is refused before a model is loaded."""

import json
import re
from pathlib import Path

import pytest
import torch

import regard.capture.hf_attention
from regard.cli.main import main

TEXT = "The river was high, so we sat on the bank."


def left_with(arguments: list[str]) -> int:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert isinstance(left.value.code, int)
    return left.value.code


def test_all_checks_pass_and_the_exit_code_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "check.json"
    assert left_with(["check", "--text", TEXT, "--text", "bank", "--json", str(file)]) == 0
    shown = capsys.readouterr().out
    assert shown.index("attention weights") < shown.index("• ")  # the table comes first
    data = json.loads(file.read_text("utf-8"))
    assert (data["holds"], data["model"]) == (True, "all-MiniLM-L6-v2")
    assert [row["check"] for row in data["rows"] if row["verdict"] != "passed"] == ["generation with a cache"]


def test_a_wrong_kernel_is_named_and_the_exit_code_is_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    true = regard.capture.hf_attention.attend

    def wrong(query: torch.Tensor, *rest: torch.Tensor, **rule: object) -> object:
        query = query.clone()
        query[:, 5] *= 1.1
        return true(query, *rest, **rule)  # type: ignore[arg-type]

    monkeypatch.setattr(regard.capture.hf_attention, "attend", wrong)
    assert left_with(["check", "--text", TEXT]) == 1
    shown = capsys.readouterr().out
    assert "attentions[" in shown
    assert re.search(r"• .*attention weights", shown)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["no/such/folder"], "no/such/folder"),
        (["--text", " "], "text"),
        (["--csv", "check.txt"], "--csv"),
        (["--model", "x"], "No such option: --model"),
    ],
)
def test_bad_input_gets_one_line(given: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert left_with(["check", *given]) == 2
    error = capsys.readouterr().err
    assert error.startswith("regard: error: ")
    assert error.count("\n") == 1
    assert says in error
