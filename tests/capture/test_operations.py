"""What operations are, how their arguments are read, and norms with their statistics held fixed."""

import pytest
import torch
from torch.nn import functional as F

from regard.capture import operations
from regard.capture.operations import (
    ADDS,
    CASTS,
    MOVES,
    Factors,
    Operation,
    OperationMode,
    dropout_operation_drops,
    is_norm_statistic,
    linear_operation_arguments,
    norm,
    norm_with_fixed_statistics,
    operation_arguments,
    operation_writes_in_place,
    still,
    storage_of,
    tensors_within,
)

NORMS = {
    "layer_norm": (F.layer_norm, {"normalized_shape": (7,), "weight": torch.arange(1.0, 8), "bias": torch.arange(7.0)}),
    "rms_norm": (F.rms_norm, {"normalized_shape": (7,), "weight": torch.arange(1.0, 8), "eps": 1e-6}),
    "normalize": (F.normalize, {"dim": -1}),
}


@pytest.mark.parametrize("name", NORMS)
def test_a_norm_is_its_linear_part_and_its_bias(name: str) -> None:
    function, given = NORMS[name]
    x = torch.randn(2, 3, 7, requires_grad=True)
    linear, bias = norm_with_fixed_statistics(name, norm(name, (x,), given))
    torch.testing.assert_close(linear if bias is None else linear + bias, function(x, **given))
    (grad,) = torch.autograd.grad(linear[1, 2, 4], x)
    torch.testing.assert_close((grad * x).sum(), linear[1, 2, 4])  # linear: the gradient times x is all of it
    assert float(grad.abs().sum()) == pytest.approx(float(grad[1, 2].abs().sum()))


def test_a_norm_over_other_axes_is_not_linear_here() -> None:
    x = torch.randn(2, 3, 7)
    assert norm("layer_norm", (x, (3, 7)), {}) is None
    assert norm("normalize", (x,), {}) is None  # over the second axis
    assert norm("softmax", (x, -1), {}) is None


def test_a_norm_is_read_with_its_eps() -> None:
    x = torch.randn(2, 3, 7)
    assert norm("layer_norm", (x, (7,)), {})["eps"] == 1e-5
    assert norm("rms_norm", (x, (7,), None, None), {})["eps"] == torch.finfo(x.dtype).eps
    assert norm("rms_norm", (x.double(), (7,)), {})["eps"] == torch.finfo(torch.float64).eps
    assert norm("normalize", (x, 2.0, -1), {"eps": 1e-3})["eps"] == 1e-3


def test_a_linear_map_is_read_however_it_is_written() -> None:
    x, weight, stored, bias = torch.randn(3, 7), torch.randn(5, 7), torch.randn(7, 5), torch.randn(5)
    assert linear_operation_arguments("linear", (x,), {"weight": weight}) == (x, weight, None, False)
    for args, named in (((bias, x, stored), {}), ((bias,), {"mat1": x, "mat2": stored})):
        assert linear_operation_arguments("addmm", args, named) == (x, stored, bias, True)
        assert linear_operation_arguments("addmm", args, named | {"alpha": 2}) is None
    assert linear_operation_arguments("addmm", (2, bias, x, stored), {}) is None  # the old form: beta comes first
    assert linear_operation_arguments("matmul", (x, stored), {}) is None


def test_names_of_sums_and_casts_are_those_of_the_table() -> None:
    assert {"add", "__add__", "__radd__", "add_", "__iadd__"} == ADDS
    assert set(CASTS) < MOVES


def test_every_operation_comes_with_its_name() -> None:
    class Seen(OperationMode):
        def _operation(self, func, name, args, kwargs):
            names.append((name, len(args), sorted(kwargs)))
            return func(*args, **kwargs)

    names: list = []
    x, weight = torch.randn(3, 7), torch.randn(5, 7)
    with Seen():
        x + 1
        F.linear(x, weight, bias=None)
        x.softmax(-1)
    assert names == [("add", 2, []), ("linear", 2, ["bias"]), ("softmax", 2, [])]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("add_", True), ("__iadd__", True), ("__setitem__", True), ("add", False), ("__add__", False)],
)
def test_writes(name: str, expected: bool) -> None:
    assert operation_writes_in_place(name) is expected


