"""State in a few sentences what a positional encoding does, by its own numbers: what repeats, what is alike."""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from regard.explain.wording import number
from regard.questions.positions.encodings import FULL_TURN, alike, positions_per_rotary_turn, slopes

if TYPE_CHECKING:
    from regard.questions.positions.answer import Positions


def of_positions(found: "Positions") -> list[str]:
    """Compose the sentences."""
    about: dict[str, Callable[[Tensor], list[str]]] = {
        "sinusoidal": _sinusoidal, "learned": _learned, "rotary": _rotary, "alibi": _alibi_positions_sentences
    }  # fmt: skip
    return [sentence for sentence in about[found.kind](found.matrices.double()) if sentence]


def _nearness(table: Float[Tensor, "rows columns"]) -> str:
    found = alike(table)
    if not found:
        return ""
    near, far, last = number(found[0][1], ".2f"), number(found[-1][1], ".2f"), found[-1][0]
    if len(found) == 1:
        return f"Neighbouring positions have vectors of cosine {near}."
    falls = all(a >= b for (_, a), (_, b) in pairwise(found))
    asked = ", ".join(str(distance) for distance, _ in found)
    how = f"ever less alike at distances {asked}" if falls else "no steady fall with distance"
    return f"Neighbouring positions have vectors of cosine {near} on average, those {last} apart {far}: {how}."


def _sinusoidal(matrices: Float[Tensor, "1 rows columns"]) -> list[str]:
    table = matrices[0]
    rows, width = table.shape
    lengths = [FULL_TURN * 10000 ** (2 * (column // 2) / width) for column in range(width)]
    lasting = sum(length > rows for length in lengths)
    least, largest = float(table.min()), float(table.max())
    return [
        f"To each position's token a vector of {width} numbers is added, sines and cosines in turn; here they lie from "
        f"{number(least, '.2f')} to {number(largest, '.2f')}, however long the text is.",
        f"The first pair repeats every {lengths[0]:.1f} positions (2π), the last every {lengths[-1]:,.0f}."
        if width > 2
        else f"Its pair repeats every {lengths[0]:.1f} positions (2π).",
        f"{lasting} of {width} columns do not repeat within these {rows} positions.",
        _nearness(table),
    ]


def _learned(matrices: Float[Tensor, "1 rows columns"]) -> list[str]:
    table = matrices[0]
    lengths = table.norm(dim=1)
    rows, width = table.shape
    most = int(lengths.argmax())
    usual = float(lengths.median())
    longest = f"; the longest is that of position {most} ({number(float(lengths[most]))})" if rows > 2 else ""
    return [
        f"To each position's token a vector of {width} learned numbers is added, of median length {number(usual)}"
        f"{longest}.",
        _nearness(table),
        _position_least_alike(table),
    ]


def _position_least_alike(table: Float[Tensor, "rows columns"]) -> str:
    """The position that is least like the others."""
    unit = torch.nn.functional.normalize(table, dim=1)
    rows = len(unit)
    if rows < 4:
        return ""
    others = ((unit @ unit.T).sum(1) - 1) / (rows - 1)
    least = int(others.argmin())
    return (
        f"Least like the others is position {least}: its mean cosine to them is "
        f"{number(float(others[least]), '.2f')}, that of all positions {number(float(others.mean()), '.2f')}."
    )


def _rotary(matrices: Float[Tensor, "2 rows pairs"]) -> list[str]:
    rows, pairs = matrices.shape[1:]
    says = [
        f"Nothing is added: each of {pairs} pairs of a query's and a key's components is turned by an angle that grows "
        "with the position.",
        "Where two tokens stand matters to a score only by how far apart they are: both turn, and the difference of "
        "their angles is left.",
    ]
    if rows < 2:
        return says
    every = positions_per_rotary_turn(matrices)
    slow = sum(turn > rows for turn in every)
    return [
        *says,
        f"The first pair turns once in {every[0]:.1f} positions, the last in {every[-1]:,.0f}.",
        f"{slow} of {pairs} pairs do not turn once within these {rows} positions.",
    ]


def _alibi_positions_sentences(matrices: Float[Tensor, "heads rows rows"]) -> list[str]:
    heads, rows = matrices.shape[:2]
    says = ["Nothing is added to the tokens: each head takes something off a score for every position of distance."]
    if rows < 2:
        return says
    each = slopes(matrices)
    steep, flat = max(range(heads), key=lambda n: each[n]), min(range(heads), key=lambda n: each[n])
    far = rows - 1
    return [
        *says,
        f"Head {steep} takes off most, {each[steep]:.4g} a position; head {flat} least, {each[flat]:.4g}.",
        f"Of tokens {far} apart that multiplies exp(score) by {math.exp(-each[steep] * far):.1e} in head {steep}, by "
        f"{number(math.exp(-each[flat] * far))} in head {flat}: the one looks near, the other far.",
    ]
