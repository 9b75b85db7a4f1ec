"""Weights of regions against float64: as near as PyTorch's softmax, in small maps far nearer, and never above 1."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import regard
from regard.attention import region_scores
from regard.attention.attention_map import AttentionMap
from regard.attention.given_map import one_head
from regard.attention.region_scores import RowSums
from regard.attention.scores import ScoreRule
from regard.server.cell_means import cell_means, region_cell_means
from tests.attention.cases import Case, cases, check, naive, random, worst
from tests.attention.test_attention_map import some_map

ROUTES = ("float64", "float32")
SIZES = ((900, 900), (1100, 1100), (300, 4001), (4001, 300))  # below and above 2^20 weights a head, square and not
RULES: dict[str, Any] = {
    "plain": lambda rows, cols: {},
    "causal": lambda rows, cols: {"causal": True},
    "mask and window": lambda rows, cols: {"mask": random(3, 1, 1, rows, cols) > -1, "window": (700, 90)},
    "bias": lambda rows, cols: {"bias": 3 * random(3, 1, 2, 1, cols, dtype=torch.float32)},
    "sinks": lambda rows, cols: {"sinks": torch.tensor([1.0, 30.0])},
    "softcap": lambda rows, cols: {"softcap": 30.0},
}


@contextmanager
def route(name: str) -> Iterator[None]:
    """Every map's scores by one of the two ways, whatever its size."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(region_scores, "LARGE_MAP", 0 if name == "float32" else 1 << 60)
        yield


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("rows", "cols"), SIZES)
def test_no_farther_from_float64_than_softmax_in_torch(rows: int, cols: int, rule: str) -> None:
    """Scores reach 500, where float32 rounds a score by 3e-5; two query heads share a key head."""
    options = RULES[rule](rows, cols)
    for dtype, strength in ((torch.float32, 10.0), (torch.bfloat16, 2.0))[: 2 if rule == "plain" else 1]:
        query, key = (strength * random(n, 1, heads, size, 64) for n, heads, size in ((0, 2, rows), (1, 1, cols)))
        case = Case(query.to(dtype), key.to(dtype), key.to(dtype), options)
        right, plain = case.oracle().weights, naive(case, torch.float32).weights

        def fresh(case: Case = case) -> AttentionMap:
            return regard.attend(case.query, case.key, case.value, **case.options).weights

        seen, middle = fresh(), cols // 2
        large = rows * cols >= region_scores.LARGE_MAP

        def hold(given: Tensor, torchs: Tensor, exact: Tensor, large: bool = large) -> None:
            allowed = 1.05 * worst(torchs, exact) + 3e-7 if large else 1.5e-7
            assert worst(given, exact) <= allowed, f"{worst(given, exact):.1e}, allowed {allowed:.1e}"
            assert given.min() >= 0
            assert given.max() <= 1

        for index in (
            (..., middle),
            (0, slice(0, 2), slice(70, 134), slice(middle, middle + 64)),
            (0, 0, 7, slice(0, middle)),
            (0, 1, 7, int(right[0, 1, 7].argmax())),
            (0, slice(None), 200),
            (...,),
        ):
            hold(seen[index], plain[index], right[index])
            hold(fresh()[index], plain[index], right[index])
        row_max, row_sum = fresh().row_max_sum()
        scores = right.log()[0, 1].max(-1).values  # of the weights: the largest of each row is 1 / row sum
        has_key = scores.isfinite() & (case.options.get("sinks") is None)
        assert worst((1 / row_sum[0, 1])[has_key], scores.exp()[has_key]) <= 1.05 * worst(plain, right) + 3e-7
        assert row_max.dtype == torch.float32
        means = torch.cat([band for _, band in cell_means(one_head(fresh(), 1))])
        torchs, exact = (region_cell_means(whole[0, 1], 16) for whole in (plain, right))
        assert worst(means, exact) <= 1.05 * worst(torchs, exact) + 3e-8


