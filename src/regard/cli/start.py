"""Begin and end the command's own process faster; a process that merely calls `main` is left as it is.

`own_process` is what the console script and `python -m regard` call: nothing comes after it. A program that calls
`main` ends as it will, with a code of its own.

Most of a short command is importing torch, and transformers for most models. Python looks for cyclic garbage about a
thousand times meanwhile and finds next to none, and at the end takes everything apart that was imported.
"""

import atexit
import gc
import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from regard.models.model import Model

IMPORTED = 500_000  # objects, more than a short text's imports make
DTYPES = ("auto", "float32", "bfloat16", "float16")  # as `regard.load` takes them
began = [time.perf_counter()]  # when the command began to work, its imports included
dtype = ["auto"]  # that this command's model is loaded in
_before: list[tuple[int, int, int]] = []  # Python's own thresholds, while they are raised
_code: list[int] = []  # what a command that came to its end leaves with


class LossesWithoutScipy:
    """On `sys.meta_path`: keeps transformers alone from importing scipy, for losses of object detection: 0.4 s."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        """Change what these losses ask, before they are imported."""
        if name == "transformers.loss":
            vars(sys.modules["transformers.utils"])["is_scipy_available"] = lambda: False


def begin() -> None:
    """Put off the search for cyclic garbage until `settle`, and the import of a package that isn't needed."""
    _before[:] = [gc.get_threshold()]
    gc.set_threshold(IMPORTED, *_before[0][1:])
    sys.meta_path.insert(0, LossesWithoutScipy)
    atexit.register(_leave)  # before all others, so that it is called after them


def settle() -> None:
    """Go back to what Python does by itself, and look for garbage only in what is made from now on."""
    if not _before:
        return
    gc.freeze()
    gc.set_threshold(*_before.pop())


def leave_to_program() -> None:
    """Take back all that `begin` changed: a program of the user's runs in this process and ends as Python ends."""
    settle()
    sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not LossesWithoutScipy]
    atexit.unregister(_leave)


def load_model(source: str | None) -> "Model":
    """Load a verb's model: behind it nothing large is imported any more."""
    from regard.models.load import load

    model = load(source, dtype=dtype[0])
    settle()
    return model


def own_process(run: Callable[[], None]) -> NoReturn:
    """Be the command's process from its begin to its end. run: the command, which leaves with its exit code."""
    begin()
    try:
        run()
    except SystemExit as left:
        sys.exit(finished(left.code) if isinstance(left.code, int) else left.code)
    sys.exit(finished(0))


def finished(code: int) -> int:
    """Note that the command came to its end with this exit code, with nothing left to say; returns it."""
    _code[:] = [code]
    return code


def _leave() -> None:
    """Give memory back as a whole: threads are joined by now, and all else that waits for the end is done."""
    if not _code:  # Python ends after an error in its own way
        return
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        return
    os._exit(_code[0])
