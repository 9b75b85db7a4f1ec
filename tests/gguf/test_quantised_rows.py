"""Rows, matrices and columns of quantised numbers are taken and multiplied without raising the others."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from regard.attention.kernels import threads
from regard.gguf import quantised_rows
from regard.gguf.quantised_rows import QuantisedRows
from regard.model_files.stored_weight import StoredWeight
from tests.gguf.gguf_files import gguf, quantised

EXPERTS, ROWS, WIDTH = 3, 7, 96
# what is done to the matrices w of several experts, and which of them have to be raised: few, or all
TAKEN = {
    "one": (lambda w: w[1], False),
    "the last": (lambda w: w[-1], False),
    "by a tensor": (lambda w: w[torch.tensor(2)], False),
    "some": (lambda w: w[1:], False),
    "in another order": (lambda w: w[torch.tensor([2, 0])], False),
    "each": (lambda w: torch.stack([each + 0 for each in w.unbind()]), True),
    "split": (lambda w: torch.cat([each + 0 for each in w.split(2)]), True),
    "selected": (lambda w: w.select(0, 1), False),
    "a row of one": (lambda w: w[1][3], False),
    "rows of one": (lambda w: w[1][2:5], False),
    "a part of one": (lambda w: w[1][2:5, 7:], False),
    "columns of one": (lambda w: w[1][:, 7:11], False),
    "transposed": (lambda w: w.mT[2], False),
    "transposed by its axes": (lambda w: w.transpose(-2, -1)[2], False),
    "transposed twice": (lambda w: w.mT.transpose(1, 2)[0], False),
    "turned otherwise": (lambda w: w.transpose(0, 1), True),
    "along another axis": (lambda w: w.select(1, 4), True),
    "all": (lambda w: w[...], False),
}


@pytest.fixture(params=["Q5_1", "MXFP4"])
def rows(request) -> QuantisedRows:
    """Quantised numbers, in one of the two cases with separate scales."""
    if request.param == "MXFP4":
        drawn = torch.Generator().manual_seed(5)
        blocks = torch.randint(0, 256, (EXPERTS, ROWS, WIDTH // 2), generator=drawn).byte()
        scales = torch.randint(120, 125, (EXPERTS, ROWS, WIDTH // 32), generator=drawn).byte()
        return QuantisedRows(blocks, "MXFP4", (32, 16), scale_bytes=scales)
    numbers = np.random.default_rng(5).standard_normal((EXPERTS, ROWS, WIDTH)).astype(np.float32)
    kind = gguf.GGMLQuantizationType.Q5_1
    return QuantisedRows(torch.from_numpy(quantised(numbers, "Q5_1")), "Q5_1", gguf.GGML_QUANT_SIZES[kind])


@pytest.fixture
def whole(rows: QuantisedRows) -> Tensor:
    if rows.scale_bytes is not None:
        table = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
        numbers = torch.cat([table, -table])
        pairs = torch.stack([numbers[(rows.bytes & 15).long()], numbers[(rows.bytes >> 4).long()]], -1).flatten(-2)
        return pairs * torch.exp2(rows.scale_bytes.float() - 127).repeat_interleave(32, -1)
    kind = gguf.GGMLQuantizationType.Q5_1
    return torch.from_numpy(gguf.dequantize(rows.bytes.numpy(), kind))


@pytest.fixture
def raised(monkeypatch) -> list[int]:
    """How many numbers each call raises."""
    sizes: list[int] = []
    own = quantised_rows.dequantize_into

    def counted(rows: QuantisedRows, made: Tensor) -> None:
        sizes.append(made.numel())
        own(rows, made)

    monkeypatch.setattr(quantised_rows, "dequantize_into", counted)
    return sizes


@pytest.mark.parametrize("name", TAKEN)
def test_what_is_taken_of_several_matrices(name: str, rows: QuantisedRows, whole: Tensor, raised: list[int]) -> None:
    take, every = TAKEN[name]
    given, expected = take(StoredWeight.of(rows)), take(whole)
    assert given.shape == expected.shape
    assert torch.equal(given + 0, expected)
    assert every or name == "all" or sum(raised) <= 2 * ROWS * WIDTH


@pytest.mark.parametrize("turned", [False, True])
def test_products_by_rows_and_by_columns(turned: bool, rows: QuantisedRows, whole: Tensor, monkeypatch) -> None:
    monkeypatch.setattr("regard.model_files.stored_weight.NEAR_BLOCK", 2 * WIDTH)
    given, expected = StoredWeight.of(rows)[1], whole[1]
    assert given.stride() == expected.stride()
    if turned:
        given, expected = given.t(), expected.t()
        assert given.stride() == expected.stride()
    x = torch.randn(5, expected.shape[1], generator=torch.Generator().manual_seed(7))
    torch.testing.assert_close(F.linear(x, given), F.linear(x, expected), atol=1e-5, rtol=0)
    torch.testing.assert_close(x @ given.t(), x @ expected.t(), atol=1e-5, rtol=0)
    assert torch.equal(given.clone() + 0, expected)
    assert torch.equal(F.embedding(torch.tensor([[4, 2]]), given), F.embedding(torch.tensor([[4, 2]]), expected))


def test_many_numbers_are_shared_among_threads(rows: QuantisedRows, whole: Tensor, monkeypatch) -> None:
    monkeypatch.setattr(threads, "MIN_THREADED", 1)
    monkeypatch.setattr(threads, "worker_thread_count", lambda: 4)
    assert torch.equal(rows.float(), whole)


def test_its_bytes_are_copied_with_it_and_stay_where_they_are(rows: QuantisedRows, whole: Tensor) -> None:
    copied: Any = rows.clone()
    rows.bytes.fill_(1)
    assert torch.equal(copied.float(), whole)
    assert copied.to(torch.device("cpu")) is copied
    assert copied.to(torch.device("meta")).dtype == torch.float32
