"""`attend` against the definition in float64, and where answers are known in closed form."""

import math
from contextlib import nullcontext

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import regard
from regard.attention import reference
from tests.attention.cases import Case, cases, check, cpu_tiles_at_any_size, naive, random, working, worst


def compare(case: Case) -> regard.Attention:
    right = case.oracle()
    got = regard.attend(case.query, case.key, case.value, **case.options)
    dtype = case.query.dtype
    plain, exact = naive(case, dtype), naive(case, working(dtype))
    assert got.output.dtype == dtype
    assert torch.equal(got.valid, right.valid)
    check("output", got.output, plain.output, right.output, case, dtype)
    check("logsumexp", got.logsumexp, exact.logsumexp, right.logsumexp, case, working(dtype))
    return got


@settings(max_examples=120)
@given(cases())
def test_output_and_logsumexp(case: Case) -> None:
    compare(case)


@settings(max_examples=60)
@given(cases((torch.float32, torch.bfloat16, torch.float16)))
def test_output_and_logsumexp_of_the_cpu_tiles(case: Case) -> None:
    with cpu_tiles_at_any_size():
        assert compare(case).kernel == "blockwise-cpu"


@settings(max_examples=30)
@given(cases(empty=True))
def test_axes_of_size_nought(case: Case) -> None:
    right = case.oracle()
    got = regard.attend(case.query, case.key, case.value, **case.options)
    assert worst(got.output, right.output) == worst(got.logsumexp, right.logsumexp) == 0.0 or case.value.shape[-1] == 0
    assert got.output.shape == right.output.shape
    assert torch.equal(got.valid, right.valid)


@pytest.mark.parametrize("width", [1, 2, 31, 64, 127, 256, 512])
@pytest.mark.parametrize("value_width", [None, 3])
def test_any_width(width: int, value_width: int | None) -> None:
    query, key = random(0, 2, 3, 37, width), random(1, 2, 3, 41, width)
    value = random(2, 2, 3, 41, value_width or width)
    right = reference.attention(query, key, value, causal=True)
    got = regard.attend(query.float(), key.float(), value.float(), causal=True)
    assert worst(got.output, right.output) < 2e-6
    assert worst(got.logsumexp, right.logsumexp) < 2e-6


def test_long_enough_for_every_kernel_and_block() -> None:
    query, key = random(3, 1, 2, 1031, 64, dtype=torch.float32), random(4, 1, 2, 1031, 64, dtype=torch.float32)
    for options in ({}, {"causal": True}, {"window": (100, 20)}):
        right = reference.attention(query, key, key, **options)
        got = regard.attend(query, key, key, **options)
        assert worst(got.output, right.output) < 2e-6
        assert worst(got.logsumexp, right.logsumexp) < 4e-6


def test_fewer_axes_are_one_batch_and_one_head() -> None:
    query, key, value = random(0, 1, 1, 5, 4), random(1, 1, 1, 7, 4), random(2, 1, 1, 7, 3)
    whole = regard.attend(query, key, value, causal=True)
    for drop in (1, 2):
        got = regard.attend(*(t.reshape(t.shape[drop:]) for t in (query, key, value)), causal=True)
        assert got.output.shape == whole.output.shape[drop:]
        assert got.valid.shape == got.logsumexp.shape == whole.output.shape[drop:-1]
        assert got.weights.shape == whole.weights.shape[drop:]
        assert worst(got.output, whole.output.reshape(got.output.shape)) == 0.0
        assert torch.equal(got.weights.dense(), whole.weights.dense().reshape(got.weights.shape))


def test_equal_scores_give_equal_weights() -> None:
    value = random(0, 1, 1, 5, 3)
    got = regard.attend(torch.zeros(1, 1, 4, 2).double(), random(1, 1, 1, 5, 2), value)
    torch.testing.assert_close(got.output, value.mean(2, keepdim=True).expand(1, 1, 4, 3))
    torch.testing.assert_close(got.logsumexp, torch.full((1, 1, 4), math.log(5)).double())


def test_one_key_far_ahead_takes_all() -> None:
    key = torch.eye(6)[None, None]
    got = regard.attend(1e4 * key, key, key, scale=1.0)
    assert torch.equal(got.weights[0, 0], torch.eye(6))
    assert torch.equal(got.output, key)
    assert worst(got.logsumexp, torch.full((1, 1, 6), 1e4)) == 0.0


def test_a_known_softmax() -> None:
    query, key = torch.ones(1, 1), torch.tensor([[0.0], [math.log(2.0)], [math.log(5.0)]])
    got = regard.attend(query, key, torch.tensor([[8.0], [16.0], [32.0]]), scale=1.0)
    for weights in (got.weights.dense(), got.weights.dense(dtype=torch.float32)):
        torch.testing.assert_close(weights, torch.tensor([[1 / 8, 2 / 8, 5 / 8]]))
    torch.testing.assert_close(got.output, torch.tensor([[25.0]]))


