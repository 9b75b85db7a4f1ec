"""What of the CUDA kernels can be tested without a GPU: which is chosen, and that none is believed unseen."""

import pytest
import torch

from regard.attention.kernels import blockwise, cuda
from regard.attention.kernels.cuda import Kind
from regard.attention.map_statistics import KernelResult
from regard.attention.masks import Mask
from regard.attention.scores import ScoreRule


@pytest.fixture(autouse=True)
def _forget(monkeypatch) -> None:
    monkeypatch.setattr(cuda, "_checked", {})


def kind(**changes) -> Kind:
    return Kind(**({"kernel": "flash", "device": torch.device("cpu"), "dtype": torch.float32, "width": 8,
                    "causal": True, "grouped": True} | changes))  # fmt: skip


def test_other_devices_choose_none() -> None:
    q = torch.randn(1, 2, 3, 8)
    assert cuda.choose(q, q, q, ScoreRule(1.0), 0.0) is None


def test_a_kernel_that_is_right_is_used(monkeypatch) -> None:
    monkeypatch.setattr(cuda, "forward", lambda kernel, *a: blockwise.forward(*a))
    assert cuda._why_kernel_refused(kind()) is None
    assert cuda.refused() == []


@pytest.mark.parametrize("wrong", ["output", "logsumexp", "mask"])
def test_a_kernel_that_differs_is_not(monkeypatch, wrong: str) -> None:
    def forward(kernel, query, key, value, rule):
        rule = ScoreRule(rule.scale) if wrong == "mask" else rule
        output, logsumexp = blockwise.forward(query, key, value, rule)[:2]
        return KernelResult(output + (wrong == "output"), logsumexp + (wrong == "logsumexp"), kernel)

    monkeypatch.setattr(cuda, "forward", forward)
    assert "differs from the blockwise path" in cuda._why_kernel_refused(kind())
    assert cuda.refused()[0].startswith("flash (torch.float32, width 8): it differs")


@pytest.mark.parametrize("wrong", ["nought", "all"])
def test_a_kernel_that_loses_nan_or_spreads_it_is_not(monkeypatch, wrong: str) -> None:
    def forward(kernel, *call):
        result = blockwise.forward(*call)
        output = result.output.nan_to_num() if wrong == "nought" else result.output + 0 * result.output.sum()
        return result._replace(output=output)

    monkeypatch.setattr(cuda, "forward", forward)
    assert cuda._why_kernel_refused(kind()) == "NaN in a query is not NaN in its output"


def test_a_kernel_that_raises_is_not() -> None:
    """On a machine without CUDA PyTorch's own kernels do."""
    for name in ("flash", "efficient", "cudnn"):
        assert cuda._why_kernel_refused(kind(kernel=name, dtype=torch.bfloat16)).startswith("it raises")


def test_the_check_is_made_once(monkeypatch) -> None:
    calls = []

    def forward(kernel, *a):
        calls.append(kernel)
        return blockwise.forward(*a)

    monkeypatch.setattr(cuda, "forward", forward)
    for _ in range(3):
        cuda._why_kernel_refused(kind())
    assert calls == ["flash"] * 2  # with NaN in a query, and without
    cuda._why_kernel_refused(kind(causal=False))
    assert len(calls) == 4


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("causal", [False, True])
def test_on_a_device(dtype: torch.dtype, causal: bool) -> None:
    q, k, v = (torch.randn(2, 3, 131, 64, device="cuda", dtype=dtype) for _ in range(3))
    rule = ScoreRule(0.125, mask=Mask(high=0) if causal else None)
    kernel = cuda.choose(q, k, v, rule, 0.0)
    assert kernel is not None
    output, logsumexp = cuda.forward(kernel, q, k, v, rule)[:2]
    expected, normal = blockwise.forward(q.double(), k.double(), v.double(), rule)[:2]
    torch.testing.assert_close(output.double(), expected, atol=2e-2, rtol=0)
    torch.testing.assert_close(logsumexp.double(), normal, atol=1e-3, rtol=0)
