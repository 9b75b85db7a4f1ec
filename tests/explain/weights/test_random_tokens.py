"""Texts of random tokens."""

from typing import Any

import pytest

import regard
from regard.errors import RegardError
from regard.explain.weights.random_tokens import random_ids, special_around


def test_tokens_between_the_models_special_ones(minilm: Any) -> None:
    ids = random_ids(minilm, 7, 3, seed=5)
    assert (ids[:1], ids[-1:]) == special_around(minilm) == ([101], [102])
    own = ids[1:-1]
    assert own[:7] == own[7:14] == own[14:]
    assert len(set(own)) == 7
    assert all(minilm.tokenizer.convert_ids_to_tokens(number).strip("#").isalpha() for number in own)
    assert random_ids(minilm, 7, 3, seed=5) == ids != random_ids(minilm, 7, 3, seed=6)


def test_a_model_without_a_tokenizer() -> None:
    model = regard.load(
        regard.Transformer(regard.TransformerConfig(vocabulary=11, length=32, layers=1, heads=1, d_model=4))
    )
    assert special_around(model) == ([], [])
    assert sorted(random_ids(model, 11)) == list(range(11))


@pytest.mark.parametrize(
    ("length", "repeats", "said"),
    [(1, 2, "given 1 tokens, 2 times"), (300, 2, "given 602 with special ones, .* takes 512 at most")],
)
def test_what_does_not_fit_is_refused(minilm: Any, length: int, repeats: int, said: str) -> None:
    with pytest.raises(RegardError, match=said):
        random_ids(minilm, length, repeats)
