"""Attention maps that you can also index by words: `weights["bank", "river"]`.

The maps of a trace are `LabelledMap` objects. They know the tokens of queries and keys and convert words to rows and
columns. An index with a word is (queries, keys) or (heads, queries, keys). Attention from a word is the mean over its
tokens. Attention to a word is the sum over its tokens:

    weights["bank", "river"]        (H,)    from "bank" to "river"
    weights["bank"]                 (H, S)  from "bank" to each key
    weights[:, "river"]             (H, L)  from each query to "river"
    weights[2, "bank", "river"]     ()      in head 2 (several heads: weights[[2, 5], "bank", "river"])
    weights["bank", 4]              (H,)    from "bank" to token 4

If a word occurs more than once, pass an occurrence, `trace.word("bank")[1]` or `("bank", 1)`. An index without words
works as in numpy.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.attention.given_map import GivenMap
from regard.errors import RegardError
from regard.text.tokens import Token
from regard.text.words import Word, is_word, only_word

NEEDS = 'an index with a word needs (queries, keys) or (heads, queries, keys), such as weights["bank", "river"]'


@dataclass(frozen=True, eq=False)
class Labels:
    """The text and tokens that label rows or columns, one token for each."""

    text: str
    tokens: Sequence[Token]


class LabelledMap(AttentionMap):
    """The weights (H, L, S) of one call, with labels for its queries and keys, or None if unknown."""

    query_labels: Labels | None = None
    key_labels: Labels | None = None

    @classmethod
    def label(cls, weights: AttentionMap, queries: Labels | None, keys: Labels | None) -> "LabelledMap":
        """Label a map without copying it. Both maps share computed values. keys: None to keep the map's key labels."""
        result = object.__new__(LabelledGivenMap if isinstance(weights, GivenMap) else cls)
        vars(result).update(vars(weights))
        result.query_labels = queries
        result.key_labels = result.key_labels if keys is None else keys
        return result

    def __getitem__(self, index: Any) -> Float[Tensor, "..."]:
        """Compute the weights of a region, numpy-style or by words.

        Raises:
            RegardError: a word isn't in the text, occurs several times (the message lists the occurrences) or belongs
                to another text, or the tokens of the queries or keys aren't known.
            IndexError: the index is wrong, as in numpy.
        """
        parts = index if isinstance(index, tuple) else (index,)
        if not any(map(is_word, parts)):
            return super().__getitem__(index)
        if len(parts) > 3 or (len(parts) == 3 and is_word(parts[0])) or any(p is None or p is ... for p in parts):
            raise RegardError(f"attention: got {parts!r}: {NEEDS}")
        heads, query, key = [slice(None)] * (len(parts) < 3) + list(parts) + [slice(None)] * (len(parts) < 2)
        rows = _of_word(self.query_labels, query, self.shape[1], "queries") if is_word(query) else None
        columns = _of_word(self.key_labels, key, self.shape[2], "keys") if is_word(key) else None
        region = super().__getitem__((heads, _run_of_labelled_rows(rows, query), _run_of_labelled_rows(columns, key)))
        if columns is not None:
            region = region[..., [n - columns[0] for n in columns]].sum(-1)
        if rows is not None:
            last = columns is not None or isinstance(key, (int, np.integer))  # removes the key axis
            region = region if last else region.mT
            region = region[..., [n - rows[0] for n in rows]].mean(-1)
        return region

    def to(self, target: torch.device | torch.dtype | str) -> "LabelledMap":
        """Return the same map on another device or in another dtype. See `AttentionMap.to`."""
        return LabelledMap.label(super().to(target), self.query_labels, self.key_labels)


class LabelledGivenMap(LabelledMap, GivenMap):
    """A `GivenMap` (H, L, S) with labels for its queries and keys."""


def _of_word(labels: Labels | None, word: Any, size: int, axis: str) -> list[int]:
    """Return the sorted row or column numbers of a word's tokens. axis: "queries" or "keys", for error messages."""
    if labels is None or len(labels.tokens) != size:
        raise RegardError(f"attention: the {axis} of this map have no words, such as {word!r}: use numbers")
    return sorted(only_word(labels.text, labels.tokens, word).tokens)


def _run_of_labelled_rows(places: list[int] | None, index: Any) -> Any:
    """Return the smallest slice that contains a word's rows or columns, or `index` if there is no word."""
    return index if places is None else slice(places[0], places[-1] + 1)


def vector(rows: Float[Tensor, "L M"], word: Word) -> Float[Tensor, " M"]:
    """Average the vectors of a word's tokens."""
    return rows[list(word.tokens)].mean(0)


def attention_from(weights: AttentionMap | Float[Tensor, "H L S"], word: Word | Sequence[int]) -> Float[Tensor, "H S"]:
    """Average the attention from a word's tokens (or from token numbers) to each key, one row per head."""
    return weights[:, list(word.tokens if isinstance(word, Word) else word)].mean(1)


def special_share(weights: Float[Tensor, "*H S"], tokens: Sequence[Token]) -> Float[Tensor, "*H"]:
    """Sum the weights on special tokens in each row."""
    special = torch.tensor([token.special for token in tokens], device=weights.device)
    return weights[..., special].sum(-1)
