"""Weights of words, from those of tokens: what the page shows as whole words."""

from typing import Any

import torch
from torch import Tensor

LONG_WORDS = "Transformers tokenise unbelievably well."


def words_of(trace: Any) -> list[list[int]]:
    """The tokens of each word, in order; a token of no word by itself."""
    words: list[list[int]] = []
    for number, token in enumerate(trace.tokens):
        if words and token.word is not None and token.word == trace.tokens[words[-1][0]].word:
            words[-1].append(number)
        else:
            words.append([number])
    assert any(len(word) > 1 for word in words)
    return words


def of_words(weights: Tensor, words: list[list[int]]) -> Tensor:
    """Weights (..., L, L) of tokens as weights of words: the mean over queries, the sum over keys."""
    rows = torch.stack([weights[..., word, :].mean(-2) for word in words], -2)
    return torch.stack([rows[..., word].sum(-1) for word in words], -1)


def longest(words: list[list[int]]) -> int:
    """The number of the word with the most tokens."""
    return max(range(len(words)), key=lambda n: len(words[n]))
