"""NaN and infinity in queries, keys and values: one answer of every kernel, from one token on, and of every figure."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import regard
from regard.attention import masks, reference
from regard.attention.ablation import EdgeAblation, ablating
from regard.attention.attention_map import AttentionMap
from regard.attention.map_statistics import MapStatistics
from regard.server.cell_means import CELL, cell_means
from tests.attention.cases import Case, cases, check, cpu_tiles_at_any_size, naive, random, working

HOW = ("chosen", "tiles", "sweep")
FIGURES: dict[str, Callable[[reference.Reference, int], Tensor]] = {
    "entropy": lambda r, _: reference.entropy(r.weights, r.sink_share),
    "received": lambda r, _: reference.received(r.weights),
    "distance": lambda r, offset: reference.distance(r.scores, offset),
    "pooled": lambda r, _: reference.pooled(r.weights, *(min(n, 4) for n in r.weights.shape[-2:])),
}


@contextmanager
def kernels(how: str) -> Iterator[dict[str, Any]]:
    """The kernel that is chosen, the CPU's tiles or its one sweep, at any size; yields what `attend` is given."""
    if how == "chosen":
        yield {}
    else:
        with cpu_tiles_at_any_size():
            yield {"statistics": regard.Statistics(3, (4, 4))} if how == "sweep" else {}


@st.composite
def spoilt(draw: Callable[..., Any], where: tuple[str, ...] = ("query", "key")) -> tuple[Case, str]:
    """A call of any kind with NaN or infinity in one number, one row or all of query, key or value; and where."""
    case, name = draw(cases()), draw(st.sampled_from(where))
    case.__dict__["largest"] = case.largest  # of what is finite
    tensor = getattr(case, name).clone()
    place = tuple(draw(st.integers(0, n - 1)) for n in tensor.shape)[: draw(st.sampled_from((0, 3, 3, 4, 4)))]
    tensor[place] = draw(st.sampled_from((math.nan, math.nan, math.inf, -math.inf)))
    setattr(case, name, tensor)
    if draw(st.integers(0, 3)) == 0:  # a bias that forbids, as additive masks do
        forbids = random(draw(st.integers(0, 99)), case.query.shape[2], case.key.shape[2]) > 0.3
        case.plain["bias"] = torch.zeros(forbids.shape, dtype=case.query.dtype).masked_fill(forbids, -math.inf)
    return case, name


@settings(max_examples=12, deadline=None)
@given(spoilt())
def test_what_queries_and_keys_spoil_is_what_the_definition_says(drawn: tuple[Case, str]) -> None:
    case, _ = drawn
    right, plain, exact = case.oracle(), naive(case, case.query.dtype), naive(case, working(case.query.dtype))
    for how in HOW:
        with kernels(how) as extra:
            got = regard.attend(case.query, case.key, case.value, **case.options, **extra)
            figures = got.weights.statistics(3, (4, 4))
            weights = got.weights.dense()
        lost = right.weights.isnan().any(-1)
        assert torch.equal(got.output.isnan(), lost[..., None].expand(got.output.shape))
        assert torch.equal(weights.isnan(), lost[..., None].expand(weights.shape))
        assert torch.equal(got.logsumexp.isnan(), lost)
        assert torch.equal(got.valid, right.valid)
        for name, dtype, ours, theirs, exactly in (
            ("output", case.query.dtype, got.output, plain.output, right.output),
            ("weights", working(case.query.dtype), weights, exact.weights, right.weights),
        ):
            check(name, *(t.masked_fill(lost[..., None], 0.0) for t in (ours, theirs, exactly)), case, dtype)
        check_figures(figures, right, got.weights.offset, lost)


def check_figures(figures: MapStatistics, right: reference.Reference, offset: int | None, lost: Tensor) -> None:
    """Every figure that a spoilt row has a part in is NaN, and no other."""
    for name, figure in FIGURES.items():
        if getattr(figures, name) is not None:
            assert torch.equal(getattr(figures, name).isnan(), figure(right, offset or 0).isnan()), name
    assert torch.equal(figures.values.isnan(), lost[..., None].expand(figures.values.shape))
    best = right.scores.sort(-1, descending=True).values[..., : figures.keys.shape[-1]]
    assert torch.equal(figures.keys >= 0, best != -torch.inf)
    named = right.scores.gather(-1, figures.keys.clamp(min=0)).masked_fill(figures.keys < 0, -torch.inf)
    assert torch.equal(named[lost].isnan(), best[lost].isnan())  # torch sorts NaN to the front
    if figures.sink_share is not None:
        assert torch.equal(figures.sink_share.isnan(), lost)


