"""Check values of a description, of the JSON in a file: their types and ranges; errors name the field."""

import math
from collections.abc import Collection
from typing import Any, overload

from regard.errors import RegardError

MOST = 1 << 53  # of whole numbers: floats hold them exactly up to here
NAMES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", list: "a list", dict: "names"}


def expect_type(name: str, value: Any, *kinds: type | None) -> Any:
    """Check that a value is of one of some types (None for null), and return it.

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
    """Check that a value is an object with all needed fields, and no others but those of maybe; return it.

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


@overload
def expect_finite(name: str, value: Any) -> float: ...
@overload
def expect_finite(name: str, value: Any, null: None, /) -> float | None: ...
def expect_finite(name: str, value: Any, *others: None) -> float | None:
    """Check that a value is a finite number, or null with None as a further argument; return it as a float."""
    expect_type(name, value, float, *others)
    if value is not None and not math.isfinite(value):
        raise RegardError(f"{name} is {value}, needs a finite number")
    return None if value is None else float(value)


@overload
def expect_integer(name: str, value: Any, least: int, most: int) -> int: ...
@overload
def expect_integer(name: str, value: Any, least: int, most: int, null: None, /) -> int | None: ...
def expect_integer(name: str, value: Any, least: int, most: int, *others: None) -> int | None:
    """Check that a value is a whole number from least to most, or null with None as a further argument; return it."""
    expect_type(name, value, int, *others)
    if value is not None and not least <= value <= most:
        raise RegardError(f"{name} is {value}, needs a whole number from {least} to {most}")
    return value


def short(value: Any) -> str:
    """At most 40 characters of a value, for a message."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
