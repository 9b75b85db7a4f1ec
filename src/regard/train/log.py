"""A run's log.jsonl, a line an update: written line by line, read whole, or read on while another process writes."""

import json
import math
import os
from array import array
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.files import check_regular, open_regular, unreadable, whole
from regard.json_files import parse_json

LOG = "log.jsonl"
MOST = 1 << 30  # bytes of a log: millions of updates
LONGEST = 1 << 12  # bytes of a line: it has six numbers
KEPT = 256  # bytes at the end of what was read, by which a log that was written anew is known

Line = dict[str, int | float | None]


class Log:
    """A run's log that is written: a line for each update. Lines beyond where a run resumes are taken away."""

    def __init__(self, run: Path, step: int) -> None:
        self.file = run / LOG
        with whole(self.file) as file, file.open("wb") as kept:
            if os.path.lexists(self.file):
                with open_regular(self.file) as lines:
                    for line in lines:
                        if _training_log_line_step(line) <= step:
                            kept.write(line)

    def add(self, report: Any) -> None:
        """Append an update's report."""
        try:
            with self.file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(vars(report)) + "\n")
        except OSError as error:
            raise RegardError(f"cannot write {str(self.file)!r}: {error.strerror or error}") from error


def _training_log_line_step(line: bytes) -> int | float:
    """The step of a line that is whole; beyond all of the line that a killed run was about to write."""
    try:
        step = json.loads(line)["step"] if line.endswith(b"\n") and len(line) < LONGEST else math.inf
    except (ValueError, KeyError, TypeError, RecursionError):
        return math.inf
    return step if isinstance(step, int) else math.inf


def read_log(run: Path) -> list[Line]:
    """Read a run's log, a dict an update; a last line that is not whole yet is left out.

    Raises:
        RegardError: there is none, or it is damaged.
    """
    file = run / LOG
    if not file.is_file():
        raise RegardError(f"{str(run)!r} has no {LOG}: nothing was trained yet")
    lines = _read_training_log(file, 0).split(b"\n")[:-1]
    return [_parsed(file, number, line) for number, line in enumerate(lines, 1)]


class LogReader:
    """A run's log that may be growing: each `read` goes on where the one before ended, of whole lines alone.

    steps, losses, seconds, tokens: of every update. validations: (step, loss) where it was measured. rate: the last.
    """

    def __init__(self, run: Path) -> None:
        self.file = run / LOG
        self.validations: list[tuple[int, float]] = []
        self.rate: float | None = None
        self._read, self._tail = 0, b""  # bytes that were read, and the last of them
        self._forget()

    def read(self) -> None:
        """Read what is new. A log that was written anew, as a run that resumes does, is read from its start.

        Raises:
            RegardError: it cannot be read, or is damaged.
        """
        if not self.file.exists():
            self._forget()
            return
        start = max(0, self._read - KEPT)
        content = _read_training_log(self.file, start)
        if content[: self._read - start] != self._tail:
            self._forget()
            start, content = 0, _read_training_log(self.file, 0)
        new = content[self._read - start :]
        ready = new[: new.rfind(b"\n") + 1]
        try:
            for line in ready.split(b"\n")[:-1]:
                self._add(line)
        except RegardError:
            self._forget()  # what was added of it is not counted
            raise
        self._read += len(ready)
        self._tail = (self._tail + ready)[-KEPT:]

    def _add(self, line: bytes) -> None:
        number = len(self.steps) + 1
        found: Any = _parsed(self.file, number, line)
        if self.steps and found["step"] <= self.steps[-1]:
            raise RegardError(f"{str(self.file)!r} is damaged: line {number} has step {found['step']} once more")
        for name, numbers in (
            ("step", self.steps),
            ("loss", self.losses),
            ("seconds", self.seconds),
            ("tokens", self.tokens),
        ):
            numbers.append(found[name])
        self.rate = float(found["rate"])
        if found["validation"] is not None:
            self.validations.append((int(found["step"]), float(found["validation"])))

    def _forget(self) -> None:
        self.steps, self.losses, self.seconds, self.tokens = array("q"), array("d"), array("d"), array("q")
        self.validations, self.rate = [], None
        self._read, self._tail = 0, b""


def _read_training_log(file: Path, start: int) -> bytes:
    """The bytes of a log from a place on. Raises RegardError for what cannot be read."""
    if check_regular(file) > MOST:
        raise RegardError(f"{str(file)!r} cannot be read: {MOST:,} bytes are the most")
    return read_from(file, start, MOST)


def read_from(file: Path, start: int, most: int) -> bytes:
    """Read so many bytes of a file of a run from a place on. Raises RegardError for what cannot be read."""
    try:
        with os.fdopen(os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as opened:
            opened.seek(start)
            return opened.read(most)
    except OSError as error:
        raise unreadable("", file, error) from error


def _parsed(file: Path, number: int, line: bytes) -> Line:
    """One line of a log. Raises RegardError for what no run writes."""
    try:
        found = parse_json(line, infinite=True)
    except RegardError as error:
        raise RegardError(f"{str(file)!r} is damaged: line {number}: {error}") from error
    whole_numbers, others = ("step", "tokens"), ("loss", "rate", "seconds")
    fits = isinstance(found, dict) and all(
        isinstance(found.get(name), kind) and not isinstance(found[name], bool)
        for names, kind in ((whole_numbers, int), (others, int | float))
        for name in names
    )
    if not fits or not isinstance(found.get("validation"), int | float | None):
        raise RegardError(f"{str(file)!r} is damaged: line {number} is not what a run writes")
    finite = (*whole_numbers, "rate", "seconds")
    if not all(abs(found[name]) < 1 << 62 for name in finite):
        raise RegardError(f"{str(file)!r} is damaged: line {number} is not what a run writes")
    return found
