"""Say in one line what is being done and about how long it takes, where that is more than ten seconds."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

LEAST, LONG = 0.1, 10.0  # part of work and time by which the rest is estimated, and seconds from which on that is said


class Estimate:
    """Says it once. say: prints a line, or the console that it is printed on. what: is being done."""

    def __init__(
        self, say: "Callable[[str], object] | Console", what: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._say: Callable[[str], object] = say if callable(say) else partial(say.print, style="dim", markup=False)
        self._what, self._clock = what, clock
        self._began, self._told = clock(), False
        self._share = 0.0
        self._first: tuple[float, float] | None = None  # seconds and share when the first part is done

    def add(self, share: float) -> None:
        """Count a part of the work as done: of 1 in all."""
        self.at(self._share + share)

    def one_pass(self, model: Any) -> AbstractContextManager[None]:
        """Count the layers of a model as they end, of one pass in all, inside the block."""
        from regard.capture.progress import report_layers_of_pass

        return report_layers_of_pass(model, self.add)

    def at(self, share: float) -> None:
        """Tell how much of the work is done: 0 to 1. Reports of a batch may come at once, so time has to go on too."""
        self._share = share
        taken = self._clock() - self._began
        self._first = self._first or (taken, share)
        seconds, done = taken - self._first[0], share - self._first[1]
        if self._told or share < LEAST or seconds < LEAST * taken or not 0 < done < 1:
            return
        self._told = True
        whole = taken + (1 - share) * seconds / done
        if whole > LONG and share < 1:
            self._say(f"{self._what}: about {progress_time_in_words(whole)} in all")


def progress_time_in_words(seconds: float) -> str:
    """Spell a duration as one says it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
