"""The tensors that a trace file describes: looked up by their names, and their shapes checked against each other."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from regard.errors import RegardError
from regard.json_files import expect_type


def stored(tensors: Mapping[str, Tensor], described: Any) -> tuple[str, Tensor]:
    """Look up (name, tensor) by a name or by [name, order of its axes], the axes in the tensor's own order.

    Raises:
        RegardError: there is no such tensor, or the order is not one of its axes.
    """
    order = None
    if not isinstance(expect_type("a tensor's name", described, str, list), str):
        if len(described) != 2:
            raise RegardError(f"a tensor's name is of {len(described)} parts, needs it and the order of its axes")
        axes = expect_type("a tensor's axes", described[1], list)[:17]
        order = [expect_type("the order of a tensor's axes", n, int) for n in axes]
        described = expect_type("a tensor's name", described[0], str)
    if described not in tensors:
        raise RegardError(f"tensor {described!r} is missing")
    tensor = tensors[described]
    if order is None:
        return described, tensor
    if sorted(order) != list(range(tensor.ndim)):
        raise RegardError(f"tensor {described!r} has {tensor.ndim} axes, the order of {len(order)} is described")
    return described, tensor.permute([order.index(n) for n in range(len(order))])


class Shapes:
    """The sizes that letters of shapes stand for: the first tensor with a letter sets it, the others must agree.

    tensors: by name. used: the names that were looked up, added to. sizes: letters that are known beforehand.
    """

    def __init__(self, tensors: Mapping[str, Tensor], used: set[str], sizes: Mapping[str, int] | None = None) -> None:
        self.tensors, self.used, self.sizes = tensors, used, dict(sizes or {})

    def within(self, **sizes: int) -> "Shapes":
        """The same for a part, such as one layer: letters that are known stay so, those it sets are its own."""
        return Shapes(self.tensors, self.used, self.sizes | sizes)

    def check(self, described: Any, shape: str, *, boolean: bool = False) -> Tensor:
        """Check a tensor against a shape such as "1 H L D", where "#H" is H or 1; described: see `stored`.

        Raises:
            RegardError: there is no such tensor, or it has another shape or dtype.
        """
        name, tensor = stored(self.tensors, described)
        self.used.add(name)
        letters = shape.split()
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
