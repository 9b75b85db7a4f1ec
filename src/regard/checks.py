"""Check arguments before any work is done, without torch: numbers of layers and heads, integers, seeds and paths."""

import difflib
import functools
import inspect
import os
from collections.abc import Callable, Collection, Mapping
from typing import Any, ParamSpec, TypeVar, get_args

from regard.errors import RegardError

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def arguments_named(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Decorate a function so that wrong arguments raise RegardError, which lists the valid arguments."""

    @functools.wraps(function)
    def called(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        try:
            return function(*args, **kwargs)
        except TypeError:
            signature = inspect.signature(function)
            try:
                signature.bind(*args, **kwargs)
            except TypeError as error:
                known = {name: parameter.kind for name, parameter in signature.parameters.items() if name != "self"}
                problem = f"{error}; it"
                for name in kwargs:
                    if name not in known:
                        meant = near_name(name, known)
                        problem = f"unknown argument {name!r}{f', did you mean {meant!r}?' if meant else '.'} It"
                names = ", ".join(name + "=" * (kind is inspect.Parameter.KEYWORD_ONLY) for name, kind in known.items())
                where = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]
                raise RegardError(f"{where}: {problem} takes {names}") from None
            raise

    return called


def refuse_both(option: str, others: Mapping[str, Any], reason: str = "pass only one of them") -> None:
    """Raise RegardError if an option is combined with one of the others. others: option values by name."""
    for name, value in others.items():
        if value:
            raise RegardError(f"{option} and {name}: {reason}")


def near_name(name: str, known: Collection[str]) -> str | None:
    """Return the known argument name closest to a wrong name, such as "heads" for PyTorch's "num_heads"."""
    parts = [argument for argument in known if argument in name.split("_")]
    return next(iter(parts or difflib.get_close_matches(name, known, n=1)), None)


def from_zero(kind: str, number: int, count: int, subject: str) -> int:
    """Return a layer or head number as 0 or more, with -1 for the last. Raises RegardError if it is out of range."""
    if not is_whole(number):
        raise RegardError(f"{kind}: got {number!r}, expected a whole number: {numbers_there(kind, count, subject)}")
    if not -count <= number < count:
        hint = f", or -{count} to -1 from the end" if number < 0 and count > 1 else ""
        raise RegardError(f"{kind} {number} is out of range: {numbers_there(kind, count, subject)}{hint}")
    return number % count


def numbers_there(kind: str, count: int, subject: str) -> str:
    """Return the range of layers or heads in words: "it has layers 0 to 5", "it has only layer 0"."""
    if count == 1:
        return f"{subject.replace('there are', 'there is')} only {kind} 0"
    return f"{subject} {kind}s 0 to {count - 1}"


def is_whole(value: object) -> bool:
    """Return whether a value is a Python or NumPy integer, but not a bool."""
    return hasattr(value, "__index__") and not isinstance(value, bool)


def kind_needed(value: object, kind: Any) -> str | None:
    """Return the expected type of a field, in words, or None if the value has it. An int also fits a float field."""
    options = get_args(kind)
    if options and isinstance(options[0], str):  # a Literal
        return None if value in options else " or ".join(map(repr, options))
    allowed = options or (kind,)
    if value is None and type(None) in allowed:
        return None
    if bool in allowed:
        return None if isinstance(value, bool) else "true or false"
    wrong = isinstance(value, bool) or not isinstance(value, (int, float) if float in allowed else int)
    return ("a number" if float in allowed else "a whole number") if wrong else None


def check_integer(name: str, value: object, minimum: int = 1) -> None:
    """Check that a layer's width or number of heads is an integer. Raises TypeError or ValueError, as torch does."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}: got {type(value).__name__}, expected an integer")
    if value < minimum:
        raise ValueError(f"{name}: got {value}, expected {minimum} or more")


def check_seed(seed: object) -> None:
    """Check that NumPy and torch accept a random seed. Raises RegardError if they don't."""
    if not is_whole(seed) or not 0 <= seed < 1 << 63:  # type: ignore[operator]
        raise RegardError(f"seed: got {seed!r}, expected a whole number from 0 to 2^63 - 1")


def missing_number_error(kind: str, number: int, count: int, subject: str) -> RegardError:
    """Return the error for a requested layer or head that doesn't exist. For arguments, see `from_zero`."""
    return RegardError(f"{kind} {number} does not exist: {numbers_there(kind, count, subject)}")


def chosen_numbers(kind: str, numbers: object) -> tuple[int, ...] | None:
    """Return layer or head numbers, sorted and without duplicates. None, which means all, stays None.

    kind: "layer" or "head". numbers: whole numbers, a single one, or None.
    """
    if numbers is None:
        return None
    single = is_whole(numbers) and getattr(numbers, "ndim", 0) == 0  # an array has __index__, too
    listed: Any = [numbers] if single else numbers
    if isinstance(listed, str | bytes) or not hasattr(listed, "__len__") or not all(map(is_whole, listed)):
        raise RegardError(f"{kind}s: got {numbers!r}, expected whole numbers, counted from 0")
    chosen = tuple(sorted({n.__index__() for n in listed}))
    if not chosen:
        raise RegardError(f"{kind}s: got none, expected at least one number, or None for all")
    if chosen[0] < 0:
        raise RegardError(f"{kind} {chosen[0]} does not exist: {kind}s are counted from 0")
    return chosen


def check_saving(dtype: str | None, attention_outputs: bool) -> None:
    """Check options for saving a trace. attention_outputs: whether to save them."""
    if dtype not in (None, "bfloat16", "float16", "float32"):
        raise RegardError(f"dtype: got {dtype!r}, expected bfloat16, float16 or float32 (default: the trace's dtype)")
    if attention_outputs and dtype in ("bfloat16", "float16"):
        problem = f"attention outputs with dtype {dtype}: contributions only add up in the dtype of the trace"
        raise RegardError(f"{problem}: leave out one of them")


def check_path(caller: str, path: object) -> None:
    """Check that an argument is a file name. caller: the function that takes it, such as "save"."""
    if not isinstance(path, (str, os.PathLike)):
        raise RegardError(f"{caller}: got {type(path).__name__}, expected a file name")


def megabytes(size: int) -> str:
    """Format a number of bytes in megabytes or kilobytes: "6.7 MB", "120 kB"."""
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"
