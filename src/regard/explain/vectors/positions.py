"""What a positional encoding does to positions 0 to length - 1, as matrices of numbers."""

import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import RegardError
from regard.nn import positions

HEADS = 8  # ALiBi is computed for this many heads


def encoding(kind: str, length: int, width: int) -> Float[Tensor, "n length _"]:
    """Compute what a kind of encoding does to positions 0 to length - 1, as n matrices.

    sinusoidal: one of what is added, (length, width). rotary: the cosine and the sine of the angle that each pair of
    components is turned by, (length, width / 2). alibi: of each of 8 heads the bias, (length, length).

    Raises:
        RegardError: no such kind, or sizes that it cannot have.
    """
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
    raise RegardError(f"--kind {kind!r}: needs sinusoidal, learned, rotary or alibi")


def matrix_names(kind: str, count: int) -> list[str]:
    """Name the matrices of an encoding, in their order."""
    return {"rotary": ["cosine", "sine"], "alibi": [f"head {n}" for n in range(count)]}.get(kind, [""])


def title(kind: str, pictures: Tensor, of: str) -> str:
    """Say which encoding it is, and of how many positions and components."""
    rows, across = pictures.shape[1:]
    return f"{kind} positions{of}, {rows} × {across}"
