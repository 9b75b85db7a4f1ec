"""Join the numbers of tokens to numbers of words, which is what a reader knows.

How the numbers of a word's tokens become one:

    "sum"        their sum, so that all words sum to what all tokens sum to
    "mean"       their mean
    "absmax"     the one of the largest absolute value, with its sign
"""

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import RegardError

Join = Literal["sum", "mean", "absmax"]
JOINS = ("sum", "mean", "absmax")


def cause_scores_by_word(
    scores: Float[Tensor, " L"], groups: Sequence[Sequence[int]], join: Join = "sum"
) -> Float[Tensor, " words"]:
    """Join numbers of tokens to one for each word.

    Raises:
        RegardError: there is no such way to join them.
    """
    if join not in JOINS:
        raise RegardError(f"join: given {join!r}, needs one of {', '.join(map(repr, JOINS))}")
    return torch.stack([_cause_score_of_word(scores[list(group)], join) for group in groups])


def _cause_score_of_word(own: Float[Tensor, " n"], join: Join) -> Float[Tensor, ""]:
    if join == "sum":
        return own.sum()
    return own.mean() if join == "mean" else own[own.abs().argmax()]