@settings(max_examples=8, deadline=None)
@given(spoilt(("value",)))
def test_a_value_spoils_who_may_attend_to_it_and_at_most_its_column(drawn: tuple[Case, str]) -> None:
    case, _ = drawn
    right = case.oracle()
    share = case.query.shape[1] // case.value.shape[1]
    bad = ~case.value.double().isfinite().repeat_interleave(share, 1)  # (B, H, S, E)
    reached = (right.scores != -torch.inf).double() @ bad.double() > 0
    for how in HOW:
        with kernels(how) as extra:
            got = regard.attend(case.query, case.key, case.value, **case.options, **extra)
        lost = ~got.output.isfinite()
        assert not (reached & ~lost).any()
        assert not (lost & right.output.isfinite()).any()  # 0 · NaN of a key that is masked may or may not be there
        assert not got.weights.dense().isnan().any()
        assert torch.equal(got.valid, right.valid)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("causal", [False, True])
def test_one_answer_from_one_token_on(dtype: torch.dtype, causal: bool) -> None:
    for length in (1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 33, 513, 1100):
        query, key = (random(n, 1, 2, length, 4, dtype=dtype) for n in range(2))
        query[0, 0, length // 2, 1] = math.nan
        got = regard.attend(query, key, key, causal=causal)
        lost = torch.arange(length) == length // 2
        assert torch.equal(got.output[0, 0].isnan(), lost[:, None].expand(length, 4)), length
        assert not got.output[0, 1].isnan().any(), length
        assert got.weights[0, 0, length // 2].isnan().all(), length
        assert got.valid.all(), length


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("options", [{}, {"mask": masks.function(lambda i, j: (i == j) | (j == 5))}])
def test_gradients_are_those_of_the_definition(dtype: torch.dtype, options: dict[str, Any]) -> None:
    tensors = [random(n, 1, 2, 7, 4, dtype=dtype) for n in range(3)]
    tensors[0][0, 0, 2] = math.nan
    leaves = [t.requires_grad_() for t in tensors]
    got = regard.attend(*leaves, **options)
    told = {} if not options else {"mask": options["mask"].materialise(1, 1, 7, 7, torch.device("cpu"))}
    right = reference.attention(*leaves, **told)
    upstream = random(3, 1, 2, 7, 4)
    for ours, exact in zip(
        torch.autograd.grad(got.output, leaves, upstream.to(dtype)),
        torch.autograd.grad(right.output, leaves, upstream),
        strict=True,
    ):
        torch.testing.assert_close(ours, exact.to(dtype), equal_nan=True, atol=1e-5, rtol=1e-4)
        assert not ours[0, 1].isnan().any()
    flow = torch.autograd.grad(regard.attend(*leaves).output, leaves[0], upstream.to(dtype))[0]
    assert flow[0, 0].isnan().any(-1).tolist() == [row == 2 for row in range(7)]


def test_rows_that_a_bias_leaves_nothing() -> None:
    """NaN less infinity is NaN: a bias is a number, where a mask is none. What is told of others stays theirs."""
    query, bias = random(0, 1, 1, 5, 4), torch.zeros(5, 5).double()
    bias[1:3], query[0, 0, 2] = -math.inf, math.nan
    for softcap in (None, 1e9):  # which PyTorch's kernel does not have
        got = regard.attend(query, query.nan_to_num(), query.nan_to_num(), bias=bias, softcap=softcap)
        assert got.output[0, 0, :, 0].isnan().tolist() == [False, False, True, False, False]
        assert not got.output[0, 0, 1].any()
        assert got.valid[0, 0].tolist() == [True, False, False, True, True]


def test_a_removed_edge_takes_the_nan_of_its_key_away() -> None:
    query, key = (random(n, 1, 1, 40, 4, dtype=torch.float32) for n in range(2))
    key[0, 0, 5] = math.nan
    with ablating([EdgeAblation(queries=[9], keys=[5])]):
        got = regard.attend(query, key, key.nan_to_num())
    assert got.output.isnan().any(-1)[0, 0].tolist() == [i != 9 for i in range(40)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_cells_of_a_spoilt_row_are_nan_all_along(dtype: torch.dtype) -> None:
    query, key = (random(n, 1, 1, 1100, 4, dtype=dtype) for n in range(2))
    query[0, 0, 3] = math.nan
    seen: AttentionMap = regard.attend(query, key, key, causal=True).weights
    means = torch.cat([band for _, band in cell_means(seen)])
    assert torch.equal(means.isnan().any(1), torch.arange(len(means)) == 3 // CELL)
    assert means[3 // CELL].isnan().all()
