"""Gradients of the output, in float64 against differences, for every kernel and option that takes part in them."""

from typing import Any

import pytest
import torch
from torch.autograd import gradcheck

import regard
from regard.attention import reference, scores
from tests.attention.cases import random

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal": {"causal": True},
    "window": {"window": (2, 1), "offset": 1},
    "dense": {"mask": torch.tensor([[True, False, True, True, False, True, True]])},
    "function": {"mask": regard.masks.function(lambda i, j: (i + j) % 2 == 0)},
    "nothing seen": {"mask": torch.tensor([True, False, True, False, True])[:, None]},
    "softcap": {"softcap": 1.5},
    "scale": {"scale": -0.7, "causal": True},
    "dropout": {"dropout": 0.4},
    "all": {"softcap": 1.5, "causal": True, "dropout": 0.2, "mask": regard.masks.padding(torch.arange(7)[None] != 3)},
}


def inputs(heads: int, groups: int, width: int, value_width: int) -> tuple[torch.Tensor, ...]:
    shapes = ((2, heads, 5, width), (2, groups, 7, width), (2, groups, 7, value_width))
    return tuple(random(n, *shape).requires_grad_() for n, shape in enumerate(shapes))


@pytest.mark.parametrize("tiny", [False, True], ids=["one tile", "tiny tiles"])
@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("layout", [(2, 2, 3, 3), (4, 2, 3, 2), (3, 1, 2, 2)], ids=["plain", "E≠D", "grouped"])
def test_query_key_value(layout: tuple[int, ...], option: str, tiny: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if tiny:
        for name, size in (("TILE_ROWS", 2), ("TILE_COLS", 3), ("TILE_SCORES", {"cpu": 12, "other": 12})):
            monkeypatch.setattr(scores, name, size)

    def output(*tensors: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(3)
        return regard.attend(*tensors, **OPTIONS[option]).output

    assert gradcheck(output, inputs(*layout), fast_mode=True)


@pytest.mark.parametrize("shape", [(2, 4, 5, 7), (1, 4, 1, 7), (5, 1), (7,), (1, 1, 1, 1), ()])
@pytest.mark.parametrize("option", ["plain", "causal", "softcap", "dropout", "nothing seen"])
def test_bias_and_sinks(option: str, shape: tuple[int, ...]) -> None:
    tensors = (*inputs(4, 2, 3, 3), random(5, *shape).requires_grad_(), random(6, 4).requires_grad_())

    def output(*tensors: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(3)
        return regard.attend(*tensors[:3], bias=tensors[3], sinks=tensors[4], **OPTIONS[option]).output

    assert gradcheck(output, tensors, fast_mode=True)


@pytest.mark.parametrize("option", ["plain", "causal", "softcap", "nothing seen"])
@pytest.mark.parametrize("with_sinks", [False, True])
def test_dense_weights(option: str, with_sinks: bool) -> None:
    query, key, value = inputs(4, 2, 3, 3)
    bias, sinks = random(5, 4, 1, 7).requires_grad_(), random(6, 4).requires_grad_()

    def weights(query: torch.Tensor, key: torch.Tensor, bias: torch.Tensor, sinks: torch.Tensor) -> torch.Tensor:
        options = OPTIONS[option] | ({"sinks": sinks} if with_sinks else {})
        seen = regard.attend(query, key, value, bias=bias, **options).weights
        dense = seen.dense(differentiable=True)
        torch.testing.assert_close(dense.detach(), seen.dense(), rtol=0, atol=1e-14)
        return dense if with_sinks else dense + 0 * sinks.sum()

    assert gradcheck(weights, (query, key, bias, sinks), fast_mode=True)


@pytest.mark.parametrize("options", [{}, {"causal": True}, {"softcap": 30.0, "sinks": torch.zeros(2)}])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("width", [16, 5])
def test_as_torch_does_it_where_rows_are_many(dtype: torch.dtype, options: dict[str, Any], width: int) -> None:
    shapes = (1, 2, 1031, 16), (1, 2, 523, 16), (1, 2, 523, width)
    tensors = [random(n, *shape, dtype=dtype).requires_grad_() for n, shape in enumerate(shapes)]
    exact = [t.detach().double().requires_grad_() for t in tensors]
    upstream = random(9, 1, 2, 1031, width, dtype=dtype)
    regard.attend(*tensors, **options).output.backward(upstream)
    reference.attention(*exact, **options).output.backward(upstream.double())
    for given, right in zip(tensors, exact, strict=True):
        tolerance = 5e-2 if dtype == torch.bfloat16 else 2e-5
        torch.testing.assert_close(given.grad.double(), right.grad, rtol=tolerance, atol=tolerance)


def test_only_the_output_carries_gradients() -> None:
    query, key, value = inputs(2, 2, 3, 3)
    seen = regard.attend(query, key, value)
    assert seen.output.requires_grad
    assert not seen.logsumexp.requires_grad
    assert not seen.weights[0, 0].requires_grad
    assert not seen.weights.entropy().requires_grad
    with torch.inference_mode():
        assert not regard.attend(query, key, value).output.requires_grad


@pytest.mark.parametrize(
    "options", [{"softcap": 3.0}, {"sinks": torch.zeros(2)}, {"causal": True, "window": (2, 0)}, {}]
)
def test_a_second_derivative_is_refused(options: dict[str, Any]) -> None:
    """By us or by PyTorch: never is a part of it missing in silence."""
    query, key, value = (random(n, 1, 2, 5, 7).float().requires_grad_() for n in range(3))
    output = regard.attend(query, key, value, **options).output
    with pytest.raises(RuntimeError, match=r"cannot be differentiated again|backward is not implemented"):
        (first,) = torch.autograd.grad(output.square().sum(), query, create_graph=True)
        (first.square().sum() + query.square().sum()).backward()


def test_what_can_be_differentiated_twice() -> None:
    query, key, value = (random(n, 1, 2, 5, 7).requires_grad_() for n in range(3))
    weights = regard.attend(query, key, value, softcap=3.0).weights

    def output(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        return regard.attend(query, key, value, softcap=3.0).weights.dense(differentiable=True) @ value

    torch.testing.assert_close(output(query, key, value), weights.dense() @ value)
    assert torch.autograd.gradgradcheck(output, (query, key, value))
