"""A run's log: whole lines alone, and those that a run which resumes takes away."""

import json
from pathlib import Path
from typing import Any

import pytest

from regard.errors import RegardError
from regard.train.loop import StepMetrics
from regard.train.run_files import LOG, Log, read_log


def line(step: int, /, **changes: Any) -> str:
    known = {"step": step, "loss": 4.0 / step, "validation": None, "rate": 0.01, "tokens": 32, "seconds": 0.5}
    return json.dumps(known | changes) + "\n"


def test_a_line_that_is_half_written_is_no_update_yet(tmp_path: Path) -> None:
    file, whole = tmp_path / LOG, line(3, validation=1.5)
    for end in range(len(whole) + 1):
        file.write_text(line(1) + line(2) + whole[:end])
        assert len(read_log(tmp_path)) == (3 if end == len(whole) else 2)
    assert read_log(tmp_path)[2] == {
        "step": 3,
        "loss": 4.0 / 3,
        "validation": 1.5,
        "rate": 0.01,
        "tokens": 32,
        "seconds": 0.5,
    }


def test_a_run_that_resumes_takes_later_lines_away(tmp_path: Path) -> None:
    (tmp_path / LOG).write_text("".join(map(line, range(1, 31))))
    Log(tmp_path, 20).add(StepMetrics(21, 0.25, None, 0.01, 32, 0.5))
    assert [each["step"] for each in read_log(tmp_path)] == list(range(1, 22))
    assert read_log(tmp_path)[-1]["loss"] == 0.25


@pytest.mark.parametrize(
    "bad", ["nothing\n", "[]\n", "{}\n", line(2, loss="1"), line(2, step=True), line(2, validation=[1])]
)
def test_a_damaged_line_is_named(tmp_path: Path, bad: str) -> None:
    (tmp_path / LOG).write_text(line(1) + bad + line(3))
    with pytest.raises(RegardError, match=r"log.jsonl' is damaged: line 2"):
        read_log(tmp_path)
    (tmp_path / LOG).write_text(line(1) + line(2, loss=float("nan")))  # a loss that is none is one that a run may have
    assert [each["step"] for each in read_log(tmp_path)] == [1, 2]


def test_a_run_without_a_log_trained_nothing(tmp_path: Path) -> None:
    (tmp_path / LOG).mkdir()
    with pytest.raises(RegardError, match="nothing was trained yet"):
        read_log(tmp_path)
