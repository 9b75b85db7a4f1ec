"""Read JSON within limits, check the types and ranges of its values, and write it whole or not at all.

Python's json accepts an entry that is named twice, NaN, and nesting until the stack overflows. Files may come from
anybody, so all of these are refused.
"""

import json
import math
import sys
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any, overload

from regard.errors import RegardError
from regard.files import LARGEST, STANDARD_OUTPUT, read_regular, whole

SMALL = 4 << 20  # bytes of a config: with 100,000 labels it has as many
DEEPEST = 64  # objects and lists inside each other: what people write has five
MOST = 1 << 53  # of whole numbers: floats hold them exactly up to here
NAMES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", list: "a list", dict: "names"}


def parse_json(content: bytes | str, *, deepest: int = DEEPEST, infinite: bool = False) -> Any:
    """Parse JSON strictly. deepest: how many objects and lists may lie inside each other. infinite: allow Infinity.

    Raises:
        RegardError: it is no UTF-8, no JSON, nested too deep, names an entry twice or holds a number that is none; the
            message is a reason to stand behind the name of what was read.
    """
    try:
        text = content if isinstance(content, str) else content.decode("utf-8-sig")
        parsed = json.loads(text, object_pairs_hook=_without_repeats)
        _check_json_values(parsed, deepest, infinite)
    except RegardError:
        raise
    except RecursionError:  # deeper than Python itself goes
        raise RegardError(f"it is nested deeper than {deepest} levels") from None
    except UnicodeDecodeError as error:
        raise RegardError(
            f"it is not in UTF-8 (byte {error.object[error.start]:#04x} at place {error.start})"
        ) from error
    except ValueError as error:
        raise RegardError(str(error).splitlines()[0]) from error
    return parsed


def read_json(
    path: Path | str, what: str = "", *, most: int = LARGEST, deepest: int = DEEPEST, infinite: bool = False
) -> dict[str, Any]:
    """Read the object in a JSON file, strictly.

    Args:
        what: what the file is, before its name in a message.
        most: how many bytes it may have.
        deepest, infinite: see `parse_json`.

    Raises:
        RegardError: it is no regular file, too large, no object, or as in `parse_json`; one line, with the file's name.
    """
    content = read_regular(path, what, most=most)
    named = f"{what} {str(path)!r}".lstrip()
    try:
        parsed = parse_json(content, deepest=deepest, infinite=infinite)
    except RegardError as error:
        raise RegardError(f"{named} cannot be read: {error}") from error
    if not isinstance(parsed, dict):
        raise RegardError(f"{named}: needs a JSON object, given {type(parsed).__name__}")
    return parsed


def write_json(data: Any, file: Path, indent: int | None = None) -> None:
    """Write JSON, floats at full precision, to a file, whole or not at all; or to standard output, which is "-".

    Raises:
        RegardError: the file system refuses.
    """
    if file != STANDARD_OUTPUT:
        with whole(file) as temporary:
            text = json.dumps(data, ensure_ascii=False, indent=indent, allow_nan=False)
            temporary.write_text(text + "\n", encoding="utf-8")
        return
    utf8 = (sys.stdout.encoding or "utf-8").lower().replace("-", "") == "utf8"
    sys.stdout.write(json.dumps(data, ensure_ascii=not utf8, indent=indent, allow_nan=False) + "\n")
    sys.stdout.flush()


def plain_json_values(value: Any) -> Any:
    """Make JSON's own types of dicts, sequences, tensors and arrays; what is not finite is null, as JSON has no NaN."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: plain_json_values(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, range)):
        return [plain_json_values(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


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

    name: what messages call the value.

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
    """Check that a value is a whole number from least to most, or null with None as a further argument; return it.

    name: what messages call the value.
    """
    expect_type(name, value, int, *others)
    if value is not None and not least <= value <= most:
        raise RegardError(f"{name} is {value}, needs a whole number from {least} to {most}")
    return value


def short(value: Any) -> str:
    """At most 40 characters of a value, for a message."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:39]}…"


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object each of whose entries is named once."""
    entries = dict(pairs)
    if len(entries) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise RegardError(f"the entry {twice[:80]!r} is there twice")
    return entries


def _check_json_values(parsed: Any, deepest: int, infinite: bool) -> None:
    """Raise RegardError where values are nested too deep, or a number is infinite or NaN, level by level."""
    level, depth = [parsed], 0
    while level:
        if depth > deepest:
            raise RegardError(f"it is nested deeper than {deepest} levels")
        inner: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                inner.extend(each.values())
            elif isinstance(each, list):
                inner.extend(each)
            elif isinstance(each, float) and not infinite and not math.isfinite(each):
                raise RegardError(f"it holds the number {each}")
        level, depth = inner, depth + 1
