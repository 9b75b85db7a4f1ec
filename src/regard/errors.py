"""Errors that a user can fix, with the name of the argument or option to change."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

_controls: ContextVar[Mapping[str, str]] = ContextVar("controls")


class RegardError(ValueError):
    """Wrong input. The message is one line, which the command prints before it exits with code 2."""


class OutOfRangeError(RegardError, IndexError):
    """A number is out of range. As an IndexError, it also ends iteration over a sequence.

    axis, given, size: the axis, the invalid number and the size of the axis, if an attention call lacks a text, head or
    position. Otherwise None.
    """

    def __init__(
        self, message: str, *, axis: str | None = None, given: int | None = None, size: int | None = None
    ) -> None:
        super().__init__(message)
        self.axis, self.given, self.size = axis, given, size


class MissingPartError(RegardError):
    """An optional part of regard is needed but not installed."""


class InexactError(RegardError):
    """A check during a computation failed: a number differs from its expected value by more than rounding error."""


def control_name(name: str, usual: str) -> str:
    """Return the name of an argument for the user. usual: its name in the command and in Python. A page can differ."""
    return _controls.get({}).get(name, usual)


@contextmanager
def controls_called(names: Mapping[str, str]) -> Iterator[None]:
    """Make `control_name` return these names inside the block."""
    token = _controls.set(names)
    try:
        yield
    finally:
        _controls.reset(token)


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or the name of its class if it has no message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
