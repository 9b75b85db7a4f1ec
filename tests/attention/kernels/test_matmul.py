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
    matmul.speed.cache_clear()
    matmul.onednn_works.cache_clear()
    try:
        assert matmul.speed() == 0
        assert matmul.product() is matmul.blas
        x = random(0, 1, 2, 300, 8, dtype=torch.float32)
        torch.testing.assert_close(
            forward.forward(x, x, x, ScoreRule(1.0))[0],
            torch.nn.functional.scaled_dot_product_attention(x, x, x, scale=1.0),
        )
    finally:
        matmul.speed.cache_clear()
        matmul.onednn_works.cache_clear()


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        ({"cpu_name": "AMD EPYC", "avx2": True, "avx512_f": True, "avx512_bf16": True}, "AMD avx512_bf16"),
        ({"cpu_name": "AMD EPYC", "avx512_bf16": True, "avx512_vp2intersect": True}, "AMD avx512_vp2intersect"),
        ({"cpu_name": "Intel(R) Xeon(R) Processor", "avx512_f": True, "amx_tile": True}, "Intel amx_tile"),
        ({"cpu_name": "Intel(R) Core(TM) i5", "avx2": True, "avx512_f": False}, "Intel avx2"),
        ({"architecture": "aarch64"}, " aarch64"),
    ],
)
def test_kinds_of_cpu(found: dict[str, object], kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: found, raising=False)
    assert matmul.cpu_kind() == kind


def test_a_torch_that_does_not_know_its_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    assert matmul.cpu_kind() == ""


def test_the_table_decides_and_a_cpu_that_it_lacks_takes_torch_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REGARD_PRODUCT", raising=False)
    monkeypatch.setattr(matmul, "onednn_works", lambda: True)
    monkeypatch.setattr(matmul, "library_versions", lambda: ("2024.2", "3.12"))
    for kind, speed, product in (
        ("AMD avx512_vp2intersect", 2.2, "onednn"),
        ("AMD avx512_bf16", 1.1, "onednn"),
        ("Intel amx_tile", 1.0, "onednn"),
        ("Intel avx2", 0.0, "blas"),
    ):
        monkeypatch.setattr(matmul, "cpu_kind", lambda kind=kind: kind)
        matmul.speed.cache_clear()
        assert (matmul.speed(), matmul.product().__name__) == (speed, product)
    monkeypatch.setattr(matmul, "cpu_kind", lambda: "AMD avx512_vp2intersect")
    monkeypatch.setattr(matmul, "library_versions", lambda: ("2024.2", "9.9"))
    matmul.speed.cache_clear()
    assert matmul.product() is matmul.blas
    matmul.speed.cache_clear()


def test_the_libraries_versions_are_torch_s() -> None:
    built = torch.__config__.show()
    mkl, onednn = matmul.library_versions()
    assert bool(mkl) == torch.backends.mkl.is_available()
    assert f"Math Kernel Library Version {mkl}" in built or not mkl
    assert f"MKL-DNN v{onednn}." in built or not onednn


def test_the_environment_names_the_product(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_PRODUCT", "blas")
    assert matmul.product() is matmul.blas
    if matmul.onednn_works():
        monkeypatch.setenv("REGARD_PRODUCT", "onednn")
        assert matmul.product() is matmul.onednn
    monkeypatch.setenv("REGARD_PRODUCT", "fast")
    with pytest.raises(RegardError, match="REGARD_PRODUCT: got 'fast', expected blas"):
        matmul.product()
