"""Check a training run's folder, and read and write its log.jsonl, without importing torch."""

import json
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.files import LOCK, expect_type, is_temporary, open_regular, parse_json, whole

WATCH, RUN_JSON, LOSS, SAMPLES = "watch", "run.json", "loss.png", "samples.txt"
LOG = "log.jsonl"
FIELDS = {"step": int, "loss": float, "rate": float, "tokens": int, "seconds": float}
Line = dict[str, Any]


def check_place_for_run(folder: Path, *, resume: bool) -> bool:
    """Check that a run can be written to a folder. Returns whether it resumes an existing run."""
    if folder.exists() and not folder.is_dir():
        raise RegardError(f"--out {str(folder)!r} is a file: pass a folder's name")
    if (folder / RUN_JSON).exists():
        if not resume:
            raise RegardError(f"--out {str(folder)!r} already has a run: use --resume, or name another folder")
        return True
    if folder.is_dir() and any(entry.name != LOCK and not is_temporary(entry.name) for entry in folder.iterdir()):
        raise RegardError(f"--out {str(folder)!r} is not empty and isn't a run: name another folder")
    return False


def check_watched_traces(run: Path) -> None:
    """Raise RegardError if a run has no watched traces."""
    if not any((run / WATCH).glob("step-*.safetensors")):
        raise RegardError(f"{str(run)!r} has no watched traces: train with --watch SENTENCE")


class Log:
    """The log of a run, opened for writing. When a run resumes, lines after its step are removed."""

    def __init__(self, run: Path, step: int) -> None:
        self.file = run / LOG
        lines = [line for line in read_log(run) if line["step"] <= step] if self.file.exists() else []
        with whole(self.file) as file:
            file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")

    def add(self, report: Any) -> None:
        """Append a line with an update's metrics."""
        try:
            with self.file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(vars(report)) + "\n")
        except OSError as error:
            raise RegardError(f"cannot write {str(self.file)!r}: {error.strerror or error}") from error


def read_log(run: Path) -> list[Line]:
    """Read a run's log as one dictionary per update. An unfinished last line is ignored."""
    file = run / LOG
    if not file.is_file():
        raise RegardError(f"{str(run)!r} has no {LOG}: nothing was trained yet")
    with open_regular(file) as stream:
        lines = stream.read().split(b"\n")[:-1]
    return [_parsed_log_line(file, number, line) for number, line in enumerate(lines, 1)]


def _parsed_log_line(file: Path, number: int, line: bytes) -> Line:
    """Parse and check a line of a log. Raises RegardError if it is damaged."""
    try:
        values = expect_type("it", parse_json(line), dict)
        for name, kind in FIELDS.items():
            expect_type(name, values.get(name), kind)
        expect_type("validation", values.get("validation"), float, None)
    except RegardError as error:
        raise RegardError(f"{str(file)!r} is damaged: line {number}: {error}") from error
    return values
