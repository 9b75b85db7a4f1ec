"""Operations are recognised for what they are, and nothing else is taken for them."""

import torch

from regard.capture import tensor_ops
from regard.capture.operations import tensors_within
from regard.capture.tensor_ops import Factors, Operation, storage_of


def seen(name: str, *args, result: torch.Tensor | None = None, followed: int = 0, **kwargs) -> Operation:
    storages = [storage_of(each) for each in tensors_within(args)]
    return Operation(name, args, kwargs, result, storage_of(args[followed]), storages)


X, Y = torch.randn(2, 3, 5), torch.randn(2, 3, 5)


def test_sums_and_statistics() -> None:
    assert seen("add", X, Y).adds
    assert not seen("add", X, 1.0).adds
    assert not seen("add", X, Y, alpha=2).adds
    assert seen("mul", X, X).measures
    assert seen("mean", X).measures
    assert not seen("mul", X, Y).measures


def test_factors_of_tokens_and_components() -> None:
    token, component = torch.rand(2, 3, 1), torch.rand(5)
    after = tensor_ops.factors(seen("mul", X, token, result=X * token), Factors())
    assert torch.equal(after.scale, token)
    after = tensor_ops.factors(seen("mul", X, component, result=X * component), after)
    assert torch.equal(after.gain, component)
    assert not after.plain
    assert tensor_ops.factors(seen("div", X, 4.0, result=X / 4), Factors()).scale == 0.25
    assert tensor_ops.factors(seen("mul", X, Y, result=X * Y), Factors()) is None  # a gate
    assert tensor_ops.factors(seen("div", Y, X, result=Y / X, followed=1), Factors()) is None
    assert tensor_ops.factors(seen("relu", X, result=X.relu()), Factors()) is None


def test_an_rms_norm_is_a_factor_of_each_token_and_a_gain() -> None:
    gain = torch.rand(5)
    after = tensor_ops.factors(seen("rms_norm", X, (5,), gain, 1e-6, result=X), Factors())
    expected = torch.nn.functional.rms_norm(X, (5,), gain, 1e-6)
    torch.testing.assert_close(X * after.scale * after.gain, expected)


def test_linear_maps() -> None:
    weight, bias = torch.randn(7, 5), torch.randn(7)
    assert tensor_ops.linear(seen("linear", X, weight, bias)) == (X, weight, bias)
    rows = X.reshape(6, 5)
    _, found, _ = tensor_ops.linear(seen("addmm", bias, rows, weight.T, followed=1))
    assert torch.equal(found, weight)
    assert tensor_ops.linear(seen("linear", X, weight, bias, followed=1)) is None  # the weight is followed
    assert tensor_ops.linear(seen("matmul", X, weight.T)) is None
    assert tensor_ops.linear(seen("addmm", torch.randn(6, 7), rows, weight.T, followed=1)) is None  # no bias


def test_layer_norm_over_the_last_axis_alone() -> None:
    weight = torch.rand(5)
    assert tensor_ops.layer_norm(seen("layer_norm", X, (5,), weight)).eps == 1e-5
    assert tensor_ops.layer_norm(seen("layer_norm", X, (3, 5))) is None


def test_versions_count_writes() -> None:
    tensor = torch.zeros(3)
    before = tensor_ops.versions(tensor, None)
    tensor.add_(1)
    assert tensor_ops.versions(tensor, None) == (before[0] + 1, 0)
