"""One row of attention as a person reads it."""

import pytest
import torch

from regard import RegardError
from regard.explain.weights.attended import Share, attended, check_head, check_heads, check_layer
from regard.text.tokens import Token


def test_special_tokens_and_sinks_stand_apart() -> None:
    texts = ["[CLS]", "a", "man", "fishing", "[SEP]"]
    tokens = [Token(n, text, 0, 1, None, n in (0, 4)) for n, text in enumerate(texts)]
    weights = torch.tensor([0.25, 0.125, 0.0, 0.5, 0.125])
    found = attended(weights, tokens, 2, None, 5, sinks=[1])
    assert (found.layer, found.head, found.special) == (2, None, 0.375)
    assert found.sinks == [Share(1, "a", 0.125)]
    assert found.top == [Share(3, "fishing", 0.5)]  # what gets nothing is not named
    assert found.apart == 0.5
    assert found.weights == weights.tolist()
    assert len(attended(weights, tokens, 2, 1, 1).top) == 1


def test_layers_and_heads_count_from_the_end_too(bank) -> None:
    trace = bank[0]
    assert check_heads(trace, -1, -12) == (5, 0)
    assert check_heads(trace, None, None) == (None, None)
    with pytest.raises(RegardError, match="layer 6 is out of range: all-MiniLM-L6-v2 has layers 0 to 5"):
        check_layer(trace, 6)
    with pytest.raises(RegardError, match="head 12 is out of range"):
        check_head(trace, 12)
