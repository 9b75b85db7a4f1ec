"""A region shows what the whole matrix shows, at any scores: as exact as `dense()`, and never a weight above 1."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import regard
from regard.attention import reference, region_scores
from regard.attention.attention_map import AttentionMap
from regard.attention.kernels import matmul
from regard.attention.region_scores import RowSums
from regard.attention.scores import ScoreRule
from tests.attention.cases import Case, cases, cpu_tiles_at_any_size, random, worst
from tests.attention.test_attention_map import some_map

ROUTES = ("float64", "fixed")


@contextmanager
def route(name: str) -> Iterator[None]:
    """Every map's scores by one of the two ways, whatever its size."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(region_scores, "CPU_SCORES", 0 if name == "fixed" else 1 << 60)
        yield


def as_exact(given: Tensor, whole: Tensor, exact: Tensor) -> None:
    """What is asked of a region: at most 1.5 times the error of dense(), one rounding aside, and no weight above 1."""
    free = 2 * torch.finfo(whole.dtype).eps
    assert given.shape == exact.shape
    assert worst(given, exact) <= 1.5 * worst(whole, exact) + free
    assert worst(given, whole) <= free
    if given.numel():
        assert given.min() >= 0
        assert given.max() <= 1 + 1e-6


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
def test_regions_are_as_exact_as_the_whole(name: str, case: Case, data: st.DataObject) -> None:
    with route(name):
        attention = regard.attend(case.query, case.key, case.value, **case.options).weights
        right, whole = case.oracle().weights, attention.dense()
        for fresh in (True, False):  # with row sums of its own, and with those that dense() has found
            seen = regard.attend(case.query, case.key, case.value, **case.options).weights if fresh else attention
            index = data.draw(regions_of(*seen.shape[2:]))
            if isinstance(index[1], list) and isinstance(index[2], list):
                index = (..., index[1], slice(None))
            as_exact(seen[index], *(torch.from_numpy(t.numpy()[index].copy()) for t in (whole, right)))
            share = seen.sink_share
            assert worst(whole.sum(-1) + share, (right.sum(-1) + case.oracle().sink_share).to(share.dtype)) < 1e-5


@pytest.mark.parametrize(("causal", "route_of_products"), [(False, "onednn"), (True, "blas")])
@pytest.mark.parametrize("name", ROUTES)
@pytest.mark.parametrize("largest", [450.0, 1645.0, 1e4])
def test_pieces_of_a_long_map(
    causal: bool, largest: float, name: str, route_of_products: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matmul, "speed", lambda: 2.0 if route_of_products == "onednn" else 0.5)
    query, key = random(0, 4, 101, 64, dtype=torch.float32) * largest / 5, random(1, 2, 613, 64, dtype=torch.float32)
    exact = reference.attention(query[None], key[None], key[None], causal=causal, offset=512).weights[0]
    with route(name), cpu_tiles_at_any_size():
        whole = regard.attend(query, key, key, causal=causal, offset=512).weights.dense()
        seen = regard.attend(query, key, key, causal=causal, offset=512).weights
        columns = torch.stack([seen[..., j] for j in range(0, 613, 17)], -1)
        as_exact(columns, whole[..., ::17], exact[..., ::17])
        as_exact(seen[:, 7, :300], whole[:, 7, :300], exact[:, 7, :300])
        lines = torch.stack([seen[0, i, :300] for i in range(0, 101, 4)])
        as_exact(lines, whole[0, ::4, :300], exact[0, ::4, :300])
        as_exact(seen[3, 100, 600], whole[3, 100, 600], exact[3, 100, 600])
        edges = [0, 1, 2, 100, 356, 612, 613]
        pieces = torch.cat([seen[..., a:b] for a, b in pairwise(edges)], -1)
        as_exact(pieces, whole, exact)
        assert worst(pieces.sum(-1), torch.ones(4, 101)) < 2e-6


