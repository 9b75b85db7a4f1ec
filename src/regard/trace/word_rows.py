"""What belongs to a word of several tokens, as one row: its vector, the attention that it gives, and what it gets."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.text.tokens import Token
from regard.text.words import Word


def vector(rows: Float[Tensor, "L M"], word: Word) -> Float[Tensor, " M"]:
    """Average a word's vector over its tokens."""
    return rows[list(word.tokens)].mean(0)


def gives(weights: AttentionMap, word: Word) -> Float[Tensor, "H S"]:
    """Average the attention that a word gives to each key over its tokens, one row a head."""
    return weights[:, list(word.tokens)].mean(1)


def gets(weights: AttentionMap, word: Word) -> Float[Tensor, "H L"]:
    """Sum the attention that a word gets from each query over its tokens, one row a head."""
    return weights[:, :, list(word.tokens)].sum(2)


def special_share(weights: Float[Tensor, "*H S"], tokens: Sequence[Token]) -> Float[Tensor, "*H"]:
    """Sum the part of each row of weights that goes to special tokens."""
    special = torch.tensor([token.special for token in tokens], device=weights.device)
    return weights[..., special].sum(-1)
