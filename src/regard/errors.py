"""Errors that a user can fix, with the name of the argument or option to change."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

_controls: ContextVar[Mapping[str, str]] = ContextVar("controls")


class RegardError(ValueError):
    """Wrong input. The message is one line, which the command prints before it exits with 2."""


class OutOfRangeError(RegardError, IndexError):
    """A number that is out of range. As an IndexError, it also ends iteration over a sequence.

    axis, given, size: for a text, head or position that an attention call doesn't have, the axis, the number, and the
    size of the axis. Otherwise None.
    """

    def __init__(
        self, message: str, *, axis: str | None = None, given: int | None = None, size: int | None = None
    ) -> None:
        super().__init__(message)
        self.axis, self.given, self.size = axis, given, size


class MissingPartError(RegardError):
    """An optional part of regard is needed but not installed."""


class InexactError(RegardError):
    """A number differs from its expected value by more than rounding: a check during the computation failed."""


def control_name(name: str, usual: str) -> str:
    """Return the user's name for an argument. usual: the name on the command line and in Python. A page may differ."""
    return _controls.get({}).get(name, usual)


@contextmanager
def controls_called(names: Mapping[str, str]) -> Iterator[None]:
    """Make `control_name` return these names of arguments inside the block."""
    token = _controls.set(names)
    try:
        yield
    finally:
        _controls.reset(token)


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or the error's name if it has no message."""
    return (str(error).splitlines() or [type(error).__name__])[0]
