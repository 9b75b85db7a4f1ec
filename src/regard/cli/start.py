"""Start and end the command's process faster, without changing a process that only calls `main`.

The console script and `python -m regard` call `own_process`, after which nothing else runs. A program that calls
`main` continues afterwards, and ends with its own exit code.

A short command spends most of its time importing torch and transformers. During the imports, Python runs the garbage
collector about a thousand times and finds almost nothing. At exit, it frees every imported object.
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

IMPORTED = 500_000  # more objects than imports for a short text create
DTYPES = ("auto", "float32", "bfloat16", "float16")  # the values that `regard.load` accepts
began = [time.perf_counter()]  # when the command started, before its imports
dtype = ["auto"]  # the dtype of this command's model
_thresholds: list[tuple[int, int, int]] = []  # Python's original thresholds, while ours are set
_exit_code: list[int] = []  # set if the command ran to its end


class LossesWithoutScipy:
    """A finder for `sys.meta_path` that keeps transformers' losses from importing scipy, which saves 0.4 s."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        """Make transformers report that scipy is missing before it imports its losses."""
        if name == "transformers.loss":
            vars(sys.modules["transformers.utils"])["is_scipy_available"] = lambda: False


def begin_process() -> None:
    """Postpone garbage collection until `settle`, prevent imports of scipy, and prepare to exit without cleanup."""
    _thresholds[:] = [gc.get_threshold()]
    gc.set_threshold(IMPORTED, *_thresholds[0][1:])
    sys.meta_path.insert(0, LossesWithoutScipy)
    atexit.register(_exit_at_once)  # registered first, so it is called last


def settle() -> None:
    """Restore Python's garbage collection, and exclude all existing objects from it."""
    if not _thresholds:
        return
    gc.freeze()
    gc.set_threshold(*_thresholds.pop())


def undo_begin() -> None:
    """Undo `begin_process`, because a user's program will run in this process."""
    settle()
    sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not LossesWithoutScipy]
    atexit.unregister(_exit_at_once)


def load_model(source: str | None) -> "Model":
    """Load a verb's model, then restore garbage collection, because no large import follows."""
    from regard.models.load import load

    model = load(source, dtype=dtype[0])
    settle()
    return model


def own_process(run: Callable[[], None]) -> NoReturn:
    """Run the command in a process that starts and ends faster. run: the command, which raises SystemExit."""
    begin_process()
    try:
        run()
    except SystemExit as left:
        sys.exit(record_exit(left.code) if isinstance(left.code, int) else left.code)
    sys.exit(record_exit(0))


def record_exit(code: int) -> int:
    """Record the exit code of a command that ran to its end, and return it."""
    _exit_code[:] = [code]
    return code


def _exit_at_once() -> None:
    """End the process without freeing objects. All threads are joined and other exit functions called before this."""
    if not _exit_code:  # after an error, Python exits as usual
        return
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        return
    os._exit(_exit_code[0])
