"""Compute what a positional encoding does to positions, as matrices, and what is to be read off these.

Of sinusoidal and learned positions that is what is added, (1, positions, components); of rotary ones the cosine and the
sine of the angle that each pair of components is turned by, (2, positions, pairs); of ALiBi what each of 8 heads adds
to a score, (8, positions, positions).
"""

import math
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from regard.display.asked import Called
from regard.errors import RegardError
from regard.memory import require_memory
from regard.nn import positions

if TYPE_CHECKING:
    from regard.models.model import Model

HEADS = 8  # ALiBi is computed for this many heads
LENGTH, WIDTH = 100, 64  # positions and components where no number is given
FAR = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)  # distances between positions that are looked at
FULL_TURN = 2 * math.pi
HELD = 40  # bytes of a number, as a tensor and as what is shown of it


def encoding(kind: str, length: int | None = None, width: int | None = None) -> Float[Tensor, "n length _"]:
    """Compute the matrices of a formula for positions 0 to length - 1.

    Raises:
        RegardError: no such kind, sizes that it cannot have, or more than fits in memory.
    """
    length, width = LENGTH if length is None else length, WIDTH if width is None else width
    need = HELD * length * (HEADS * length if kind == "alibi" else width)
    require_memory(need, torch.device("cpu"), f"a picture of {length} positions", "a smaller --length or --width")
    try:
        if kind == "sinusoidal":
            return positions.sinusoidal(length, width)[None]
        if kind == "rotary":
            angles = positions.rotary_angles(torch.arange(length), width)
            return torch.stack([angles.cos(), angles.sin()])
        if kind == "alibi":
            at = torch.arange(length)
            return positions.alibi_bias(positions.alibi_slopes(HEADS), at, at)
    except ValueError as error:
        raise RegardError(f"positions: {error}") from None
    raise RegardError(f"kind: given {kind!r}, needs sinusoidal, learned, rotary or alibi")


def learned_position_table(
    model: "Model", length: int | None = None, width: int | None = None, *, called: Called = str
) -> Float[Tensor, "1 length width"]:
    """Read a model's own table, as the model adds it to a text of so many tokens.

    Args:
        length: how many positions, None for 100 or as many as the model has.
        width: components that it has to have, None for any number.

    Raises:
        RegardError: the model reads pairs, adds no positions, or has fewer of them, or of components, than asked for.
    """
    if model.pairs:
        raise RegardError(f"{called('kind')} learned: {model.name} is an encoder-decoder: it has two tables")
    asked = min(LENGTH, model.limit or LENGTH) if length is None else length
    if model.limit is not None and asked > model.limit:
        raise RegardError(f"{called('length')}: given {asked}, {model.name} has {model.limit} positions")
    filler = getattr(model.tokenizer, "pad_token_id", None) or 0  # padding has no position of its own in some models
    table = model.trace(ids=[filler + 1] * asked).positional
    if table is None:
        raise RegardError(
            f"{called('kind')} learned: {model.name} adds no positions to its input, rotary ones work in attention"
        )
    if width is not None and width > table.shape[1]:
        raise RegardError(f"{called('width')}: given {width}, {model.name} has {table.shape[1]} components")
    return table[None, :, :width]


def alike(table: Float[Tensor, "rows columns"]) -> list[tuple[int, float]]:
    """By how far two positions are apart, the mean cosine of their vectors, over all such pairs."""
    unit = torch.nn.functional.normalize(table.double(), dim=1)
    return [(far, float((unit[far:] * unit[:-far]).sum(1).mean())) for far in FAR if far < len(unit)]


def positions_per_rotary_turn(matrices: Float[Tensor, "2 rows pairs"]) -> list[float]:
    """Of rotary positions, in how many positions each pair of components turns once; from its angle at position 1."""
    angles = torch.atan2(matrices[1, 1].double(), matrices[0, 1].double())
    return [FULL_TURN / float(angle) if float(angle) > 0 else math.inf for angle in angles]


def slopes(matrices: Float[Tensor, "heads rows rows"]) -> list[float]:
    """Of ALiBi, what each head takes off a score for every position of distance."""
    return [-float(each[1, 0]) for each in matrices]
