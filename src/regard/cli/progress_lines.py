"""Lines that tell how far a long run is, for whoever reads them through a pipe: each at once, and never long none."""

import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType

EVERY = 20.0  # seconds: a line is due where none was told for so long; asked each second, so 30 are never reached


class ProgressLines:
    """Says lines on standard output, and between them, every now and then, what is being done.

    every: seconds without a line after which one is due. clock: in seconds. alone: whether nothing else shows how far
    the run is, as a progress bar does; where something does, only what is said is told.
    """

    def __init__(
        self, *, every: float = EVERY, clock: Callable[[], float] = time.monotonic, alone: bool = True
    ) -> None:
        self._every, self._clock, self.alone = every, clock, alone
        self._out, self._lock, self._over = sys.stdout, threading.Lock(), threading.Event()
        self._began = self._said = clock()
        self._doing = "starting"

    def say(self, line: str) -> None:
        """Tell a line, now."""
        with self._lock:
            self._out.write(f"{line}\n")
            self._out.flush()
            self._said = self._clock()

    def doing(self, what: str) -> None:
        """Keep what is being done, for the next time that a line is due."""
        self._doing = what

    def tick(self) -> None:
        """Tell what is being done, and for how long the run has been going, where a line is due."""
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
