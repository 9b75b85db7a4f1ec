"""PyTorch's private names still do what watching needs of them."""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.capture.watching import torch_internals as internals


def test_backward_passes_are_told_from_others() -> None:
    found = []
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda grad: found.append(internals.in_backward_pass()))
    x.sum().backward()
    assert [*found, internals.in_backward_pass()] == [True, False]


def test_tensors_outlive_transforms() -> None:
    kept: list[Tensor] = []

    def keep(a: Tensor, b: Tensor) -> Tensor:
        with internals.outside_transforms():
            kept.extend(tensor.clone() for tensor in internals.without_transforms([a, b]))
        return a.sum() + b.sum()

    a, b = torch.randn(3, 4, 5), torch.randn(5, 2)
    torch.vmap(torch.func.grad(keep), in_dims=(0, None))(a, b)
    torch.vmap(keep, in_dims=(2, 0))(a, b)
    assert torch.equal(kept[0], a)
    assert torch.equal(kept[1], b[None])
    assert torch.equal(kept[2], a.movedim(2, 0))
    assert torch.equal(kept[3], b)
    with internals.outside_transforms():
        assert torch.equal(internals.without_transforms([a])[0], a)


def test_multi_head_attention_is_copied_whole() -> None:
    copy: Callable[..., Any] = internals.multi_head_attention_in_steps(len)
    assert (
        inspect.signature(copy).parameters.keys() == inspect.signature(F.multi_head_attention_forward).parameters.keys()
    )
    names = list(inspect.signature(copy).parameters)
    assert (names[4], names[13], names[15]) == ("num_heads", "training", "need_weights")  # as watching reads them
    assert copy.__code__ is F.multi_head_attention_forward.__code__
    assert copy.__globals__["has_torch_function"](()) is False
    assert copy.__globals__["scaled_dot_product_attention"] is len
    assert "scaled_dot_product_attention" in copy.__code__.co_names  # it is called by this name
