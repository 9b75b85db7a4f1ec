"""The statistics pass on CPUs against the definition: every mask, any block size, ties, wrong row sums."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import regard
from regard.attention import masks, reference
from regard.attention.attention_map import AttentionMap
from regard.attention.kernels import statistics as any_device
from regard.attention.kernels.cpu import forward, statistics, tiles
from regard.attention.map_statistics import MapStatistics, Statistics
from regard.attention.scores import ScoreRule
from tests.attention.cases import Case, cases, random
from tests.attention.test_map_statistics import compare

SINGLE = (torch.float32, torch.bfloat16, torch.float16)
BLOCKS = st.tuples(*[st.integers(1, 20)] * 2, st.integers(1, 8), st.integers(2, 9), st.sampled_from((1, 1 << 21)))


def all_of(seen: AttentionMap, top: int, parts: tuple[int, int], found: object = None) -> MapStatistics:
    wanted = Statistics(top, parts)
    figures = statistics.compute(seen.query, seen.key, seen.rule, wanted, seen.offset, found)
    return any_device.with_distances_beside_sinks(seen.query, seen.key, seen.rule, figures, seen.offset)


@pytest.fixture
def sweeps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows refuted their row sums in each sweep over a block."""
    counted: list[int] = []
    sweep = statistics._RowSpan._add_tiles

    def count(self: statistics._RowSpan, *arguments: object) -> int:
        counted.append(sweep(self, *arguments))
        return counted[-1]

    monkeypatch.setattr(statistics._RowSpan, "_add_tiles", count)
    return counted


@settings(max_examples=80, deadline=None)
@given(cases(SINGLE), BLOCKS, st.integers(1, 9), st.tuples(*[st.integers(1, 20)] * 2), st.booleans())
def test_every_kind_of_call_in_any_block_size(
    case: Case, blocks: tuple[int, ...], top: int, parts: tuple[int, int], given_one: bool
) -> None:
    kept = tiles.ROWS, tiles.COLS, statistics.BAND, statistics.CELLS, statistics.MAX_KEPT_SCORES
    seen = regard.attend(case.query, case.key, case.value, **case.options).weights
    try:
        tiles.ROWS, tiles.COLS, statistics.BAND, statistics.CELLS, statistics.MAX_KEPT_SCORES = blocks
        found = forward.forward(case.query, case.key, case.value, seen.rule).row_max_sum if given_one else None
        figures = all_of(seen, top, parts, found)
    finally:
        tiles.ROWS, tiles.COLS, statistics.BAND, statistics.CELLS, statistics.MAX_KEPT_SCORES = kept
    compare(case, seen, figures, top, parts)


@pytest.mark.parametrize(
    ("options", "mask"),
    [
        ({"offset": 0}, None),
        ({"causal": True}, masks.causal(600)),
        ({"window": (100, 3), "offset": 37}, masks.window(100, 3, 37)),
        ({"window": (5, None), "offset": 1290}, masks.window(5, None, 1290)),
    ],
)
@pytest.mark.parametrize("parts", [(256, 256), (7, 5), (701, 1301)])
def test_tiles_of_full_size(options: dict, mask: masks.Mask | None, parts: tuple[int, int], sweeps: list[int]) -> None:
    query, key, value = (random(n, 1, 2, size, 37, dtype=torch.float32) for n, size in ((0, 701), (1, 1301), (2, 1301)))
    case = Case(query, key, value, options)
    seen = AttentionMap(query, key, ScoreRule(37**-0.5, mask=mask), offset=options.get("offset", 600))
    figures = all_of(seen, 8, parts, forward.forward(query, key, value, seen.rule).row_max_sum)
    assert sum(sweeps) == 0, "the forward's own row sums were refuted"
    right = case.oracle()
    near(figures.entropy, reference.entropy(right.weights, right.sink_share))
    near(figures.received, reference.received(right.weights))
    near(figures.distance, reference.distance(right.scores, seen.offset or 0))
    cells = torch.zeros(1, 2, *(min(n, size) for n, size in zip(parts, (701, 1301), strict=True)), dtype=torch.float64)
    for at, length, axis in ((cells.shape[2], 701, 2), (cells.shape[3], 1301, 3)):
        edges = torch.arange(at + 1) * length // at
        pieces = (right.weights if axis == 2 else cells).split(edges.diff().tolist(), axis)
        cells = torch.stack([piece.mean(axis) for piece in pieces], axis)
    near(figures.pooled, cells)
    order = right.scores.sort(dim=-1, descending=True, stable=True)
    near(figures.values, right.weights.gather(-1, order.indices[..., :8]))


