"""Tensors of a file, held against the sizes that its description tells and against each other."""

from collections.abc import Mapping

import torch
from torch import Tensor

from regard.captures.pieces import Named
from regard.errors import RegardError


class Fit:
    """Tensors by name, and what each letter of their shapes stands for: its first tensor tells, the others must agree.

    sizes: letters that are known beforehand.
    """

    def __init__(self, tensors: Mapping[str, Tensor], sizes: Mapping[str, int | None]) -> None:
        self.tensors = tensors
        self.sizes = {letter: size for letter, size in sizes.items() if size is not None}

    def within(self, **sizes: int | None) -> "Fit":
        """For one layer: letters that are known stay so, those that it binds are its own."""
        return Fit(self.tensors, self.sizes | sizes)

    def take(self, named: Named, shape: str, *, boolean: bool = False) -> Tensor:
        """A tensor of a shape such as "1 H L D"; "#H" is H or 1. named: its name, or that and the order of its axes.

        Raises:
            RegardError: there is no such tensor, or it has another shape or dtype.
        """
        name, order = (named, None) if isinstance(named, str) else named
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
        return tensor

    def maybe(self, name: Named | None, shape: str) -> Tensor | None:
        """The same where a name is given."""
        return None if name is None else self.take(name, shape)
