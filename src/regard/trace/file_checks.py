"""Tensors of a file, held against the sizes that its description tells and against each other."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from regard.errors import RegardError
from regard.tensor_files import Opened, typed


class Fit:
    """Tensors by name, and what each letter of their shapes stands for: its first tensor tells, the others must agree.

    sizes: letters that are known beforehand. opened: the file that they are in, whose tensors are checked when they are
    first read; None for tensors without numbers.
    """

    def __init__(
        self, tensors: Mapping[str, Tensor], sizes: Mapping[str, int | None], opened: Opened | None = None
    ) -> None:
        self.tensors, self.opened = tensors, opened
        self.sizes = {letter: size for letter, size in sizes.items() if size is not None}

    def within(self, **sizes: int | None) -> "Fit":
        """For one layer: letters that are known stay so, those that it binds are its own."""
        return Fit(self.tensors, self.sizes | sizes, self.opened)

    def take(self, named: Any, shape: str, *, boolean: bool = False, below: bool = False) -> Tensor:
        """A tensor of a shape such as "1 H L D"; "#H" is H or 1. named: its name, or that and the order of its axes.

        below: whether -inf is one of its numbers.

        Raises:
            RegardError: there is no such tensor, or it has another shape or dtype.
        """
        name, order = _named(named)
        if name not in self.tensors:
            raise RegardError(f"tensor {name!r} is missing")
        tensor, letters = self.tensors[name], shape.split()
        if order is not None:
            if sorted(order) != list(range(tensor.ndim)):
                raise RegardError(f"tensor {name!r} has {tensor.ndim} axes, the order of {len(order)} is described")
            tensor = tensor.permute([order.index(n) for n in range(len(order))])
        if tensor.is_floating_point() == boolean or (boolean and tensor.dtype != torch.bool):
            kind = "boolean" if boolean else "floating-point"
            raise RegardError(f"tensor {name!r} is of {tensor.dtype}, needs {kind} numbers")
        fits = tensor.ndim == len(letters)
        for size, letter in zip(tensor.shape, letters, strict=False):
            one = letter.startswith(("#", "1"))
            fits &= (one and size == 1) or (letter != "1" and size == self.sizes.get(letter.strip("#"), size))
        if not fits:
            known = [f"{x} = {self.sizes[x]}" for x in (each.strip("#") for each in letters) if x in self.sizes]
            needs = f"({', '.join(letters)})" + (f" with {', '.join(known)}" if known else "")
            raise RegardError(f"tensor {name!r} has shape {tuple(tensor.shape)}, needs {needs}")
        for size, letter in zip(tensor.shape, letters, strict=True):
            if letter.isalpha():
                self.sizes[letter] = size
        return tensor if self.opened is None else self.opened.guarded(name, tensor, below=below)


def _named(told: Any) -> tuple[str, list[int] | None]:
    """A tensor's name, and the order of its axes where that is told."""
    if isinstance(typed("a tensor's name", told, str, list), str):
        return told, None
    if len(told) != 2:
        raise RegardError(f"a tensor's name is of {len(told)} parts, needs it and the order of its axes")
    order = [typed("the order of a tensor's axes", n, int) for n in typed("a tensor's axes", told[1], list)[:17]]
    return typed("a tensor's name", told[0], str), order