def near(ours: Tensor | None, exact: Tensor) -> None:
    assert ours is not None
    torch.testing.assert_close(ours.double(), exact, rtol=1e-6, atol=3e-6)


@pytest.mark.parametrize("strength", [1.0, 30.0, 3000.0])
@pytest.mark.parametrize("sinks", [None, torch.tensor([2.0, -3.0])])
def test_the_forward_s_row_sums_stand_at_any_score(strength: float, sinks: Tensor | None, sweeps: list[int]) -> None:
    query, key = (random(n, 1, 2, 1200, 16, dtype=torch.float32) * strength**0.5 for n in range(2))
    rule = ScoreRule(1.0, sinks=sinks)
    found = forward.forward(query, key, key, rule)
    given_one = statistics.compute(query, key, rule, Statistics(3, (5, 5)), 0, found.row_max_sum)
    assert sum(sweeps) == 0
    own = statistics.compute(query, key, rule, Statistics(3, (5, 5)), 0)
    for name, ours in vars(own).items():
        if ours is not None:
            torch.testing.assert_close(getattr(given_one, name), ours, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("wrong", ["total", "top", "empty", "nan", "moved"])
def test_wrong_row_sums_are_never_believed(wrong: str) -> None:
    query, key = (random(n, 1, 2, 300, 16, dtype=torch.float32) for n in range(2))
    found = forward.forward(query, key, key, ScoreRule(0.25))
    top, total = (each.clone() for each in found.row_max_sum)
    if wrong == "total":
        total[0, 1, 7] *= 1.001
    elif wrong == "top":
        top[0, 1, 7] -= 60
        total[0, 1, 7] *= torch.e**60
        total[0, 1, 7] *= 0.9
    elif wrong == "empty":
        top[0, 1, 7], total[0, 1, 7] = -torch.inf, 0.0
    elif wrong == "nan":
        total[0, 1, 7] = torch.nan
    else:
        query = query * 1.1  # as where somebody writes into the tensor that the map holds
    wanted = Statistics(3, (5, 5))
    got, right = statistics.compute(query, key, ScoreRule(0.25), wanted, 0, (top, total)), None
    right = statistics.compute(query, key, ScoreRule(0.25), wanted, 0)
    for name, ours in vars(got).items():
        assert (ours is None) == (getattr(right, name) is None)
        if ours is not None:
            torch.testing.assert_close(ours, getattr(right, name), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("levels", [1, 2, 5, 40])
def test_ties_go_to_the_smaller_key(levels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "COLS", 100)
    key = torch.randint(levels, (1, 1, 331, 1), generator=torch.Generator().manual_seed(levels)).float()
    query = torch.tensor([1.0, -1.0, 0.0]).view(1, 1, 3, 1)
    rule = ScoreRule(1.0, mask=masks.function(lambda i, j: (i + j) % 7 != 0))
    figures = statistics.compute(query, key, rule, Statistics.only(top=20), 0)
    exact = reference.attention(query, key, key, mask=rule.mask.materialise(1, 1, 3, 331, key.device), scale=1.0)
    assert torch.equal(figures.keys, reference.top(exact.scores, 20))


def test_repeats_bitwise() -> None:
    query, key = (random(n, 1, 3, 1100, 16, dtype=torch.float32) for n in range(2))
    wanted = Statistics(5, (64, 64))
    first, again = (statistics.compute(query, key, ScoreRule(0.25, mask=masks.causal()), wanted, 0) for _ in range(2))
    for name in ("values", "keys", "entropy", "received", "distance", "pooled"):
        assert torch.equal(getattr(first, name), getattr(again, name))


def test_the_map_uses_it(sweeps: list[int]) -> None:
    query, key = (random(n, 1, 2, 1024, 8, dtype=torch.float32) for n in range(2))
    rule = ScoreRule(0.3)
    right = any_device.blockwise(query, key, rule, Statistics(), 0)
    figures = AttentionMap(query, key, rule, offset=0).statistics()
    assert sweeps
    torch.testing.assert_close(figures.entropy, right.entropy)
    torch.testing.assert_close(figures.pooled, right.pooled)
    assert torch.equal(figures.keys, right.keys)
    fresh = AttentionMap(query, key, rule, offset=0)
    torch.testing.assert_close(fresh[0, 1, :, 3:5], fresh.dense()[0, 1, :, 3:5])
