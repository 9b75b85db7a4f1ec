"""The textbook layers: both conventions of weights, and the way to the weights."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

import regard
from regard.nn.multihead import MultiHeadAttention
from regard.nn.single_head import CrossAttention, SelfAttention
from tests.attention.cases import random

SQUARES = [torch.eye(6)] * 3


@pytest.mark.parametrize(
    "make",
    [
        lambda: SelfAttention.from_weights(*SQUARES, convention="W @ x"),
        lambda: CrossAttention.from_weights(*SQUARES, convention="W @ x"),
        lambda: MultiHeadAttention.from_weights(*SQUARES, torch.eye(6), heads=3, convention="W @ x"),
    ],
)
def test_copied_weights_leave_random_numbers_alone(make: Callable[[], nn.Module]) -> None:
    """What is drawn next is what would have been drawn without the layer: an article's next matrices."""
    before = torch.get_rng_state()
    made = make()
    assert torch.equal(torch.get_rng_state(), before)
    assert all(each.device.type == "cpu" and each.requires_grad for each in made.parameters())


def test_the_two_conventions_are_one_layer() -> None:
    query, key, value = random(0, 5, 3), random(1, 5, 3), random(2, 5, 7)
    x = random(3, 2, 11, 5)
    one = SelfAttention.from_weights(query, key, value, convention="x @ W")
    other = SelfAttention.from_weights(query.mT, key.mT, value.mT, convention="W @ x")
    assert torch.equal(one(x), other(x))
    right = (x @ query @ (x @ key).mT / 3**0.5).softmax(-1) @ (x @ value)
    torch.testing.assert_close(one(x), right)


def test_weights_by_keyword_and_by_record() -> None:
    layer, x = SelfAttention(5, 3, 7), torch.randn(2, 11, 5)
    with regard.record() as calls:
        context, seen = layer(x, causal=True, return_attention=True)
    assert torch.equal(layer(x, causal=True), context)
    assert context.shape == (2, 11, 7)
    assert seen.shape == (2, 1, 11, 11)
    assert torch.equal(calls["", 0].weights.dense(), seen.dense())
    torch.testing.assert_close(seen.dense()[:, 0] @ layer.value(x), context)
    one, alone = layer(x[1], causal=True, return_attention=True)
    torch.testing.assert_close(one, context[1])
    assert alone.shape == (11, 11)


def test_cross_attention_is_from_one_sequence_to_another() -> None:
    layer = CrossAttention(16, 12, 24, 28, bias=True).double()
    x, context = random(0, 2, 6, 16), random(1, 2, 8, 12)
    output, seen = layer(x, context, return_attention=True)
    assert output.shape == (2, 6, 28)
    assert seen.shape == (2, 1, 6, 8)
    right = (layer.query(x) @ layer.key(context).mT / 24**0.5).softmax(-1) @ layer.value(context)
    torch.testing.assert_close(output, right)
    keys = torch.tensor([[True] * 8, [True] * 5 + [False] * 3])
    masked = layer(x, context, mask=regard.masks.padding(keys))
    torch.testing.assert_close(masked[1], layer(x[1], context[1, :5]))
    torch.testing.assert_close(masked[0], output[0])


def test_what_does_not_fit_is_refused() -> None:
    square, wide = torch.zeros(4, 3), torch.zeros(5, 3)
    with pytest.raises(ValueError, match="convention: got 'xW', expected 'x @ W' or 'W @ x'"):
        SelfAttention.from_weights(square, square, square, convention="xW")
    with pytest.raises(ValueError, match="key: got weights for inputs of width 5, expected 4"):
        SelfAttention.from_weights(square, wide, square, convention="x @ W")
    with pytest.raises(ValueError, match="key: got weights for width 2, expected 3"):
        SelfAttention.from_weights(square, square[:, :2], square, convention="x @ W")
    with pytest.raises(ValueError, match="value: got weights for inputs of width 4, expected 5"):
        CrossAttention.from_weights(square, wide, square, convention="x @ W")
    with pytest.raises(
        ValueError, match=r"value: got torch.float64 of shape \(4, 3\), expected a matrix of torch.float32"
    ):
        SelfAttention.from_weights(square, square, square.double(), convention="x @ W")
    with pytest.raises(ValueError, match="d_k: got 0, expected 1 or more"):
        SelfAttention(4, 0, 3)
    layer = CrossAttention(4, 6, 3, 2)
    with pytest.raises(ValueError, match=r"x: got shape \(2, 5, 3\), expected \(batch, positions, 4\)"):
        layer(torch.zeros(2, 5, 3), torch.zeros(2, 7, 6))
    with pytest.raises(ValueError, match=r"context: got shape \(2, 7, 4\), expected \(batch, positions, 6\)"):
        layer(torch.zeros(2, 5, 4), torch.zeros(2, 7, 4))


def test_values_are_as_wide_as_keys_by_default() -> None:
    x, context = torch.randn(5, 4), torch.randn(7, 6)
    assert regard.SelfAttention(4, 3)(x).shape == (5, 3)
    assert regard.CrossAttention(4, 6, 3)(x, context).shape == (5, 3)
