"""One row times a weight as it is stored is its product in float64, within the rounding of float32."""

import numpy as np
import pytest
import torch
from torch import Tensor

from regard.attention.kernels import threads
from regard.attention.kernels.cpu.vector import multiply_bfloat16
from regard.gguf import quantised_blocks
from regard.gguf.quantised_rows import QuantisedRows
from regard.model_files import stored_weight
from regard.model_files.stored_weight import StoredWeight, multiply_bfloat16_row
from tests.gguf.gguf_files import gguf, quantised

ROWS, BLOCKS = 37, 5
KINDS = ("bfloat16", *quantised_blocks.KERNELS)


def drawn(kind: str) -> Tensor | QuantisedRows:
    """A weight of normal numbers; its rows are no multiple of what is computed at once."""
    draws = np.random.default_rng(3)
    if kind == "bfloat16":
        return torch.from_numpy(draws.standard_normal((ROWS, 211)).astype(np.float32)).to(torch.bfloat16)
    sizes = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
    numbers = draws.standard_normal((ROWS, BLOCKS * sizes[0])).astype(np.float32)
    return QuantisedRows(torch.from_numpy(quantised(numbers, kind)), kind, sizes)


def product(x: Tensor, weight: Tensor | QuantisedRows) -> Tensor | None:
    return multiply_bfloat16_row(weight, x) if isinstance(weight, Tensor) else weight.multiply_row(x)


@pytest.fixture(autouse=True)
def small_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_weight, "MIN_NUMBA", 0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("workers", [1, 3])
def test_the_product_in_float64(kind: str, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if workers > 1:
        monkeypatch.setattr(threads, "MIN_THREADED", 0)
        monkeypatch.setattr(threads, "worker_thread_count", lambda: workers)
    weight = drawn(kind)
    x = torch.randn(weight.shape[1], generator=torch.Generator().manual_seed(5))
    found = product(x, weight)
    assert found is not None
    whole = weight.float().double()
    size = whole.abs() @ x.double().abs()
    assert float(((found.double() - whole @ x.double()).abs() / size).max()) < 1e-6
    through = torch.nn.functional.linear(x[None, None], StoredWeight.of(weight))
    assert torch.equal(through, found[None, None])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_what_is_not_finite_comes_through(kind: str, value: float) -> None:
    weight = drawn(kind)
    x = torch.ones(weight.shape[1])
    x[7] = value
    found, expected = product(x, weight), weight.float() @ x
    assert found is not None
    assert not torch.isfinite(expected).any()
    assert torch.equal(found.isnan(), expected.isnan())
    assert torch.equal(found.isinf(), expected.isinf())


def test_what_has_no_pass_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, half = drawn("Q4_K"), drawn("bfloat16")
    assert isinstance(half, Tensor)
    x = torch.ones(rows.shape[1])
    assert product(torch.ones(ROWS), rows.t()) is None  # its rows are columns
    assert product(x[:-1], rows) is None
    assert product(torch.ones(211), half.to(torch.float16)) is None
    assert product(torch.ones(ROWS), half.t()) is None
    assert product(torch.ones(106), half[:, ::2]) is None
    monkeypatch.setattr(stored_weight, "MIN_NUMBA", half.numel() + 1)
    assert product(torch.ones(211), half) is None  # Numba is not loaded for it


def test_every_number_of_bfloat16_is_the_one_that_torch_raises() -> None:
    bits = torch.arange(1 << 16, dtype=torch.int32).to(torch.uint16)[:, None]
    made = np.zeros(len(bits), np.float32)
    multiply_bfloat16(bits.numpy(), np.ones(1, np.float32), made)
    assert np.array_equal(made, bits.view(torch.bfloat16)[:, 0].float().numpy(), equal_nan=True)
    assert np.isinf(made).sum() == 2