def test_a_sink_takes_its_share_and_gives_no_value() -> None:
    query, key = torch.zeros(2, 1, 1), torch.zeros(2, 1, 1)
    got = regard.attend(query, key, torch.ones(2, 1, 1), sinks=torch.tensor([0.0, math.log(3.0)]))
    torch.testing.assert_close(got.output.flatten(), torch.tensor([0.5, 0.25]))
    torch.testing.assert_close(got.weights.sink_share.flatten(), torch.tensor([0.5, 0.75]))


def test_what_sees_nothing_is_nought() -> None:
    query = random(0, 1, 1, 3, 4, dtype=torch.float32)
    got = regard.attend(query, query, query, mask=torch.tensor([[True], [False], [True]]), sinks=torch.zeros(1))
    assert got.valid[0, 0].tolist() == [True, False, True]
    assert not got.output[0, 0, 1].any()
    assert not got.weights[0, 0, 1].any()
    assert got.weights.entropy()[0, 0, 1] == 0


@pytest.mark.parametrize("tiles", [False, True])
def test_a_sink_takes_all_where_nothing_else_is_seen(tiles: bool) -> None:
    query = random(0, 2, 3, 5, 4, dtype=torch.float32).requires_grad_()
    sinks = torch.tensor([0.0, 2.5, -torch.inf], requires_grad=True)
    mask = torch.arange(5)[:, None] != 1
    right = reference.attention(query.detach(), query.detach(), query.detach(), mask=mask, sinks=sinks.detach())
    assert right.sink_share[0, :, 1].tolist() == [1.0, 1.0, 0.0]
    assert right.logsumexp[0, :, 1].tolist() == [0.0, 2.5, -torch.inf]
    with cpu_tiles_at_any_size() if tiles else nullcontext():
        for gradient in (True, False):
            q, s = (query, sinks) if gradient else (query.detach(), sinks.detach())
            got = regard.attend(q, q, q, mask=mask, sinks=s)
            assert got.kernel == ("blockwise-cpu" if tiles else "blockwise")
            assert torch.equal(got.valid, right.valid)
            assert got.valid[0, 0].tolist() == [True, False, True, True, True]
            assert got.logsumexp[:, :, 1].tolist() == [[0.0, 2.5, -torch.inf]] * 2
            assert got.weights.sink_share[0, :, 1].tolist() == [1.0, 1.0, 0.0]
            assert (
                worst(got.weights[...].sum(-1) + got.weights.sink_share, right.weights.sum(-1) + right.sink_share)
                < 1e-6
            )
            figures = got.weights.statistics(2, (3, 3))
            assert figures.sink_share[0, :, 1].tolist() == [1.0, 1.0, 0.0]
            assert not got.output[:, :, 1].any()
            for figure in (figures.entropy, figures.distance, figures.values):
                assert not figure[:, :, 1].any()
            assert (figures.keys[:, :, 1] == -1).all()
        output = regard.attend(query, query, query, mask=mask, sinks=sinks).output
    flow = torch.autograd.grad(output[:, :, 1].sum(), (query, sinks))
    assert not flow[0].any()
    assert not flow[1].any()


def test_causal_aligns_the_last_query_with_the_last_key() -> None:
    query, key = random(0, 3, 4), random(1, 5, 4)
    allowed = regard.attend(query, key, key, causal=True).weights.dense() > 0
    assert allowed.tolist() == [[True] * 3 + [False] * 2, [True] * 4 + [False], [True] * 5]
    shifted = regard.attend(query, key, key, causal=True, offset=0).weights.dense() > 0
    assert torch.equal(shifted, torch.ones(3, 5).tril().bool())
    one = regard.attend(query, key, key, window=(1, 0), offset=1).weights.dense() > 0
    assert one.int().tolist() == [[1, 1, 0, 0, 0], [0, 1, 1, 0, 0], [0, 0, 1, 1, 0]]


@settings(max_examples=20)
@given(st.sampled_from((torch.float32, torch.bfloat16)), st.integers(0, 99))
def test_the_same_every_time(dtype: torch.dtype, seed: int) -> None:
    query, key = random(seed, 2, 2, 67, 8, dtype=dtype), random(seed + 1, 2, 2, 67, 8, dtype=dtype)
    first, again = (regard.attend(query, key, key, causal=True) for _ in range(2))
    assert torch.equal(first.output, again.output)
    assert torch.equal(first.logsumexp, again.logsumexp)
    assert torch.equal(first.weights.received(), again.weights.received())


def test_dropout_is_seeded_and_right_on_average() -> None:
    query, value = torch.zeros(1, 1, 400, 2), torch.ones(1, 1, 400, 3)
    outputs = []
    for _ in range(2):
        torch.manual_seed(5)
        outputs.append(regard.attend(query, query, value, dropout=0.25))
    assert torch.equal(outputs[0].output, outputs[1].output)
    assert torch.equal(outputs[0].output[..., 0], outputs[0].output[..., 1])  # all of a value goes
    assert abs(float(outputs[0].output.mean()) - 1.0) < 0.01
    assert outputs[0].output.std() > 0.01
    torch.testing.assert_close(outputs[0].weights.dense(), torch.full((1, 1, 400, 400), 1 / 400))
    assert not regard.attend(query, query, value, dropout=1.0).output.any()
