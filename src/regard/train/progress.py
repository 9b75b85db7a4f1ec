"""Look at a run from outside, while another process may train it: how far it is, and whether it still goes on.

Only what is written whole is read: a line of the log at a time, every other file as it was renamed to its name.
"""

import re
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from regard.errors import RegardError
from regard.files import is_locked
from regard.nn.folder import POINTER, newest_transformer_folder
from regard.train.checkpoint import run_files_by_step, step_of_checkpoint
from regard.train.run_files import LOG, SAMPLES, WATCH, Line, LogReader, check_there_is_run, read_from
from regard.train.run_folder import RUN_JSON, RunInfo, read_run_info

Going = Literal["trains", "silent", "ended", "stopped", "broken off", "not begun", "unknown"]
SILENT = 30.0  # seconds without a word, and at least so many times that of a step, after which that is said
STEPS = 10.0
LATELY = 50  # updates by whose seconds the time left is estimated
SAMPLED = 1 << 18  # bytes at the end of samples.txt that are read


@dataclass(frozen=True)
class Sample:
    """What the model wrote at a step."""

    step: int
    text: str


@dataclass(frozen=True, eq=False)
class RunProgress:
    """How far a run is.

    log: every update so far, as `read_log` has them.
    going: "trains" while a process does; "silent" where it has written nothing for `silence` seconds; "ended" after its
    last step; "stopped" where it saved the step that it ended at, "broken off" where it did not: it was killed, or
    failed; "not begun" where no update was made and no process trains; "unknown" where the system has no locks to tell.
    left: seconds, as the last updates went. speed: tokens a second, the
    median of the last updates. checkpoint: the step of the newest. watched: the steps of the watched traces. samples:
    the last ones, all where `samples_cut` is false. mark: of the watched traces, another one when there is another.
    """

    info: RunInfo
    log: list[Line]
    going: Going
    silence: float
    left: float | None
    speed: float | None
    checkpoint: int | None
    watched: list[int]
    samples: list[Sample]
    samples_cut: bool
    mark: str

    @property
    def step(self) -> int:
        """Updates done."""
        return self.log[-1]["step"] if self.log else 0


class FollowedRun:
    """A run's folder that is looked at again and again; its log is read on where it was read to."""

    def __init__(self, folder: Path) -> None:
        """Open a run. Raises RegardError where there is no such folder, or it is no run's."""
        check_there_is_run(folder)
        read_run_info(folder)
        self.folder = folder
        self._log, self._lock = LogReader(folder), threading.Lock()

    def look(self) -> RunProgress:
        """Read what is there now."""
        try:
            return self._look()
        except OSError as error:  # what its files' own readers do not name
            raise RegardError(f"the run {str(self.folder)!r} cannot be read: {error.strerror or error}") from error

    def _look(self) -> RunProgress:
        if not self.folder.is_dir():
            raise RegardError(f"the folder {str(self.folder)!r} is gone: it was removed or renamed")
        with self._lock:  # several may look at once
            trains = is_locked(self.folder)  # before the log: what it says is not older than that
            info = read_run_info(self.folder)
            self._log.read()
            log = list(self._log.lines)
        saved = (self.folder / POINTER).is_file()
        newest = step_of_checkpoint(newest_transformer_folder(self.folder)) if saved else -1
        checkpoint = newest if newest >= 0 else None
        watched = run_files_by_step(self.folder / WATCH, ".safetensors")
        samples, cut = _samples(self.folder, info)
        silence = _seconds_run_silent(self.folder, [file for _, file in watched[-1:]])
        lately = log[-LATELY:]
        mean = sum(each["seconds"] for each in lately) / len(lately) if lately else None
        step = log[-1]["step"] if log else 0
        going = _how_run_goes_on(
            trains, step, info.settings.steps, checkpoint, silence > max(SILENT, STEPS * (mean or 0.0))
        )
        speeds = sorted(each["tokens"] / each["seconds"] for each in lately if each["seconds"] > 0)
        return RunProgress(
            info, log, going, silence,
            left=(info.settings.steps - step) * mean if mean is not None and going in ("trains", "silent") else None,
            speed=speeds[len(speeds) // 2] if speeds else None,
            checkpoint=checkpoint, watched=[each for each, _ in watched], samples=samples, samples_cut=cut,
            mark=_mark_of_watched_files([file for _, file in watched]),
        )  # fmt: skip


def _how_run_goes_on(trains: bool | None, step: int, steps: int, checkpoint: int | None, quiet: bool) -> Going:
    if trains:
        return "silent" if quiet else "trains"
    if step >= steps and checkpoint is not None and checkpoint >= steps:
        return "ended"
    if trains is None:
        return "unknown"
    if step == 0:
        return "not begun"
    return "stopped" if checkpoint == step else "broken off"


def _seconds_run_silent(run: Path, more: list[Path]) -> float:
    """The seconds since something was last written to a run's folder."""
    last = 0.0
    for path in (run / LOG, run / RUN_JSON, run / POINTER, run / SAMPLES, *more):
        try:
            last = max(last, path.stat().st_mtime)
        except OSError:  # not there, or not any more
            continue
    return max(0.0, time.time() - last)


def _mark_of_watched_files(files: list[Path]) -> str:
    """What differs when there is another watched trace: how many there are, and when and as what the last was made."""
    if not files:
        return ""
    try:
        last = files[-1].stat()
    except OSError:
        return ""
    return f"{len(files)}-{last.st_mtime_ns}-{last.st_ino}"


def _samples(run: Path, info: RunInfo) -> tuple[list[Sample], bool]:
    """The last samples, in order, and whether there are more before them.

    A sample may have several lines. A line begins one where it names a step at which samples are written.
    """
    file = run / SAMPLES
    if not file.exists():
        return [], False
    size = file.stat().st_size
    text = read_from(file, max(0, size - SAMPLED)).decode("utf-8", "replace")
    every, last = info.settings.sample_every, info.settings.steps
    found: list[Sample] = []
    for line in text.split("\n")[1 if size > SAMPLED else 0 :]:
        begins = re.match(r"step ([0-9]{1,15}): ", line)
        step = int(begins[1]) if begins else 0
        if begins and (step == last or (every > 0 and step % every == 0)):
            while found and found[-1].step >= step:  # a run that resumed wrote them once more
                found.pop()
            found.append(Sample(step, line[begins.end() :]))
        elif found:
            found[-1] = Sample(found[-1].step, f"{found[-1].text}\n{line}")
    return [Sample(each.step, each.text.rstrip("\n")) for each in found], size > SAMPLED
