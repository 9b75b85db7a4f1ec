"""Norms with their statistics held fixed, and which factors are statistics."""

import pytest
import torch
from torch.nn import functional as F

from regard.capture.linear_ops import arguments, is_dropped, is_statistic, normed, still, tensors_within

NORMS = {
    "layer_norm": (F.layer_norm, {"normalized_shape": (7,), "weight": torch.arange(1.0, 8), "bias": torch.arange(7.0)}),
    "rms_norm": (F.rms_norm, {"normalized_shape": (7,), "weight": torch.arange(1.0, 8), "eps": 1e-6}),
    "normalize": (F.normalize, {"dim": -1}),
}


@pytest.mark.parametrize("name", NORMS)
def test_a_norm_is_its_linear_part_and_its_bias(name: str) -> None:
    norm, given = NORMS[name]
    x = torch.randn(2, 3, 7, requires_grad=True)
    linear, bias = normed(name, {"input": x} | given)
    torch.testing.assert_close(linear if bias is None else linear + bias, norm(x, **given))
    (grad,) = torch.autograd.grad(linear[1, 2, 4], x)
    torch.testing.assert_close((grad * x).sum(), linear[1, 2, 4])  # linear: the gradient times x is all of it
    assert float(grad.abs().sum()) == pytest.approx(float(grad[1, 2].abs().sum()))


def test_a_norm_over_other_axes_is_not_linear_here() -> None:
    x = torch.randn(2, 3, 7)
    assert normed("layer_norm", {"input": x, "normalized_shape": (3, 7)}) is None
    assert normed("normalize", {"input": x}) is None  # over the second axis


def test_statistics_are_one_number_a_vector() -> None:
    x = torch.randn(2, 3, 7)
    assert is_statistic(torch.randn(2, 3, 1), x)
    assert is_statistic(torch.tensor(2.0), x)
    assert not is_statistic(torch.randn(2, 3, 7), x)
    assert not is_statistic(torch.randn(2, 3, 1), torch.randn(2, 3, 1))  # of width 1 it could be anything


def test_a_dropout_that_drops_nothing() -> None:
    x = torch.randn(3)
    assert not is_dropped((x,), {"p": 0.5, "training": False})
    assert not is_dropped((x, 0.0, True), {})
    assert is_dropped((x, 0.1, True), {})


def test_tensors_are_found_and_detached_in_lists() -> None:
    a, b = torch.randn(2, requires_grad=True), torch.randn(3, requires_grad=True)
    assert [each.shape[0] for each in tensors_within(({"x": [a]}, (b, 5)))] == [2, 3]
    kept = still((a, [b]), lambda each: each is a)
    assert kept[0].requires_grad
    assert not kept[1][0].requires_grad
    assert arguments(("x", "y"), (1,), {"y": 2}) == {"x": 1, "y": 2}