def test_statistics_are_one_number_a_vector() -> None:
    x = torch.randn(2, 3, 7)
    assert is_norm_statistic(torch.randn(2, 3, 1), x)
    assert is_norm_statistic(torch.tensor(2.0), x)
    assert not is_norm_statistic(torch.randn(2, 3, 7), x)
    assert not is_norm_statistic(torch.randn(2, 3, 1), torch.randn(2, 3, 1))  # of width 1 it could be anything


def test_a_dropout_that_drops_nothing() -> None:
    x = torch.randn(3)
    assert not dropout_operation_drops((x,), {"p": 0.5, "training": False})
    assert not dropout_operation_drops((x, 0.0, True), {})
    assert dropout_operation_drops((x, 0.1, True), {})


def test_tensors_are_found_and_detached_in_lists() -> None:
    a, b = torch.randn(2, requires_grad=True), torch.randn(3, requires_grad=True)
    assert [each.shape[0] for each in tensors_within(([[a]], (b, 5)))] == [2, 3]
    kept = still((a, [b]), lambda each: each is a)
    assert kept[0].requires_grad
    assert not kept[1][0].requires_grad
    assert operation_arguments(("x", "y"), (1,), {"y": 2}) == {"x": 1, "y": 2}


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
    after = operations.factors(seen("mul", X, token, result=X * token), Factors())
    assert torch.equal(after.scale, token)
    after = operations.factors(seen("mul", X, component, result=X * component), after)
    assert torch.equal(after.gain, component)
    assert not after.plain
    assert operations.factors(seen("div", X, 4.0, result=X / 4), Factors()).scale == 0.25
    assert operations.factors(seen("mul", X, Y, result=X * Y), Factors()) is None  # a gate
    assert operations.factors(seen("div", Y, X, result=Y / X, followed=1), Factors()) is None
    assert operations.factors(seen("relu", X, result=X.relu()), Factors()) is None


def test_an_rms_norm_is_a_factor_of_each_token_and_a_gain() -> None:
    gain = torch.rand(5)
    after = operations.factors(seen("rms_norm", X, (5,), gain, 1e-6, result=X), Factors())
    expected = torch.nn.functional.rms_norm(X, (5,), gain, 1e-6)
    torch.testing.assert_close(X * after.scale * after.gain, expected)


def test_linear_maps() -> None:
    weight, bias = torch.randn(7, 5), torch.randn(7)
    assert operations.followed_linear_map(seen("linear", X, weight, bias)) == (X, weight, bias)
    rows = X.reshape(6, 5)
    _, found, _ = operations.followed_linear_map(seen("addmm", bias, rows, weight.T, followed=1))
    assert torch.equal(found, weight)
    assert operations.followed_linear_map(seen("linear", X, weight, bias, followed=1)) is None  # the weight is followed
    assert operations.followed_linear_map(seen("matmul", X, weight.T)) is None
    assert (
        operations.followed_linear_map(seen("addmm", torch.randn(6, 7), rows, weight.T, followed=1)) is None
    )  # no bias


def test_layer_norm_over_the_last_axis_alone() -> None:
    weight = torch.rand(5)
    assert operations.followed_layer_norm(seen("layer_norm", X, (5,), weight)).eps == 1e-5
    assert operations.followed_layer_norm(seen("layer_norm", X, (3, 5))) is None


def test_versions_count_writes() -> None:
    tensor = torch.zeros(3)
    before = operations.write_counts_of_tensors(tensor, None)
    tensor.add_(1)
    assert operations.write_counts_of_tensors(tensor, None) == (before[0] + 1, 0)
