"""Print objects that hold tensors or long texts in a few lines."""

from dataclasses import fields, is_dataclass
from typing import Any

MAX_CHARACTERS = 60  # of each field's value


def short_repr(made: Any) -> str:
    """Show a dataclass as its fields: tensors by their shapes, collections by their lengths, the start of a text.

    Use it in a class as `__repr__ = short_repr`.
    """
    shown = [f"{item.name}={_short(getattr(made, item.name))}" for item in fields(made) if item.repr]
    return f"{type(made).__name__}({', '.join(shown)})"


def _short(value: Any) -> str:
    kind, shape = type(value).__name__, getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return f"{kind}{tuple(shape)}"
    if isinstance(value, str):
        return repr(value if len(value) <= MAX_CHARACTERS else value[: MAX_CHARACTERS - 1] + "…")
    if isinstance(value, (list, tuple, dict)) and len(value) > 3:
        return f"{kind} of {len(value)}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_short, value))}]"
    return f"{kind}(…)" if is_dataclass(value) or len(repr(value)) > MAX_CHARACTERS else repr(value)
