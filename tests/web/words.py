"""Weights of words, from those of tokens: what the page shows as whole words."""

from typing import Any

import torch
from torch import Tensor

from regard.text.words import words

LONG_WORDS = "Transformers tokenise unbelievably well."


def words_of(trace: Any) -> list[list[int]]:
    """The tokens of each word, in order; a token of no word by itself."""
    found = [list(word) for word in words(trace.tokens)]
    assert any(len(word) > 1 for word in found)
    return found


def of_words(weights: Tensor, words: list[list[int]]) -> Tensor:
    """Weights (..., L, L) of tokens as weights of words: the mean over queries, the sum over keys."""
    rows = torch.stack([weights[..., word, :].mean(-2) for word in words], -2)
    return torch.stack([rows[..., word].sum(-1) for word in words], -1)


def longest(words: list[list[int]]) -> int:
    """The number of the word with the most tokens."""
    return max(range(len(words)), key=lambda n: len(words[n]))
