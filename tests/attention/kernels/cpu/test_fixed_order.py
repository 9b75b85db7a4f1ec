"""The product that rounds in one way: the right numbers, and the same bits whatever part is asked for."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.attention.kernels.cpu import fixed_order
from regard.attention.scores import grouped_product
from tests.attention.cases import random, worst

SIZES = st.sampled_from((0, 1, 2, 5, 7, 8, 13, 31, 33, 67))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@settings(max_examples=60)
@given(st.integers(0, 999), SIZES, SIZES, st.sampled_from((1, 2, 24, 65)))
def test_any_part_has_the_bits_of_the_whole(dtype: torch.dtype, seed: int, rows: int, cols: int, width: int) -> None:
    x, y = 100 * random(seed, 79, width, dtype=dtype), 100 * random(seed + 1, 83, width, dtype=dtype)
    whole = fixed_order.product(x, y)
    assert whole.shape == (79, 83)
    assert whole.is_contiguous()
    first, start = seed % (80 - rows), seed % (84 - cols)
    part = fixed_order.product(x[first : first + rows], y[start : start + cols])
    assert torch.equal(part, whole[first : first + rows, start : start + cols])
    sizes = x.double().abs() @ y.double().abs().mT
    assert ((whole.double() - x.double() @ y.double().mT).abs() <= width * torch.finfo(dtype).eps * sizes).all()


def test_its_rounding_is_one_fused_step_after_another() -> None:
    x, y = random(0, 9, 33, dtype=torch.float32), random(1, 35, 33, dtype=torch.float32)
    sums = np.zeros((9, 35), np.float32)
    for k in range(33):  # a product of two float32 and its sum with a third lose next to nothing in extended precision
        step = np.outer(x[:, k].numpy().astype(np.longdouble), y[:, k].numpy().astype(np.longdouble)) + sums
        sums = step.astype(np.float32)
    assert np.array_equal(fixed_order.product(x, y).numpy(), sums)


@pytest.mark.parametrize("alone", [0, 1 << 60], ids=["by tasks", "alone"])
@pytest.mark.parametrize("groups", [6, 2, 1])
def test_grouped_heads(groups: int, alone: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fixed_order, "ALONE", alone)
    a, b = random(0, 2, 6, 37, 5), random(1, 2, groups, 41, 5)
    assert worst(fixed_order.grouped(a, b.mT), grouped_product(a, b.mT)) < 1e-14
    assert fixed_order.grouped(a[:, :, :0], b.mT).shape == (2, 6, 0, 41)
    assert fixed_order.grouped(a, b[:, :, :0].mT).shape == (2, 6, 37, 0)


def test_what_is_not_finite_stays_in_its_row_and_column() -> None:
    x, y = random(0, 11, 7, dtype=torch.float32), random(1, 19, 7, dtype=torch.float32)
    x[3, 2], y[5, 1] = torch.inf, torch.nan
    got, right = fixed_order.product(x, y), x.double() @ y.double().mT
    assert torch.equal(got.isnan(), right.isnan())
    assert torch.equal(got.isinf(), right.isinf())
