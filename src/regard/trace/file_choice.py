"""What of a trace goes into a file."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from regard.errors import RegardError
from regard.trace.file_options import check_choice


@dataclass(frozen=True)
class Choice:
    """layers, heads: their numbers, rising, None for all. dtype: of tensors that are wider, None for their own."""

    layers: tuple[int, ...] | None = None
    heads: tuple[int, ...] | None = None
    dtype: torch.dtype | None = None
    attention_outputs: bool = False

    @staticmethod
    def of(
        layers: Sequence[int] | None,
        heads: Sequence[int] | None,
        dtype: torch.dtype | str | None,
        attention_outputs: bool,
    ) -> "Choice":
        """What a person asked for.

        Raises:
            RegardError: no numbers or such as cannot be, another dtype, or choices that exclude each other.
        """
        numbers = _numbers("layer", layers), _numbers("head", heads)
        name = named(dtype) if isinstance(dtype, torch.dtype) else dtype
        check_choice(name, attention_outputs, heads)
        return Choice(*numbers, None if name is None else getattr(torch, name), attention_outputs)


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
