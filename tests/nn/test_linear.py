"""The linear layer that trains by oneDNN: nn.Linear's results and gradients, and nn.Linear itself elsewhere."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from regard.attention.kernels import matmul
from regard.nn import linear
from regard.nn.linear import Linear

pytestmark = pytest.mark.skipif(not matmul.onednn_works(), reason="this build of torch has no product by oneDNN")


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """oneDNN from the smallest product on, whichever is faster here; counts its products."""
    calls: list[int] = []
    right = linear._onednn

    def counted(*args: Any) -> torch.Tensor:
        calls.append(1)
        return right(*args)

    monkeypatch.setattr(linear, "LEAST", 1)
    monkeypatch.setattr(matmul, "linear", lambda: matmul.onednn)
    monkeypatch.setattr(linear, "_onednn", counted)
    return calls


def both(layer: Linear, x: torch.Tensor, upstream: torch.Tensor) -> None:
    """Output and gradients, against F.linear in float64."""
    exact = [t.detach().double().requires_grad_() for t in (x, layer.weight)]
    bias = None if layer.bias is None else layer.bias.detach().double().requires_grad_()
    F.linear(*exact, bias).backward(upstream.double())
    given = x.detach().requires_grad_()
    layer.zero_grad()
    output = layer(given)
    output.backward(upstream)
    torch.testing.assert_close(output.double(), F.linear(*exact, bias), rtol=1e-5, atol=1e-5)
    for got, right in ((given, exact[0]), (layer.weight, exact[1]), (layer.bias, bias)):
        if got is not None:
            torch.testing.assert_close(got.grad.double(), right.grad, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("shape", [(7,), (5, 7), (3, 5, 7), (2, 3, 5, 7)])
@pytest.mark.parametrize("bias", [False, True])
def test_output_and_gradients(shape: tuple[int, ...], bias: bool, taken: list[int]) -> None:
    torch.manual_seed(0)
    both(Linear(7, 11, bias), torch.randn(shape), torch.randn(*shape[:-1], 11))
    assert len(taken) == 3


def test_tensors_that_do_not_lie_in_order(taken: list[int]) -> None:
    torch.manual_seed(0)
    layer = Linear(7, 11)
    both(layer, torch.randn(7, 5, 3).transpose(0, 2), torch.randn(11, 5, 3).transpose(0, 2))
    both(layer, torch.randn(3, 5, 14)[..., ::2], torch.ones(()).expand(3, 5, 11))
    layer.weight = nn.Parameter(torch.randn(7, 11).t())
    both(layer, torch.randn(3, 5, 7), torch.randn(3, 5, 11))
    assert len(taken) == 9


def test_only_what_is_asked_for(taken: list[int]) -> None:
    layer = Linear(7, 11)
    layer(torch.randn(3, 7)).sum().backward()
    assert len(taken) == 2  # no gradient of the input


def test_twice_the_same_to_the_last_bit() -> None:
    torch.manual_seed(0)
    layer, x = Linear(130, 514), torch.randn(12, 64, 130)
    found = []
    for _ in range(3):
        layer.zero_grad()
        (layer(x) ** 2).mean().backward()
        found.append(layer.weight.grad.clone())
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


def test_second_derivatives(taken: list[int]) -> None:
    torch.manual_seed(0)
    layer, x = Linear(7, 11), torch.randn(3, 7, requires_grad=True)
    plain = nn.Linear(7, 11)
    plain.load_state_dict(layer.state_dict())
    found = []
    for each in (layer, plain):
        (slope,) = torch.autograd.grad((each(x) ** 3).sum(), x, create_graph=True)
        found.append(torch.autograd.grad((slope**2).sum(), each.weight)[0])
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-3)
    assert len(taken) == 1 + 2  # the first derivative, which is differentiated again, is made of plain operations


@pytest.mark.parametrize("case", ["no_grad", "float64", "autocast", "small", "func"])
def test_nn_linear_itself_elsewhere(case: str, taken: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    layer, x = Linear(7, 11), torch.randn(3, 7)
    if case == "no_grad":
        with torch.no_grad():
            layer(x)
    elif case == "float64":
        layer.double()(x.double())
    elif case == "autocast":
        with torch.autocast("cpu", torch.bfloat16):
            assert layer(x).dtype == torch.bfloat16
    elif case == "small":
        monkeypatch.setattr(linear, "LEAST", 3 * 7 * 11 + 1)
        layer(x)
    else:
        weights = dict(layer.named_parameters())
        slopes = torch.func.grad(lambda w: torch.func.functional_call(layer, w, (x,)).sum())(weights)
        torch.testing.assert_close(slopes["bias"], torch.full((11,), 3.0))
    assert taken == []
