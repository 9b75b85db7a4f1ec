"""A run's log while it grows: whole lines alone, read on, and anew where it was written anew."""

import json
from pathlib import Path
from typing import Any

import pytest

from regard.errors import RegardError
from regard.train.loop import StepMetrics
from regard.train.run_files import LOG, Log, LogReader, read_log


def line(step: int, /, **changes: Any) -> str:
    known = {"step": step, "loss": 4.0 / step, "validation": None, "rate": 0.01, "tokens": 32, "seconds": 0.5}
    return json.dumps(known | changes) + "\n"


def test_a_line_that_is_half_written_is_no_update_yet(tmp_path: Path) -> None:
    file, reader = tmp_path / LOG, LogReader(tmp_path)
    reader.read()
    assert reader.lines == []
    whole = line(3, validation=1.5)
    for end in range(len(whole) + 1):
        file.write_text(line(1) + line(2) + whole[:end])
        reader.read()
        done = 3 if end == len(whole) else 2
        assert len(reader.lines) == len(read_log(tmp_path)) == done
    assert reader.lines == read_log(tmp_path)
    assert reader.lines[2] == {
        "step": 3,
        "loss": 4.0 / 3,
        "validation": 1.5,
        "rate": 0.01,
        "tokens": 32,
        "seconds": 0.5,
    }


def test_a_log_that_was_written_anew_is_read_anew(tmp_path: Path) -> None:
    file, reader = tmp_path / LOG, LogReader(tmp_path)
    file.write_text("".join(map(line, range(1, 31))))
    reader.read()
    Log(tmp_path, 20).add(StepMetrics(21, 0.25, None, 0.01, 32, 0.5))  # a run that resumes behind step 20
    reader.read()
    assert [each["step"] for each in reader.lines] == list(range(1, 22))
    assert reader.lines[-1]["loss"] == 0.25
    file.unlink()
    reader.read()
    assert reader.lines == []


@pytest.mark.parametrize(
    "bad",
    ["nothing\n", "[]\n", "{}\n", line(2, loss="1"), line(2, step=True), line(1), line(2, validation=[1])],
)  # fmt: skip
def test_a_damaged_line_is_named_each_time(tmp_path: Path, bad: str) -> None:
    (tmp_path / LOG).write_text(line(1) + bad + line(3))
    reader = LogReader(tmp_path)
    for _ in range(2):
        with pytest.raises(RegardError, match=r"log.jsonl' is damaged: line 2"):
            reader.read()
    if bad != line(1):  # a step twice is no matter to who reads all
        with pytest.raises(RegardError, match=r"log.jsonl' is damaged: line 2"):
            read_log(tmp_path)
    (tmp_path / LOG).write_text(line(1) + line(2, loss=float("nan")))  # a loss that is none is one that a run may have
    reader.read()
    assert [each["step"] for each in reader.lines] == [1, 2]


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / LOG).mkdir()
    with pytest.raises(RegardError, match="needs to be a regular file"):
        LogReader(tmp_path).read()
    with pytest.raises(RegardError, match="nothing was trained yet"):
        read_log(tmp_path)
