"""How alike two vectors are."""

import torch
from jaxtyping import Float
from torch import Tensor


def cosine(a: Float[Tensor, " M"], b: Float[Tensor, " M"]) -> float:
    """Cosine of the angle between two vectors, computed in float64; NaN where one of them is zero."""
    a, b = a.double(), b.double()
    return float(torch.dot(a, b) / (a.norm() * b.norm()))
