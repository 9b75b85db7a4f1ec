"""Read JSON, check the types of its values, and write it whole or not at all."""

import json
import math
import sys
from pathlib import Path
from typing import Any

from regard.errors import RegardError, first_line
from regard.files import LARGEST, STANDARD_OUTPUT, read_regular, unreadable, whole

NAMES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", list: "a list", dict: "names"}


def parse_json(content: bytes | str) -> Any:
    """Parse JSON; the message of the RegardError is a reason that follows the name of what was read."""
    try:
        return json.loads(content if isinstance(content, str) else content.decode("utf-8-sig"))
    except RecursionError:
        raise RegardError("it is nested too deep") from None
    except ValueError as error:
        raise RegardError(first_line(error)) from error


def read_json(path: Path | str, what: str = "", *, most: int = LARGEST) -> dict[str, Any]:
    """Read the object in a JSON file. what: what the file is, for messages. most: how many bytes it may have."""
    content = read_regular(path, what, most=most)
    try:
        return expect_type("its content", parse_json(content), dict)
    except RegardError as error:
        raise unreadable(what, path, error) from error


def write_json(data: Any, file: Path, indent: int | None = None) -> None:
    """Write JSON, floats at full precision, to a file, whole or not at all; or to standard output, which is "-"."""
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
    """Check that a value is of one of some types (None for null; a whole number is a number too), and return it."""
    types = tuple(type(None) if kind is None else kind for kind in kinds)
    number = type(value) is int and float in kinds
    if not (number or (isinstance(value, types) and (type(value) is not bool or bool in kinds))):
        needed = " or ".join("null" if kind is None else NAMES[kind] for kind in kinds)
        raise RegardError(f"{name} is {short(value)}, needs {needed}")
    return value


def short(value: Any) -> str:
    """At most 40 characters of a value, for a message."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
