"""Say how near vectors that were computed in bf16 are to float32's, measured on some windows of every shard.

A cosine near 1 says little where all vectors point one way, as those of many decoders do: beside it stands the mean
cosine of tokens that follow each other.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

PARTS = 10**9  # cosines are counted in billionths below 1, as whole numbers: sums do not depend on their order
PREFIX = "bf16_"  # of the counts in a shard
# Of what tokens that follow each other differ by: more than this on average, or at most, is said to be coarse.
COARSE, COARSE_AT_MOST = 0.01, 0.1


@dataclass(frozen=True)
class Closeness:
    """Cosines of states with float32's, in billionths below 1.

    states: how many were compared, one for each token and kept layer. off: their sum. most: the largest. pairs: how
    many of them have one before them. following: the sum between these, in float32.
    """

    states: int = 0
    off: int = 0
    most: int = 0
    pairs: int = 0
    following: int = 0

    def __add__(self, other: "Closeness") -> "Closeness":
        return Closeness(
            self.states + other.states,
            self.off + other.off,
            max(self.most, other.most),
            self.pairs + other.pairs,
            self.following + other.following,
        )

    def counts(self) -> dict[str, int]:
        """Return what a shard's counts say of it."""
        return {PREFIX + name: each for name, each in asdict(self).items()}

    def numbers(self) -> dict[str, int | float]:
        """Return what a manifest says of it: cosines, of so many states; nothing where none was compared."""
        if not self.states:
            return {}
        found: dict[str, int | float] = {
            "states": self.states,
            "mean_cosine": 1 - self.off / self.states / PARTS,
            "least_cosine": 1 - self.most / PARTS,
        }
        return found | ({"following_cosine": 1 - self.following / self.pairs / PARTS} if self.pairs else {})


def closeness_of_counts(counts: Mapping[str, int]) -> tuple[Closeness, dict[str, int]]:
    """Take a shard's counts apart: how near its vectors are to float32's, and all others."""
    own = {name.removeprefix(PREFIX): each for name, each in counts.items() if name.startswith(PREFIX)}
    rest = {name: each for name, each in counts.items() if not name.startswith(PREFIX)}
    return Closeness(**own), rest


def closeness_sentence(numbers: Mapping[str, int | float]) -> str:
    """Say how near vectors in bf16 are to float32's. numbers: as a manifest has them; empty where it has none."""
    if not numbers:
        return "Vectors were computed in bf16. The embedding index has no comparison with float32."
    mean, most = (1 - numbers[name] for name in ("mean_cosine", "least_cosine"))
    line = (
        f"bf16 vectors differ from float32 by {mean:.1e} on average and {most:.1e} at most (1 − cosine of "
        f"{numbers['states']:,} sampled states)."
    )
    apart = 1 - numbers["following_cosine"] if "following_cosine" in numbers else None
    if apart is not None:
        line += f" Adjacent tokens differ by {apart:.2g} on average."
    if mean > COARSE * (apart or 1) or most > COARSE_AT_MOST * (apart or 1):
        line += " The difference is large, so the nearest vectors can be others in float32."
    return line
