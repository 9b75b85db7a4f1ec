"""Keep log messages, warnings and progress bars of transformers off the terminal."""

import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

_lock, _inside, _changes = threading.Lock(), [0], ExitStack()  # how many calls are quiet now, and how to undo it


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the libraries' progress bars and advice off the terminal; errors still arrive as errors.

    Loggers, warning filters and bars belong to the process, so it is quiet until the last thread leaves.
    """
    with _lock:
        if not _inside[0]:
            _silence()
        _inside[0] += 1
    try:
        yield
    finally:
        with _lock:
            _inside[0] -= 1
            if not _inside[0]:
                _changes.close()


def _silence() -> None:
    for logger in map(logging.getLogger, ("transformers", "huggingface_hub")):  # setting a level takes a millisecond
        _changes.callback(vars(logger).update, handlers=logger.handlers, propagate=logger.propagate)
        vars(logger).update(handlers=[logging.NullHandler()], propagate=False)
    _changes.enter_context(warnings.catch_warnings())
    warnings.simplefilter("ignore")
    if "transformers" not in sys.modules:  # then nothing draws bars
        return
    import huggingface_hub.utils as hub
    from transformers.utils import logging as bars

    if not hub.are_progress_bars_disabled():
        _changes.callback(hub.enable_progress_bars)
    elif bars.is_progress_bar_enabled():
        _changes.callback(hub.disable_progress_bars)  # which the next one would enable
    if bars.is_progress_bar_enabled():
        _changes.callback(bars.enable_progress_bar)
    bars.disable_progress_bar()
