"""Say how near vectors that were computed in bf16 are to float32's, measured on some windows of every shard.

A cosine near 1 says little where all vectors point one way, as those of many decoders do: beside it stands the mean
cosine of tokens that follow each other.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from regard.errors import RegardError

PARTS = 10**9  # cosines are counted in billionths below 1, as whole numbers: sums do not depend on their order
PREFIX = "bf16_"  # of the counts in a shard's counts.json


@dataclass(frozen=True)
class Closeness:
    """Cosines of states with float32's, in billionths below 1.

    states: how many were compared. off: their sum. most: the largest. following: the sum of those between each state
    and the one before it, the first with the last.
    """

    states: int = 0
    off: int = 0
    most: int = 0
    following: int = 0

    def __add__(self, other: "Closeness") -> "Closeness":
        return Closeness(
            self.states + other.states,
            self.off + other.off,
            max(self.most, other.most),
            self.following + other.following,
        )

    def counts(self) -> dict[str, int]:
        """Return what a shard's counts say of it."""
        return {PREFIX + name: each for name, each in asdict(self).items()}

    def numbers(self) -> dict[str, int | float]:
        """Return what a manifest says of it: cosines, of so many states; nothing where none was compared."""
        if not self.states:
            return {}
        return {
            "states": self.states,
            "mean_cosine": 1 - self.off / self.states / PARTS,
            "least_cosine": 1 - self.most / PARTS,
            "following_cosine": 1 - self.following / self.states / PARTS,
        }


def closeness_of_counts(counts: Mapping[str, int]) -> tuple[Closeness, dict[str, int]]:
    """Take a shard's counts apart: how near its vectors are to float32's, and all others."""
    own = {name.removeprefix(PREFIX): each for name, each in counts.items() if name.startswith(PREFIX)}
    rest = {name: each for name, each in counts.items() if not name.startswith(PREFIX)}
    try:
        return Closeness(**own), rest
    except TypeError as error:
        raise RegardError(f"a shard's counts name {', '.join(own)} of bf16, which is not known") from error


def closeness_sentence(numbers: Mapping[str, int | float]) -> str:
    """Say how near vectors are to float32's. numbers: as a manifest has them."""
    states, mean, least, following = (
        numbers[name] for name in ("states", "mean_cosine", "least_cosine", "following_cosine")
    )
    return (
        f"vectors computed in bf16: their cosine with float32's is {mean:.6f} on average and {least:.6f} at least, "
        f"over {states:,.0f} states of these texts; that of tokens that follow each other is {following:.2f} on average"
    )


def check_closeness(numbers: Mapping[str, object]) -> None:
    """Check what a manifest says of it.

    Raises:
        TypeError: it is not what `Closeness.numbers` writes.
    """
    known = Closeness(1).numbers()
    if numbers and (set(numbers) != set(known) or any(type(each) not in (int, float) for each in numbers.values())):
        raise TypeError("closeness")
