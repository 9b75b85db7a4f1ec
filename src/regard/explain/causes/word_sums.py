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
from regard.text.tokens import Token
from regard.text.word_pieces import words

Join = Literal["sum", "mean", "absmax"]
JOINS = ("sum", "mean", "absmax")


def word_tokens(tokens: Sequence[Token]) -> list[tuple[int, ...]]:
    """Return the numbers of the tokens of each word, in order, as `regard.text.word_pieces.words` has them."""
    return [tuple(word) for word in words(tokens)]


def word_text(text: str, tokens: Sequence[Token], numbers: Sequence[int]) -> str:
    """Return a word as the text has it; a special token by its own name."""
    first, last = tokens[numbers[0]], tokens[numbers[-1]]
    return text[first.start : last.end].strip() or "".join(tokens[n].text for n in numbers).strip()


def joined(scores: Float[Tensor, " L"], groups: Sequence[Sequence[int]], join: Join = "sum") -> Float[Tensor, " words"]:
    """Join numbers of tokens to one for each word.

    Raises:
        RegardError: there is no such way to join them.
    """
    if join not in JOINS:
        raise RegardError(f"join: given {join!r}, needs one of {', '.join(map(repr, JOINS))}")
    return torch.stack([_joined(scores[list(group)], join) for group in groups])


def _joined(own: Float[Tensor, " n"], join: Join) -> Float[Tensor, ""]:
    if join == "sum":
        return own.sum()
    return own.mean() if join == "mean" else own[own.abs().argmax()]
