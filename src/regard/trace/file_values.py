"""Tokens and statuses of a file's description: every value of the kind that it was written as, or refused by name."""

from collections.abc import Sequence
from typing import Any

from regard.errors import RegardError
from regard.tensor_files import exactly, finite, typed, whole_number

TOKEN: tuple[tuple[type | None, ...], ...] = ((int,), (str,), (int,), (int,), (int, None), (bool,))
STATUS: dict[str, tuple[type | None, ...]] = {
    "model": (str,), "kernels": (list,), "device": (str,), "dtype": (str,), "difference": (float, None),
    "rows_compared": (int,), "embedding_difference": (float, None), "unknown": (list,), "dropped": (list,),
    "notes": (list,), "seconds": (float,), "compared_with": (str,),
}  # fmt: skip
IDS = (1 << 31) - 1  # the largest id of a token


def token(number: int, told: Any, text: str) -> Sequence[Any]:
    """A token's values, in their order."""
    if len(typed(f"token {number}", told, list)) != len(TOKEN):
        raise RegardError(f"token {number} has {len(told)} values, needs {len(TOKEN)}")
    values = [typed(f"a value of token {number}", value, *kinds) for value, kinds in zip(told, TOKEN, strict=True)]
    name, _, start, end, word, _ = values
    whole_number(f"the id of token {number}", name, -1, IDS)  # -1 where a model reads no ids
    whole_number(f"the end of token {number}", end, 0, len(text))
    whole_number(f"the start of token {number}", start, 0, end)
    whole_number(f"the word of token {number}", word, 0, IDS, None)
    return values


def names(told: Any) -> dict[int, str]:
    """How ids are spelled that stand in no text."""
    found = {}
    for each in typed("names", told, list):
        if len(typed("one of names", each, list)) != 2:
            raise RegardError(f"one of names has {len(each)} values, needs an id and how it is spelled")
        number = whole_number("the id of one of names", each[0], 0, IDS)
        if number in found:
            raise RegardError(f"names: id {number} stands in them twice")
        found[number] = typed("one of names", each[1], str)
    return found


def status(told: Any) -> dict[str, Any]:
    """A status's values by name, lists as tuples."""
    found = {}
    for name, value in exactly("status", told, STATUS).items():
        typed(f"status: {name}", value, *STATUS[name])
        if float in STATUS[name] and value is not None and finite(f"status: {name}", value) < 0:
            raise RegardError(f"status: {name} is {value}, needs 0 or more")
        found[name] = tuple(typed(f"status: {name}", each, str) for each in value) if isinstance(value, list) else value
    whole_number("status: rows_compared", found["rows_compared"], 0, 1 << 53)
    return found
