"""Keep log messages, warnings and progress bars of transformers off the terminal, for the calling thread alone.

Handlers, warning filters and progress bars belong to the whole process. The filters that are installed here look at the
thread: they hold back what a thread logs inside `quiet()`, and let through what any other logs meanwhile. The first
thread that enters installs them and the last that leaves removes them, so that nothing stays changed in whatever order
they leave. Progress bars alone are off for all threads.
"""

import logging
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import huggingface_hub.utils as hub
import transformers

from regard.model_files.import_models import import_models

import_models()
_silent: ContextVar[bool] = ContextVar("regard_quiet", default=False)
_lock = threading.Lock()
_inside: list["_Installed"] = []  # one entry a thread, all the same
if hasattr(os, "register_at_fork"):  # a child has no thread that would release it
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


class _EveryWarning(type):
    """Makes every warning a subclass of its classes inside `quiet()`, and none elsewhere."""

    def __subclasscheck__(cls, other: Any) -> bool:
        return _silent.get()


class _QuietWarning(Warning, metaclass=_EveryWarning):
    """The category of a warning filter, which asks with `issubclass`."""


def _handler_passes_record(_record: logging.LogRecord) -> bool:
    """Whether a handler lets a record through."""
    return not _silent.get()


class _Installed:
    """The installed filters, and the settings of progress bars before them."""

    def __init__(self) -> None:
        self.handlers = [logging.lastResort] if logging.lastResort is not None else []
        for name in ("transformers", "huggingface_hub"):
            logger: logging.Logger | None = logging.getLogger(name)
            while logger is not None:
                self.handlers += [handler for handler in logger.handlers if handler not in self.handlers]
                logger = logger.parent if logger.propagate else None
        for handler in self.handlers:
            handler.addFilter(_handler_passes_record)
        warnings.simplefilter("ignore", category=_QuietWarning)
        self.filter = warnings.filters[0]
        self.bars = transformers.utils.logging.is_progress_bar_enabled()
        self.hub_bars = not hub.are_progress_bars_disabled()
        transformers.utils.logging.disable_progress_bar()

    def remove(self) -> None:
        for handler in self.handlers:
            handler.removeFilter(_handler_passes_record)
        if self.filter in warnings.filters:  # not where older filters were restored meanwhile
            warnings.filters.remove(self.filter)  # type: ignore[attr-defined]
        if self.bars:
            transformers.utils.logging.enable_progress_bar()
        if self.hub_bars == hub.are_progress_bars_disabled():
            (hub.enable_progress_bars if self.hub_bars else hub.disable_progress_bars)()


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the library's progress bars and advice off the terminal; errors still arrive as errors."""
    with _lock:
        _inside.append(_inside[0] if _inside else _Installed())
    before = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(before)
        with _lock:
            installed = _inside.pop()
            if not _inside:
                installed.remove()
