"""What transformers says beside its work, kept off the terminal, for the thread that asks for it and no other.

Handlers, warning filters and progress bars belong to the whole process. What is put into them here looks at who speaks:
it holds back what a thread says inside `quiet()`, and lets through what any other says meanwhile. It is put in by the
first thread that comes and taken out by the last that goes, so that nothing stays changed in whatever order they go.
Bars alone are off for all of them.
"""

import logging
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import huggingface_hub.utils as hub
import transformers

_silent: ContextVar[bool] = ContextVar("regard_quiet", default=False)
_lock = threading.Lock()
_inside: list["_Installed"] = []  # one entry a thread, all the same


class _Here(type):
    """Every warning is of such a class, inside `quiet()`, and none elsewhere."""

    def __subclasscheck__(cls, other: Any) -> bool:
        return _silent.get()


class _Unheard(Warning, metaclass=_Here):
    """What a filter of warnings names, which asks with `issubclass`."""


def _heard(_record: logging.LogRecord) -> bool:
    return not _silent.get()


class _Installed:
    """What was put in, and how it was before."""

    def __init__(self) -> None:
        self.handlers = [logging.lastResort] if logging.lastResort is not None else []
        for name in ("transformers", "huggingface_hub"):
            logger: logging.Logger | None = logging.getLogger(name)
            while logger is not None:
                self.handlers += [handler for handler in logger.handlers if handler not in self.handlers]
                logger = logger.parent if logger.propagate else None
        for handler in self.handlers:
            handler.addFilter(_heard)
        warnings.simplefilter("ignore", category=_Unheard)
        self.filter = warnings.filters[0]
        self.bars, self.hub_bars = transformers.utils.logging.is_progress_bar_enabled(), _hub_bars()
        transformers.utils.logging.disable_progress_bar()

    def remove(self) -> None:
        for handler in self.handlers:
            handler.removeFilter(_heard)
        if self.filter in warnings.filters:  # not where someone restored older filters meanwhile
            warnings.filters.remove(self.filter)  # type: ignore[attr-defined]
        if self.bars:
            transformers.utils.logging.enable_progress_bar()
        if self.hub_bars != _hub_bars():
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


def _hub_bars() -> bool:
    return not hub.are_progress_bars_disabled()
