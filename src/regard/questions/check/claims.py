"""Hold one claim of exactness with what was measured of it, and say how far is too far."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import torch

from regard.errors import InexactError, RegardError

# How far numbers may be apart that are the same but for rounding: weights as they are, vectors as a part of their
# largest number where that is above 1. What rounds more in the model's own code may round more here: so many times as
# much, up to the most, beyond which nothing is called rounding.
WEIGHTS, VECTORS, SUMS = 1e-5, 1e-4, 1e-5
TIMES, MOST = 10.0, 1e-2
# Half precision rounds by chance: so many of its units near 1, or times what the model's own code rounds.
ULPS, THRICE = 4, 3.0
HOLDS, FAILS, UNMEASURED = "holds", "FAILS", "not measured"


class Apart(NamedTuple):
    """How far two things are apart, and where most; NaN counts as infinitely far."""

    difference: float
    where: str = ""

    @staticmethod
    def of(difference: float, where: str = "") -> "Apart":
        """Take NaN as infinitely far."""
        return Apart(math.inf if math.isnan(difference) else difference, where)


@dataclass(frozen=True)
class Claim:
    """One claim. area: what kind of number it is of. said: what is claimed. of: which text, part or device.

    difference: the largest that was measured, None where none was: reason then says why. bound: what it may be. own:
    how far the model's own code is from itself in float64, where that was measured. where: the largest difference is.
    total: where the difference is a count of tokens that differ, of how many.
    """

    area: str
    said: str
    of: str = ""
    difference: float | None = None
    bound: float | None = None
    own: float | None = None
    where: str = ""
    reason: str = ""
    total: int | None = None

    @property
    def outcome(self) -> str:
        """Whether it holds, fails, or was not measured."""
        if self.bound is None:
            return UNMEASURED
        return HOLDS if self.difference is not None and self.difference <= self.bound else FAILS


def claim(
    area: str, said: str, of: str, apart: Apart, least: float, own: float | None = None, *, half: float = 0.0
) -> Claim:
    """Make a claim of a difference.

    least: the bound for numbers that round little. own: what the own code rounds. half: `half_units` of the dtype.
    """
    return Claim(area, said, of, apart.difference, bound(least, own, half), own, apart.where)


def bound(least: float, own: float | None, half: float = 0.0) -> float:
    """How far is too far, where the model's own code is so far from float64: see `TIMES`, `MOST` and `ULPS`."""
    if half:
        return max(least, half, THRICE * (own or 0.0))
    return max(least, min(MOST, TIMES * (own or 0.0)))


def half_units(dtype: torch.dtype) -> float:
    """What numbers near 1 may be off in half precision; 0 in any other."""
    return ULPS * torch.finfo(dtype).eps if dtype.itemsize < torch.float32.itemsize else 0.0


def measured(area: str, said: str, of: str, measure: Callable[[], Iterable[Claim]]) -> list[Claim]:
    """Measure claims; where regard refuses one, it and those behind it are not measured; where one breaks it fails.

    area, said, of: of the claim that stands for those that cannot be measured.
    """
    found: list[Claim] = []
    try:
        found.extend(measure())
    except InexactError as error:
        found.append(Claim(area, said, of, math.inf, 0.0, reason=str(error)))
    except RegardError as error:
        found.append(Claim(area, said, of, reason=str(error)))
    except Exception as error:  # whatever it is, it is no answer
        found.append(Claim(area, said, of, math.inf, 0.0, reason=f"{type(error).__name__}: {error}".splitlines()[0]))
    return found
