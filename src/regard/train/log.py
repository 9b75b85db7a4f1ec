"""A run's log.jsonl, a line an update: written line by line, read whole, or read on while another process writes."""

import json
from array import array
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.files import expect_type, open_regular, parse_json, whole

LOG = "log.jsonl"
FIELDS = {"step": int, "loss": float, "rate": float, "tokens": int, "seconds": float}

Line = dict[str, Any]


class Log:
    """A run's log that is written: a line for each update. Lines beyond where a run resumes are taken away."""

    def __init__(self, run: Path, step: int) -> None:
        self.file = run / LOG
        kept = [line for line in read_log(run) if line["step"] <= step] if self.file.exists() else []
        with whole(self.file) as file:
            file.write_text("".join(f"{json.dumps(line)}\n" for line in kept), encoding="utf-8")

    def add(self, report: Any) -> None:
        """Append an update's report."""
        try:
            with self.file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(vars(report)) + "\n")
        except OSError as error:
            raise RegardError(f"cannot write {str(self.file)!r}: {error.strerror or error}") from error


def read_log(run: Path) -> list[Line]:
    """Read a run's log, a dict an update; a last line that is not whole yet is left out."""
    file = run / LOG
    if not file.is_file():
        raise RegardError(f"{str(run)!r} has no {LOG}: nothing was trained yet")
    lines = read_from(file, 0).split(b"\n")[:-1]
    return [_parsed(file, number, line) for number, line in enumerate(lines, 1)]


class LogReader:
    """A run's log that may be growing: each `read` goes on where the one before ended, of whole lines alone.

    steps, losses, seconds, tokens: of every update. validations: (step, loss) where it was measured. rate: the last.
    """

    def __init__(self, run: Path) -> None:
        self.file = run / LOG
        self.validations: list[tuple[int, float]] = []
        self.rate: float | None = None
        self._read, self._inode = 0, 0  # bytes that were read, and of which file
        self._forget()

    def read(self) -> None:
        """Read what is new. A log that was written anew, as a run that resumes does, is read from its start."""
        if not self.file.exists():
            self._forget()
            return
        now = self.file.stat()
        if now.st_ino != self._inode or now.st_size < self._read:
            self._forget()
            self._inode = now.st_ino
        for line in read_from(self.file, self._read).split(b"\n")[:-1]:
            number = len(self.steps) + 1
            update = _parsed(self.file, number, line)
            if self.steps and update["step"] <= self.steps[-1]:
                raise RegardError(f"{str(self.file)!r} is damaged: line {number} has step {update['step']} once more")
            self.steps.append(update["step"])
            self.losses.append(update["loss"])
            self.seconds.append(update["seconds"])
            self.tokens.append(update["tokens"])
            self.rate = float(update["rate"])
            if update["validation"] is not None:
                self.validations.append((int(update["step"]), float(update["validation"])))
            self._read += len(line) + 1

    def _forget(self) -> None:
        self.steps, self.losses, self.seconds, self.tokens = array("q"), array("d"), array("d"), array("q")
        self.validations, self.rate = [], None
        self._read = 0


def read_from(file: Path, start: int) -> bytes:
    """Read a file of a run from a place on. Raises RegardError for what cannot be read."""
    with open_regular(file) as opened:
        opened.seek(start)
        return opened.read()


def _parsed(file: Path, number: int, line: bytes) -> Line:
    """Parse one line of a log. Raises RegardError for what no run writes."""
    try:
        found = expect_type("it", parse_json(line), dict)
        for name, kind in FIELDS.items():
            expect_type(name, found.get(name), kind)
        expect_type("validation", found.get("validation"), float, None)
    except RegardError as error:
        raise RegardError(f"{str(file)!r} is damaged: line {number}: {error}") from error
    return found
