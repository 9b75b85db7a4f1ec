"""Keep log messages, warnings and progress bars of transformers off the terminal."""

import logging
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import huggingface_hub.utils as hub
import transformers

from regard.model_files.import_models import import_models

import_models()
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
    if not hub.are_progress_bars_disabled():
        _changes.callback(hub.enable_progress_bars)
    elif transformers.utils.logging.is_progress_bar_enabled():
        _changes.callback(hub.disable_progress_bars)  # which the next one would enable
    if transformers.utils.logging.is_progress_bar_enabled():
        _changes.callback(transformers.utils.logging.enable_progress_bar)
    transformers.utils.logging.disable_progress_bar()
