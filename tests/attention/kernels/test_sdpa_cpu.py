"""PyTorch's fused CPU kernel: which calls it may have, and what its traps are turned into."""

from typing import Any

import pytest
import torch

from regard.attention import masks, reference
from regard.attention.kernels import sdpa_cpu
from regard.attention.masks import Edges
from regard.attention.scores import ScoreRule
from tests.attention.cases import random, strided

X = random(0, 2, 3, 5, 4)


@pytest.mark.parametrize(
    ("change", "right"),
    [
        ({}, True),
        ({"query": X.float(), "key": X.float(), "value": X.float()}, True),
        ({"query": X.bfloat16()}, False),
        ({"dropout": 0.1}, False),
        ({"rule": ScoreRule(1.0, softcap=2.0)}, False),
        ({"rule": ScoreRule(1.0, sinks=torch.zeros(3))}, False),
        ({"value": X[..., :3]}, False),
        ({"query": X[:, :, :0]}, False),
        ({"key": X[:, :, :0]}, False),
        ({"rule": ScoreRule(1.0, bias=torch.zeros(1, 1, 5, 5).double())}, True),
        ({"rule": ScoreRule(1.0, bias=torch.zeros(1, 1, 5, 5))}, False),
        ({"rule": ScoreRule(1.0, bias=torch.zeros(1, 1, 5, 5).double().requires_grad_())}, False),
        ({"query": X.to("meta")}, False),
    ],
)
def test_the_calls_that_it_gets_right(change: dict[str, Any], right: bool) -> None:
    call = {"query": X, "key": X, "value": X, "rule": ScoreRule(1.0), "dropout": 0.0, "causal": False} | change
    assert sdpa_cpu.fits(**call) is right


def test_only_a_mask_that_is_small_is_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sdpa_cpu, "MASK_LIMIT", 50)  # two matrices of 5 x 5
    for rule, causal, right in (
        (ScoreRule(1.0, mask=masks.causal()), True, True),
        (ScoreRule(1.0, mask=masks.window(1, 1)), False, True),
        (ScoreRule(1.0, mask=masks.Mask(removed=(Edges((2, 3, 5, 5), (0,)),))), False, True),
        (ScoreRule(1.0, mask=masks.Mask(removed=(Edges((2, 3, 5, 5), None, (0,)),))), False, False),
    ):
        assert sdpa_cpu.fits(X, X, X, rule, 0.0, causal) is right
    monkeypatch.setattr(sdpa_cpu, "MASK_LIMIT", 24)
    assert sdpa_cpu.fits(X, X, X, ScoreRule(1.0, mask=masks.causal()), 0.0, True)
    assert not sdpa_cpu.fits(X, X, X, ScoreRule(1.0, mask=masks.window(1, 1)), 0.0, False)


@pytest.mark.parametrize("bias", [None, random(1, 1, 3, 5, 5)])
@pytest.mark.parametrize("causal", [False, True])
def test_masked_rows_strided_queries_and_biases(bias: torch.Tensor | None, causal: bool) -> None:
    rows = torch.tensor([True, True, False, True, True])[:, None]
    mask = masks.causal() if causal else masks.dense(rows)
    options = {"causal": True} if causal else {"mask": rows}
    query = strided(X, "last")
    result = sdpa_cpu.forward(query, X, X, ScoreRule(0.5, bias=bias, mask=mask), causal)
    right = reference.attention(query, X, X, scale=0.5, **options, **({} if bias is None else {"bias": bias}))
    torch.testing.assert_close(result.output, right.output)
    torch.testing.assert_close(result.logsumexp, right.logsumexp)
    assert (result.kernel, result.row_max_sum) == ("sdpa-cpu", None)
