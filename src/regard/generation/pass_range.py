"""Which rows and keys of a whole text's attention matrix one pass of a generation has.

A KV cache hands a pass all keys so far, the newest ones alone (a sliding one), or a buffer with room for more (a static
one). Rows and keys of the pass count from 0; those of the whole text stand where the pass's range says.
"""

from dataclasses import dataclass, replace

from regard.attention.ablation import Ablation, HeadAblation
from regard.attention.patches import CallPatch


@dataclass(frozen=True)
class PassRange:
    """Rows [past, past + count) of the whole matrix, and keys [first, first + seen) of it.

    past: how many tokens came before the pass. count: how many it adds. new: the first new one among its keys. first:
    the position of its first key. seen: how many of its keys exist (a static cache hands out empty ones as well).
    """

    past: int
    count: int
    new: int
    first: int
    seen: int

    @staticmethod
    def of(size: int, past: int, count: int) -> "PassRange":
        """Of size keys, after past tokens and with count new ones."""
        if size > past + count:  # a buffer that is not full yet
            return PassRange(past, count, past, 0, past + count)
        return PassRange(past, count, size - count, past + count - size, size)  # the newest keys, older ones dropped


def within_pass(ablation: Ablation, place: PassRange) -> Ablation | None:
    """An ablation of a whole matrix, numbered as in a pass's rows and keys of it; None where these have none of it."""
    if isinstance(ablation, HeadAblation):
        return ablation
    if isinstance(ablation, CallPatch):
        of_keys = ablation.what == "values"
        return ablation.at(*(place.first, place.seen) if of_keys else (place.past, place.count))
    queries = [q - place.past for q in ablation.queries or () if place.past <= q < place.past + place.count]
    keys = [k - place.first for k in ablation.keys or () if place.first <= k < place.first + place.seen]
    return replace(ablation, queries=queries, keys=keys) if queries and keys else None
