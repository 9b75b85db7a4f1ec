"""Errors that a person can act on, and what such a person calls the thing to change."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

_controls: ContextVar[Mapping[str, str]] = ContextVar("controls")


class RegardError(ValueError):
    """Bad input, in one line: what was given and what is needed. The command prints it and exits with 2."""


class OutOfRangeError(RegardError, IndexError):
    """A number beyond a sequence: bad input, and the end of the sequence for whoever walks along it.

    axis, given, size: where an attention call is asked for a text, head or position that it does not have, what is
    counted there, the number, and how many the call has; else None.
    """

    def __init__(
        self, message: str, *, axis: str | None = None, given: int | None = None, size: int | None = None
    ) -> None:
        super().__init__(message)
        self.axis, self.given, self.size = axis, given, size


class MissingPartError(RegardError):
    """An optional part of regard is needed that this copy of it lacks."""


class InexactError(RegardError):
    """A number is off what it has to be by more than rounding: what is checked while it is computed does not hold."""


def control_name(name: str, usual: str) -> str:
    """Name what is to be changed as who asked sees it. usual: in the command and Python; a page has its own words."""
    return _controls.get({}).get(name, usual)


@contextmanager
def controls_called(names: Mapping[str, str]) -> Iterator[None]:
    """Let `control_name` give these words inside the block, by their names."""
    token = _controls.set(names)
    try:
        yield
    finally:
        _controls.reset(token)


def first_line(error: BaseException) -> str:
    """Return the first line of a library's message, or the error's name where it has none."""
    return (str(error).splitlines() or [type(error).__name__])[0]
