"""Progress of a long run as lines on standard output, for pipes and log files, where no progress bar can be drawn."""

import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType

EVERY = 20.0  # seconds: after so long without a line one is due; checked each second, so that 30 are never reached


class ProgressLines:
    """Print lines at once, and after some seconds without one the current activity, from a thread.

    every: seconds without a line after which one is due. clock: in seconds. alone: whether no progress bar is shown;
    where one is, the thread is not started.
    """

    def __init__(
        self, *, every: float = EVERY, clock: Callable[[], float] = time.monotonic, alone: bool = True
    ) -> None:
        self._every, self._clock, self.alone = every, clock, alone
        self._out, self._lock, self._over = sys.stdout, threading.Lock(), threading.Event()
        self._began = self._said = clock()
        self._doing = "starting"

    def say(self, line: str) -> None:
        """Print a line and flush it."""
        with self._lock:
            self._out.write(f"{line}\n")
            self._out.flush()
            self._said = self._clock()

    def doing(self, what: str) -> None:
        """Set the current activity, which is printed the next time that a line is due."""
        self._doing = what

    def tick(self) -> None:
        """Print the current activity and the seconds since the start, if a line is due."""
        now = self._clock()
        if now - self._said >= self._every:
            self.say(f"{self._doing} ({now - self._began:,.0f} s)")

    def __enter__(self) -> "ProgressLines":
        if self.alone:
            threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()

    def _watch(self) -> None:
        while not self._over.wait(1.0):
            try:
                self.tick()
            except (OSError, ValueError):  # nobody reads any more: the run itself will meet it, and say so
                return
