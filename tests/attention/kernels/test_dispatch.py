"""Which kernel is chosen for a call."""

import pytest
import torch

import regard
from regard.attention.kernels import matmul
from tests.attention.cases import random


def test_chosen_where_it_is_faster_and_right(monkeypatch: pytest.MonkeyPatch) -> None:
    def kernel(length: int, dtype: torch.dtype = torch.float32, **options: object) -> str:
        x = random(0, 1, 2, length, 8, dtype=dtype)
        return regard.attend(x, x, x, **options).kernel

    monkeypatch.setattr(matmul, "speed", lambda: 2.0)
    assert kernel(40) == "sdpa-cpu"
    assert kernel(1024) == kernel(1024, torch.bfloat16) == kernel(1024, causal=True) == "blockwise-cpu"
    assert kernel(800, softcap=20.0) == "blockwise-cpu"
    assert kernel(1024, torch.float64) == "sdpa-cpu"
    assert kernel(1024, dropout=0.5) == "blockwise"
    monkeypatch.setattr(matmul, "speed", lambda: 1.0)
    assert kernel(1024) == kernel(1024, causal=True) == "sdpa-cpu"
    assert kernel(1024, torch.bfloat16) == kernel(1024, window=(9, 9)) == "blockwise-cpu"