@pytest.mark.parametrize("name", ROUTES)
def test_keys_that_are_alike_share_alike(name: str) -> None:
    """Errors that do not cancel: every score of a row is rounded the same way."""
    query, key = 100 * random(0, 3, 24, dtype=torch.float32), 100 * random(1, 1, 24, dtype=torch.float32)
    with route(name):
        seen = regard.attend(query, key.expand(2003, 24), key.expand(2003, 24)).weights
        torch.testing.assert_close(seen[:, 5:9], torch.full((3, 4), 1 / 2003), rtol=1e-6, atol=0)
        assert worst(seen[:, :1000].sum(-1) + seen[:, 1000:].sum(-1), torch.ones(3)) < 1e-6


@pytest.mark.parametrize("name", ROUTES)
def test_scores_and_row_sums_make_the_weights(name: str) -> None:
    query, key = 30 * random(0, 2, 3, 11, 8, dtype=torch.float32), 30 * random(1, 2, 1, 37, 8, dtype=torch.float32)
    with route(name):
        seen = regard.attend(query, key, key, sinks=torch.tensor([1.0, 700.0, -3.0])).weights
        top, total = seen.row_max_sum()
        assert seen.scores[...].dtype == top.dtype == total.dtype == seen.sink_share.dtype == torch.float32
        weights = torch.exp(seen.scores[...] - top[..., None]) / total[..., None]
        torch.testing.assert_close(weights, seen.dense(), rtol=0, atol=4 * 1.2e-7 * float(top.abs().max()))


def test_large_maps_go_by_the_fixed_product_small_ones_without_it() -> None:
    for length, size, dtype, expected in (
        (64, 16384, torch.float32, torch.float32),
        (1, 16384, torch.bfloat16, torch.float32),
        (1, 16383, torch.float32, torch.float64),
        (1024, 1023, torch.float16, torch.float64),
        (2, 2, torch.float64, torch.float64),
    ):
        query, key = torch.zeros(1, 1, length, 1, dtype=dtype), torch.zeros(1, 1, size, 1, dtype=dtype)
        assert region_scores.dtype_of(query, key) == expected
    assert (
        region_scores.map_score_product(torch.zeros(1, 1, 2, 1), torch.zeros(1, 1, 2, 1))
        is region_scores.grouped_product
    )


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
    assert torch.equal(seen[0, 0, rows, cols], seen[0, 0, rows][:, cols])
    assert torch.equal(seen[0, 0, [30_007], 20_005], seen[0, 0, rows][7:8, 20_005])


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


@pytest.mark.parametrize("sinks", [None, random(3, 4)])
def test_every_row_is_computed_once(sinks: torch.Tensor | None, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, compute = [], region_scores.of_queries

    def spy(query: object, key: object, rule: object, batch: int, head: int, rows: slice | torch.Tensor) -> object:
        asked.append((batch, head, rows.tolist() if isinstance(rows, torch.Tensor) else (rows.start, rows.stop)))
        return compute(query, key, rule, batch, head, rows)

    monkeypatch.setattr(region_scores, "of_queries", spy)
    monkeypatch.setattr(region_scores, "BAND", 3)
    query, key = random(0, 2, 4, 7, 5), random(1, 2, 2, 11, 5)
    sums, run = RowSums(query, key, ScoreRule(0.4, sinks=sinks)), slice(0, 7)
    part = sums.of(slice(0, 1), torch.tensor([2]), slice(0, 3))
    assert asked == [(0, 2, (0, 3))]
    scores = query @ key.repeat_interleave(2, 1).mT * 0.4
    at_hand = sums.of_scores(scores[1:, :2], slice(1, 2), slice(0, 2), run)
    assert len(asked) == 1
    maxima, totals = sums.of(slice(0, 2), slice(0, 4), run)
    assert len(asked) == 1 + 2 + 3 * 3 + 2 * 3  # the rest of head 2 of text 0, its other heads, two heads of text 1
    assert all(torch.equal(a, b[:1, 2:3, :3]) for a, b in zip(part, (maxima, totals), strict=True))
    assert all(torch.equal(a, b[1:, :2]) for a, b in zip(at_hand, (maxima, totals), strict=True))
    joined = scores if sinks is None else torch.cat([scores, sinks[None, :, None, None].expand(2, 4, 7, 1)], -1)
    torch.testing.assert_close(maxima, joined.amax(-1))
    torch.testing.assert_close(maxima + totals.log(), joined.logsumexp(-1))
    sums.of(slice(0, 2), slice(0, 4), torch.tensor([6, 1]))
    assert len(asked) == 18
