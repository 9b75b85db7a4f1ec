"""The kernel that is always right, by itself: any block size, and a backward pass from what a forward left."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import regard
from regard.attention import reference
from regard.attention import scores as score_tiles
from regard.attention.kernels import blockwise
from regard.attention.scores import ScoreRule
from tests.attention.cases import Case, cases, check, naive, random, working


def rule_of(case: Case) -> ScoreRule:
    return regard.attend(case.query, case.key, case.value, **case.options).weights.rule


@settings(max_examples=50)
@given(cases(), st.integers(1, 20), st.integers(1, 20), st.integers(6, 90))
def test_any_block_size(case: Case, rows: int, cols: int, scores: int) -> None:
    kept = score_tiles.TILE_ROWS, score_tiles.TILE_COLS, score_tiles.TILE_SCORES
    try:
        score_tiles.TILE_ROWS, score_tiles.TILE_COLS = rows, cols
        score_tiles.TILE_SCORES = {"cpu": scores, "other": scores}
        output, logsumexp = blockwise.forward(case.query, case.key, case.value, rule_of(case))[:2]
    finally:
        score_tiles.TILE_ROWS, score_tiles.TILE_COLS, score_tiles.TILE_SCORES = kept
    right, dtype = case.oracle(), case.query.dtype
    plain, exact = naive(case, dtype), naive(case, working(dtype))
    check("output", output, plain.output, right.output, case, dtype)
    check("logsumexp", logsumexp, exact.logsumexp, right.logsumexp, case, working(dtype))
    assert torch.equal(logsumexp == -torch.inf, right.logsumexp == -torch.inf)


def test_scores_beyond_what_exp_can_hold() -> None:
    query = torch.tensor([[[[1e4], [-1e4], [0.0]]]])
    key = torch.tensor([[[[1.0], [-1.0], [0.5]]]])
    output, logsumexp = blockwise.forward(query, key, key, ScoreRule(scale=1.0))[:2]
    assert output.flatten().tolist() == pytest.approx([1.0, -1.0, 0.5 / 3])
    assert logsumexp.flatten().tolist() == pytest.approx([1e4, 1e4, 1.0986123])


def test_a_sink_far_above_and_far_below_the_scores() -> None:
    query, value = torch.zeros(1, 2, 1, 1), torch.ones(1, 2, 3, 1)
    output, logsumexp = blockwise.forward(query, value, value, ScoreRule(1.0, sinks=torch.tensor([1e4, -1e4])))[:2]
    assert output.flatten().tolist() == [0.0, 1.0]
    assert logsumexp.flatten().tolist() == pytest.approx([1e4, 1.0986123])


@pytest.mark.parametrize("sinks", [False, True])
def test_backward_from_another_forward(sinks: bool) -> None:
    query, key, value = (random(n, 1, 4, 9, 3).requires_grad_() for n in range(3))
    upstream = random(5, 1, 4, 9, 3)
    rule = ScoreRule(0.7, 2.0, random(6, 4, 9)[None, :, None], None, random(7, 4) if sinks else None)
    right = reference.attention(query, key, value, bias=rule.bias, scale=0.7, softcap=2.0, sinks=rule.sinks)
    right.output.backward(upstream)
    detached = (query.detach(), key.detach(), value.detach())
    got = blockwise.backward(*detached, rule, right.output.detach(), right.logsumexp.detach(), upstream)
    for gradient, tensor in zip(got, (query, key, value), strict=False):
        torch.testing.assert_close(gradient, tensor.grad)


def test_dropout_is_undone_by_nothing_but_the_seed() -> None:
    query = random(0, 1, 1, 300, 4)
    torch.manual_seed(1)
    first, again = (blockwise.forward(query, query, query, ScoreRule(0.5), 0.5)[0] for _ in range(2))
    assert not torch.equal(first, again)
    torch.manual_seed(1)
    assert torch.equal(blockwise.forward(query, query, query, ScoreRule(0.5), 0.5)[0], first)
