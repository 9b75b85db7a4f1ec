"""Which kernel is chosen for a call."""

import pytest
import torch

import regard
from regard.attention import masks
from regard.attention.kernels import dispatch, matmul
from regard.attention.scores import ScoreRule
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


def test_every_kernel_is_described() -> None:
    described = dispatch.kernels()
    assert {
        "blockwise",
        "blockwise-cpu",
        "one-sweep-cpu",
        "sdpa-cpu",
        "cudnn-cuda",
        "flash-cuda",
        "efficient-cuda",
    } == set(described)
    assert all(text.startswith(("available", "not available")) for text in described.values())


@pytest.mark.parametrize(
    ("shape", "causal", "sdpa", "wins"),
    [
        ((1, 6, 16, 16), False, True, True),  # 6 heads x 16 queries = 4 x 8 x 3 threads
        ((2, 3, 16, 16), False, True, True),
        ((5, 1, 19, 16), False, True, False),  # 95 of 96: too few tasks
        ((14, 1, 7, 40), False, True, False),  # 7 of 8 queries
        ((1, 6, 17, 15), False, True, False),  # 15 of 16 keys
        ((1, 6, 15, 16), False, True, False),  # 90 of 96
        ((1, 7, 14, 17), False, True, False),  # 238 of 240 scores a head
        ((1, 6, 16, 16), True, True, False),  # 128 of 240, half of them being masked
        ((1, 6, 22, 22), True, True, True),  # 242
        ((1, 2, 10, 100), False, False, True),  # few tasks, but 2000 scores in all and no kernel of PyTorch's
        ((2, 1, 10, 100), False, False, True),
        ((1, 2, 10, 100), False, True, False),
        ((1, 2, 10, 99), False, False, False),
    ],
)
def test_from_which_sizes_on_the_tiles_win(
    shape: tuple[int, int, int, int], causal: bool, sdpa: bool, wins: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("CPU_QUERIES", 8), ("CPU_KEYS", 16), ("CPU_SCORES", 240), ("CPU_SCORES_IN_ALL", 2000)):
        monkeypatch.setattr(dispatch, name, value)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    monkeypatch.setattr(matmul, "speed", lambda: 2.0)
    batch, heads, length, size = shape
    query, key = torch.empty(batch, heads, length, 5), torch.empty(batch, heads, size, 5)
    mask = masks.causal() if causal else None
    assert dispatch._cpu_tiles_win(query, key, ScoreRule(1.0, mask=mask), causal, sdpa) is wins
    if wins and sdpa:  # PyTorch's kernel is left where the products are no faster, but for what it cannot do as well
        monkeypatch.setattr(matmul, "speed", lambda: 1.0)
        assert not dispatch._cpu_tiles_win(query, key, ScoreRule(1.0, mask=mask), causal, sdpa)
        biased = ScoreRule(1.0, bias=torch.zeros(1, 1, 1, size), mask=mask)
        assert dispatch._cpu_tiles_win(query, key, biased, causal, sdpa)


def test_the_sizes_are_those_that_were_measured() -> None:
    sizes = dispatch.CPU_QUERIES, dispatch.CPU_KEYS, dispatch.CPU_SCORES, dispatch.CPU_SCORES_IN_ALL
    assert sizes == (64, 256, 524_288, 1_048_576)
