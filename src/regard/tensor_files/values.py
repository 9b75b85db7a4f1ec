"""Values of a file's description: of the kind that they were written as, or refused by name."""

import math
from collections.abc import Collection
from typing import Any

from regard.errors import RegardError

MOST = 1 << 53  # beyond it a whole number is none of a description's
NAMES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", list: "a list", dict: "names"}


def expect_type(name: str, value: Any, *kinds: type | None) -> Any:
    """The value, where it is of one of the kinds (None for null).

    Raises:
        RegardError: it is not, or it is a number too large, or a text that is no valid Unicode.
    """
    if value is None and None in kinds:
        return None
    if isinstance(value, bool):
        fits = bool in kinds
    elif isinstance(value, (int, float)):
        fits = abs(value) <= MOST if isinstance(value, int) and int in kinds else float in kinds
        fits &= not (isinstance(value, int) and abs(value) > MOST)
    else:
        fits = any(kind is not None and isinstance(value, kind) for kind in kinds)
    if fits and isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            fits = False
    if not fits:
        needed = " or ".join("null" if kind is None else NAMES[kind] for kind in kinds)
        raise RegardError(f"{name} is {short(value)}, needs {needed}")
    return value


def expect_fields(name: str, value: Any, needed: Collection[str], *, maybe: Collection[str] = ()) -> dict[str, Any]:
    """Names with values, where they are all that are needed, and no others but those that may be.

    Raises:
        RegardError: one is missing or unknown; it is named.
    """
    expect_type(name, value, dict)
    for each in needed:
        if each not in value:
            raise RegardError(f"{name}: {each!r} is missing")
    for each in value:
        if each not in needed and each not in maybe:
            raise RegardError(f"{name}: {short(each)} is unknown")
    return value


def expect_finite(name: str, value: Any, *others: None) -> Any:
    """A finite number as a float; null too, where others says so."""
    expect_type(name, value, float, *others)
    if value is not None and not math.isfinite(value):
        raise RegardError(f"{name} is {value}, needs a finite number")
    return None if value is None else float(value)


def expect_integer(name: str, value: Any, least: int, most: int, *others: None) -> Any:
    """A whole number within bounds; null too, where others says so."""
    expect_type(name, value, int, *others)
    if value is not None and not least <= value <= most:
        raise RegardError(f"{name} is {value}, needs a whole number from {least} to {most}")
    return value


def short(value: Any) -> str:
    """A value for a message, at most 40 characters of it."""
    told = repr(value)
    return told if len(told) <= 40 else f"{told[:39]}…"
