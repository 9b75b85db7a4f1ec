"""The two products, and which of them is chosen."""

import pytest
import torch

from regard.attention.kernels import matmul
from regard.attention.kernels.cpu import forward
from regard.attention.scores import ScoreRule
from regard.errors import RegardError
from tests.attention.cases import random


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 7), (512, 1024, 64), (17, 1, 33)])
def test_both_products(shape: tuple[int, int, int]) -> None:
    rows, cols, width = shape
    x, y = random(0, rows, width, dtype=torch.float32), random(1, cols, width, dtype=torch.float32)
    right = (x.double() @ y.double().mT).float()
    torch.testing.assert_close(matmul.blas(x, y), right, rtol=1e-5, atol=1e-5)
    if matmul.onednn_works():
        torch.testing.assert_close(matmul.onednn(x, y), right, rtol=1e-5, atol=1e-5)
        backwards = matmul.onednn(x, y.mT.contiguous().mT)  # as value tiles come
        torch.testing.assert_close(backwards, right, rtol=1e-5, atol=1e-5)


def test_without_onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    assert matmul._measure() == 0
    monkeypatch.setattr(matmul, "speed", lambda: 0.0)
    assert matmul.product() is matmul.linear() is matmul.blas
    x = random(0, 1, 2, 300, 8, dtype=torch.float32)
    torch.testing.assert_close(
        forward.forward(x, x, x, ScoreRule(1.0))[0],
        torch.nn.functional.scaled_dot_product_attention(x, x, x, scale=1.0),
    )


def test_the_usual_product_is_given_up_for_one_that_is_clearly_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    for speed, tiles, maps in ((2.0, "onednn", "onednn"), (1.1, "onednn", "blas"), (0.9, "onednn", "blas"),
                               (0.5, "blas", "blas")):  # fmt: skip
        monkeypatch.setattr(matmul, "speed", lambda speed=speed: speed)
        assert (matmul.product().__name__, matmul.linear().__name__) == (tiles, maps)


def test_the_environment_names_the_product(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_PRODUCT", "blas")
    assert matmul.product() is matmul.linear() is matmul.blas
    assert matmul.linear_is_torch_s()
    if matmul.onednn_works():
        monkeypatch.setenv("REGARD_PRODUCT", "onednn")
        assert matmul.product() is matmul.linear() is matmul.onednn
    monkeypatch.setenv("REGARD_PRODUCT", "fast")
    with pytest.raises(RegardError, match="REGARD_PRODUCT: given 'fast'"):
        matmul.linear()