@st.composite
def regions_of(draw: Any, length: int, size: int) -> Any:
    """Indices of the two last axes: rows, columns, single weights, steps both ways, vectors, nothing."""

    def axis(n: int) -> Any:
        start, stop = sorted((draw(st.integers(0, n)), draw(st.integers(0, n))))
        place = draw(st.integers(-n, n - 1))
        vector = draw(st.lists(st.integers(-n, n - 1), max_size=4))
        steps = slice(None, None, draw(st.sampled_from((2, 3, -1, -2))))
        return draw(st.sampled_from((slice(start, stop), slice(start, stop), place, steps, vector, slice(None))))

    rows, cols = axis(length), axis(size)
    return (..., [rows] if isinstance(rows, int) and isinstance(cols, list) else rows, cols)


@pytest.mark.parametrize("name", ROUTES)
@settings(max_examples=40, report_multiple_bugs=False)
@given(cases(), st.data())
def test_any_region_of_any_map(name: str, case: Case, data: st.DataObject) -> None:
    with route(name):
        attention = regard.attend(case.query, case.key, case.value, **case.options).weights
        right, plain, whole = case.oracle().weights, naive(case, attention.dtype).weights, attention.dense()
        for fresh in (True, False):  # with row sums of its own, and with those that dense() has found
            seen = regard.attend(case.query, case.key, case.value, **case.options).weights if fresh else attention
            index = data.draw(regions_of(*seen.shape[2:]))
            if isinstance(index[1], list) and isinstance(index[2], list):
                index = (..., index[1], slice(None))
            parts = (torch.from_numpy(t.numpy()[index].copy()) for t in (plain, right))
            check("weights", seen[index], *parts, case, seen.dtype)
            assert not seen[index].numel() or 0 <= seen[index].min() <= seen[index].max() <= 1
            share = seen.sink_share
            assert worst(whole.sum(-1) + share, (right.sum(-1) + case.oracle().sink_share).to(share.dtype)) < 1e-5


@pytest.mark.parametrize("name", ROUTES)
def test_keys_that_are_alike_share_alike(name: str) -> None:
    """Errors that do not cancel: every score of a row is rounded the same way."""
    query, key = 100 * random(0, 20, 24, dtype=torch.float32), 100 * random(1, 1, 24, dtype=torch.float32)
    with route(name):
        seen = regard.attend(query, key.expand(2003, 24), key.expand(2003, 24)).weights
        torch.testing.assert_close(seen[:, 5:9], torch.full((20, 4), 1 / 2003), rtol=1e-6, atol=0)
        assert worst(seen[:, :1000].sum(-1) + seen[:, 1000:].sum(-1), torch.ones(20)) < 1e-6


@pytest.mark.parametrize("name", ROUTES)
def test_scores_and_row_sums_make_the_weights(name: str) -> None:
    query, key = 30 * random(0, 2, 3, 11, 8, dtype=torch.float32), 30 * random(1, 2, 1, 37, 8, dtype=torch.float32)
    with route(name):
        seen = regard.attend(query, key, key, sinks=torch.tensor([1.0, 700.0, -3.0])).weights
        top, total = seen.row_max_sum()
        assert seen.scores[...].dtype == top.dtype == total.dtype == seen.sink_share.dtype == torch.float32
        weights = torch.exp(seen.scores[...] - top[..., None]) / total[..., None]
        torch.testing.assert_close(weights, seen.dense(), rtol=0, atol=4 * 1.2e-7 * float(top.abs().max()))


