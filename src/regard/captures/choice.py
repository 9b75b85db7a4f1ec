"""What of a trace goes into a file."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from regard.errors import RegardError

DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}


@dataclass(frozen=True)
class Choice:
    """layers, heads: their numbers, rising, None for all. dtype: of tensors that are wider, None for their own."""

    layers: tuple[int, ...] | None = None
    heads: tuple[int, ...] | None = None
    dtype: torch.dtype | None = None
    blocks: bool = False

    @staticmethod
    def of(
        layers: Sequence[int] | None, heads: Sequence[int] | None, dtype: torch.dtype | str | None, blocks: bool
    ) -> "Choice":
        """What a person asked for.

        Raises:
            RegardError: no numbers or such as cannot be, another dtype, or choices that exclude each other.
        """
        chosen = Choice(_numbers("layer", layers), _numbers("head", heads), _dtype(dtype), blocks)
        if blocks and heads is not None:
            raise RegardError(
                "blocks with chosen heads: contributions add up over all heads only; leave out heads or blocks"
            )
        if blocks and chosen.dtype in (torch.bfloat16, torch.float16):
            raise RegardError(
                f"blocks with dtype {named(chosen.dtype)}: contributions add up to 1e-5 only in the dtype that was "
                "traced; leave out dtype or blocks"
            )
        return chosen


def named(dtype: torch.dtype) -> str:
    """'bfloat16' of torch.bfloat16."""
    return str(dtype).removeprefix("torch.")


def listed(name: str, numbers: Sequence[int]) -> str:
    """'layer 3', 'layers 0, 5', 'no layers'."""
    if not numbers:
        return f"no {name}s"
    return f"{name}{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def _numbers(name: str, given: Sequence[int] | None) -> tuple[int, ...] | None:
    if given is None:
        return None
    if isinstance(given, str) or any(isinstance(n, bool) or not hasattr(n, "__index__") for n in given):
        raise RegardError(f"{name}s: given {given!r}, needs whole numbers, counted from 0")
    numbers = tuple(sorted({n.__index__() for n in given}))
    if not numbers:
        raise RegardError(f"{name}s: given none, needs at least one number, or None for all")
    if numbers[0] < 0:
        raise RegardError(f"{name} {numbers[0]} does not exist: {name}s are counted from 0")
    return numbers


def _dtype(given: torch.dtype | str | None) -> torch.dtype | None:
    if given is None:
        return None
    name = given if isinstance(given, str) else named(given)
    if name not in DTYPES:
        raise RegardError(f"dtype: given {name!r}, needs {', '.join(DTYPES)}, or None for that of the trace")
    return DTYPES[name]
