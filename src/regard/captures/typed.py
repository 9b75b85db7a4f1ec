"""Values of a file's description: of the kind that they were written as, or refused by name."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from regard.errors import RegardError

MOST = 1 << 53  # beyond it a whole number is none of a capture's
NAMES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", list: "a list", dict: "names"}

TOKEN: tuple[tuple[type | None, ...], ...] = ((int,), (str,), (int,), (int,), (int, None), (bool,))
STATUS: dict[str, tuple[type | None, ...]] = {
    "model": (str,), "kernels": (list,), "device": (str,), "dtype": (str,), "difference": (float, None),
    "rows_compared": (int,), "embedding_difference": (float, None), "unknown": (list,), "dropped": (list,),
    "notes": (list,), "seconds": (float,), "compared_with": (str,),
}  # fmt: skip


def typed(name: str, value: Any, *kinds: type | None) -> Any:
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
        raise RegardError(f"{name} is {_short(value)}, needs {needed}")
    return value


def finite(name: str, value: Any, *others: None) -> Any:
    """A finite number as a float; null too, where others says so."""
    typed(name, value, float, *others)
    if value is not None and not math.isfinite(value):
        raise RegardError(f"{name} is {value}, needs a finite number")
    return None if value is None else float(value)


def token(number: int, told: Sequence[Any]) -> Sequence[Any]:
    """A token's values, in their order."""
    if len(typed(f"token {number}", told, list)) != len(TOKEN):
        raise RegardError(f"token {number} has {len(told)} values, needs {len(TOKEN)}")
    return [typed(f"a value of token {number}", value, *kinds) for value, kinds in zip(told, TOKEN, strict=True)]


def status(told: Mapping[str, Any]) -> dict[str, Any]:
    """A status's values by name, lists as tuples."""
    found = {}
    for name, value in typed("status", told, dict).items():
        typed(f"status: {name}", value, *STATUS.get(name, ()))
        found[name] = tuple(typed(f"status: {name}", each, str) for each in value) if isinstance(value, list) else value
    return found


def _short(value: Any) -> str:
    told = repr(value)
    return told if len(told) <= 40 else f"{told[:39]}…"
