"""State in a few sentences what a positional encoding does, by its own numbers: what repeats, what is alike."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from regard.explain.findings.wording import number

FAR = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)  # distances between positions that are looked at
FULL_TURN = 2 * math.pi


@dataclass(frozen=True)
class Alike:
    """The mean cosine of the vectors of two positions so far apart, over all such pairs."""

    distance: int
    cosine: float


def positions_findings(kind: str, pictures: Float[Tensor, "n rows columns"]) -> list[str]:
    """Compose the sentences. pictures: what `regard.explain.vectors.positions.encoding` gives, or a model's table."""
    about: dict[str, Callable[[Tensor], list[str]]] = {
        "sinusoidal": _sinusoidal, "learned": _learned, "rotary": _rotary, "alibi": _alibi
    }  # fmt: skip
    return [sentence for sentence in about[kind](pictures.double()) if sentence]


def alike(table: Float[Tensor, "rows columns"]) -> list[Alike]:
    """How alike the vectors of positions are, by how far they are apart."""
    unit = torch.nn.functional.normalize(table.double(), dim=1)
    rows = len(unit)
    return [Alike(far, float((unit[far:] * unit[:-far]).sum(1).mean())) for far in FAR if far < rows]


def turns(pictures: Float[Tensor, "2 rows pairs"]) -> list[float]:
    """Of rotary positions, in how many positions each pair of components turns once; from its angle at position 1."""
    angles = torch.atan2(pictures[1, 1].double(), pictures[0, 1].double())
    return [FULL_TURN / float(angle) if float(angle) > 0 else math.inf for angle in angles]


def slopes(pictures: Float[Tensor, "heads rows rows"]) -> list[float]:
    """Of ALiBi, what each head takes off a score for every position of distance."""
    return [-float(picture[1, 0]) for picture in pictures]


def _nearness(table: Float[Tensor, "rows columns"]) -> str:
    found = alike(table)
    if not found:
        return ""
    first, last = found[0], found[-1]
    if len(found) == 1:
        return f"Neighbouring positions have vectors of cosine {first.cosine:z.2f}."
    falls = all(a.cosine >= b.cosine for a, b in pairwise(found))
    asked = ", ".join(str(each.distance) for each in found)
    how = f"ever less alike at distances {asked}" if falls else "no steady fall with distance"
    return (
        f"Neighbouring positions have vectors of cosine {first.cosine:z.2f} on average, those {last.distance} apart "
        f"{last.cosine:z.2f}: {how}."
    )


def _sinusoidal(pictures: Float[Tensor, "1 rows columns"]) -> list[str]:
    table = pictures[0]
    rows, width = table.shape
    lengths = [FULL_TURN * 10000 ** (2 * (column // 2) / width) for column in range(width)]
    lasting = sum(length > rows for length in lengths)
    least, largest = float(table.min()), float(table.max())
    return [
        f"To each position's token a vector of {width} numbers is added, sines and cosines in turn; here they lie from "
        f"{least:z.2f} to {largest:z.2f}, however long the text is.",
        f"The first pair repeats every {lengths[0]:.1f} positions (2π), the last every {lengths[-1]:,.0f}."
        if width > 2
        else f"Its pair repeats every {lengths[0]:.1f} positions (2π).",
        f"{lasting} of {width} columns do not repeat within these {rows} positions.",
        _nearness(table),
    ]


def _learned(pictures: Float[Tensor, "1 rows columns"]) -> list[str]:
    table = pictures[0]
    lengths = table.norm(dim=1)
    rows, width = table.shape
    most = int(lengths.argmax())
    usual = float(lengths.median())
    longest = f"; the longest is that of position {most} ({number(float(lengths[most]))})" if rows > 2 else ""
    return [
        f"To each position's token a vector of {width} learned numbers is added, of median length {number(usual)}"
        f"{longest}.",
        _nearness(table),
        _lone(table),
    ]


def _lone(table: Float[Tensor, "rows columns"]) -> str:
    """The position that is least like the others."""
    unit = torch.nn.functional.normalize(table, dim=1)
    rows = len(unit)
    if rows < 4:
        return ""
    others = ((unit @ unit.T).sum(1) - 1) / (rows - 1)
    least = int(others.argmin())
    return (
        f"Least like the others is position {least}: its mean cosine to them is {float(others[least]):z.2f}, that of "
        f"all positions {float(others.mean()):z.2f}."
    )


def _rotary(pictures: Float[Tensor, "2 rows pairs"]) -> list[str]:
    rows, pairs = pictures.shape[1:]
    says = [
        f"Nothing is added: each of {pairs} pairs of a query's and a key's components is turned by an angle that grows "
        "with the position.",
        "Where two tokens stand matters to a score only by how far apart they are: both turn, and the difference of "
        "their angles is left.",
    ]
    if rows < 2:
        return says
    every = turns(pictures)
    slow = sum(turn > rows for turn in every)
    return [
        *says,
        f"The first pair turns once in {every[0]:.1f} positions, the last in {every[-1]:,.0f}.",
        f"{slow} of {pairs} pairs do not turn once within these {rows} positions.",
    ]


def _alibi(pictures: Float[Tensor, "heads rows rows"]) -> list[str]:
    heads, rows = pictures.shape[:2]
    says = ["Nothing is added to the tokens: each head takes something off a score for every position of distance."]
    if rows < 2:
        return says
    each = slopes(pictures)
    steep, flat = max(range(heads), key=lambda n: each[n]), min(range(heads), key=lambda n: each[n])
    far = rows - 1
    return [
        *says,
        f"Head {steep} takes off most, {each[steep]:.4g} a position; head {flat} least, {each[flat]:.4g}.",
        f"Of tokens {far} apart that multiplies exp(score) by {math.exp(-each[steep] * far):.1e} in head {steep}, by "
        f"{math.exp(-each[flat] * far):.2f} in head {flat}: the one looks near, the other far.",
    ]
