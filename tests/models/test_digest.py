"""A hash that tells models apart."""

from typing import Any

import torch

from regard.models.digest import digest_model


def test_a_digest_is_of_weights_and_tokenizer_not_of_what_calls_left(minilm: Any) -> None:
    first = digest_model(minilm)
    minilm.tokenizer(["a", "b c"], padding=True, truncation=True, max_length=3)
    assert digest_model(minilm) == first
    bias = next(minilm.model.parameters())
    with torch.no_grad():
        bias[0, 0] += 1
        changed = digest_model(minilm)
        bias[0, 0] -= 1
    assert changed != first