def test_small_maps_are_computed_in_float64() -> None:
    for length, size, dtype, expected in (
        (1024, 1024, torch.float32, torch.float32),
        (1, 16384, torch.bfloat16, torch.float32),
        (1, 16383, torch.float32, torch.float64),
        (1024, 1023, torch.float16, torch.float64),
        (1024, 1024, torch.float64, torch.float64),
    ):
        query, key = torch.zeros(1, 1, length, 1, dtype=dtype), torch.zeros(1, 1, size, 1, dtype=dtype)
        assert region_scores.dtype_of(query, key) == expected


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_region_of_a_map_that_nobody_could_hold(dtype: torch.dtype) -> None:
    query, key = 30 * random(0, 1, 1, 40_000, 16), random(1, 1, 1, 40_000, 16)
    seen = AttentionMap(query.to(dtype), key.to(dtype), ScoreRule(1.0), offset=0)
    rows, cols = slice(30_000, 30_050), slice(20_000, 20_040)
    best = seen[0, 0, rows].argmax(-1)
    at_best = torch.stack([seen[0, 0, 30_000 + n, int(j)] for n, j in enumerate(best)])
    exact = (seen.query[0, 0, rows].double() @ seen.key[0, 0].double().mT).softmax(-1)
    assert worst(at_best, exact.gather(-1, best[:, None])[:, 0]) < 2e-4
    assert at_best.max() <= 1
    torch.testing.assert_close(seen[0, 0, rows, cols], seen[0, 0, rows][:, cols], rtol=0, atol=1e-6)
    torch.testing.assert_close(seen[0, 0, [30_007], 20_005], seen[0, 0, rows][7:8, 20_005], rtol=0, atol=1e-6)


def test_row_max_and_sum_make_weights_of_scores() -> None:
    for sinks in (None, random(5, 6)):
        seen = some_map(sinks=sinks, mask=torch.arange(7)[:, None] != 2)
        top, total = seen.row_max_sum()
        if sinks is None:  # what sees nothing has nothing; with a sink it has the sink alone
            assert (top[:, :, 2] == -torch.inf).all()
            assert not total[:, :, 2].any()
        else:
            assert torch.equal(top[:, :, 2], sinks.expand_as(top[:, :, 2]))
            assert (total[:, :, 2] == 1).all()
        over = seen.scores[...] - top[..., None].nan_to_num(neginf=0.0)
        torch.testing.assert_close(torch.exp(over) / total[..., None].clamp(min=1e-300), seen.dense())


@pytest.mark.parametrize("name", ROUTES)
@pytest.mark.parametrize("sinks", [None, random(3, 4, dtype=torch.float32)])
def test_row_sums_are_computed_once(sinks: Tensor | None, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    query, key = random(0, 2, 4, 37, 5, dtype=torch.float32), random(1, 2, 2, 41, 5, dtype=torch.float32)
    with route(name):
        sums, run = RowSums(query, key, ScoreRule(0.4, sinks=sinks)), slice(0, 37)
        scores = query.double() @ key.double().repeat_interleave(2, 1).mT * 0.4
        joined = scores if sinks is None else torch.cat([scores, sinks[None, :, None, None].expand(2, 4, 37, 1)], -1)
        for index in (
            (slice(0, 1), slice(2, 3), slice(20, 37)),
            (torch.tensor([1]), slice(0, 4), torch.tensor([6, 1])),
        ):
            row_max, row_sum = sums.of(*index)
            exact = joined.logsumexp(-1)[index[0]][:, index[1]][:, :, index[2]]
            torch.testing.assert_close((row_max + row_sum.log()).double(), exact, atol=1e-6, rtol=1e-6)
        two = torch.full((1, 2, 2), 2.0, dtype=region_scores.dtype_of(query, key))
        sums.keep(slice(0, 1), slice(0, 2), slice(3, 5), two, two)
        assert (sums.of(slice(0, 1), slice(1, 2), slice(3, 4))[0] == 2).all()
        sums.of(slice(1, 2), slice(0, 4), run)
        monkeypatch.setattr(region_scores, "row_max_sum", None)
        monkeypatch.setattr(region_scores, "cpu", None)
        row_max, row_sum = sums.of(slice(1, 2), slice(0, 4), run)
        torch.testing.assert_close((row_max + row_sum.log()).double(), joined.logsumexp(-1)[1:], atol=1e-6, rtol=1e-6)


def test_contexts_within_others_share_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(region_scores, "_weights_left", ContextVar("left", default=20))
    one, other = (regard.attend(*torch.randn(3, 1, 2, 3, 3)).weights for _ in range(2))  # of 18 weights each
    with region_scores.weights_kept([one]):
        with region_scores.weights_kept([one, other]):
            assert (one._kept is not None, other._kept) == (True, None)
        assert one._kept is not None
    with region_scores.weights_kept([other]):
        assert (one._kept, other._kept is not None) == (None, True)
