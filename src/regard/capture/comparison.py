"""Keep the largest differences between what was captured and what it is compared with, on sampled rows."""

import functools
import math
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

ROWS = 4  # query rows of each call that are compared


@dataclass
class Comparison:
    """The largest absolute differences of weights and of outputs so far; NaN counts as infinitely far.

    reference: what the rows are compared with, in words. weights: None before any row was compared. outputs: 0 before.
    rows: how many query rows were compared. widened: whether half-precision queries and keys were compared in float32,
    in which weights are computed here.
    """

    reference: str
    weights: float | None = None
    outputs: float = 0.0
    rows: int = 0
    widened: bool = False

    def add(self, weights: float, outputs: float, rows: int) -> None:
        """Take the largest differences of some more rows into account."""
        self.weights = max(self.weights or 0.0, math.inf if math.isnan(weights) else weights)
        self.outputs = max(self.outputs, math.inf if math.isnan(outputs) else outputs)
        self.rows += rows

    def include(self, other: "Comparison") -> None:
        """Take all rows of another comparison into account."""
        if other.weights is not None:
            self.add(other.weights, other.outputs, other.rows)
        self.widened |= other.widened

    @property
    def compared_with(self) -> str:
        """What rows were compared with; empty where none were."""
        return "" if self.weights is None else self.reference + (", in float32" if self.widened else "")


@functools.cache
def sampled_rows(length: int) -> Int[Tensor, " r"]:
    """The query rows that are compared: the first, the last and some between. Shared: do not write into them."""
    return torch.linspace(0, length - 1, min(ROWS, length)).round().long().unique()


def sampled_texts(call: int, count: int) -> slice:
    """The texts of a batch of count that are compared in a pass's n-th call, from 1: two or a quarter of them.

    Successive calls take successive texts, for what differs from text to text is its padding.
    """
    some = min(count, max(2, -(-count // 4)))
    return slice(start := min((call - 1) * some % count, count - some), start + some)
