"""Layers and heads by number: from 0 or, as in Python, from the end, where -1 is the last."""

from regard.errors import RegardError


def from_zero(what: str, given: int, count: int, there: str) -> int:
    """The number counted from 0 of one of count things.

    what: "layer" or "head". there: who has them, as the start of a clause: "all-MiniLM-L6-v2 has", "there are".

    Raises:
        RegardError: there is no such thing; the range is named.
    """
    if not -count <= given < count:
        behind = f", or -{count} to -1 from the end" if given < 0 else ""
        raise RegardError(f"{what} {given} is out of range: {there} {what}s 0 to {count - 1}{behind}")
    return given % count


def missing(what: str, given: int, count: int, there: str) -> RegardError:
    """What is said of a number counted from 0, of layers or heads to keep, that does not exist."""
    return RegardError(f"{what} {given} does not exist: {there} {what}s 0 to {count - 1}")
