"""Every figure of the map against the definition, and what must hold between them."""

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import regard
from regard.attention import reference
from regard.attention import scores as score_tiles
from regard.attention.attention_map import AttentionMap
from regard.attention.map_statistics import MapStatistics
from regard.attention.reference import Reference
from tests.attention.cases import Case, cases, check, cpu_tiles_at_any_size, naive, random, working, worst

SIZES = st.integers(1, 20)


def map_of(case: Case) -> AttentionMap:
    return regard.attend(case.query, case.key, case.value, **case.options).weights


def compare(case: Case, seen: AttentionMap, figures: MapStatistics, top: int, parts: tuple[int, int]) -> None:
    """All figures of a pass, each within twice the error of the plain computation."""
    right, dtype = case.oracle(), working(case.query.dtype)
    plain = naive(case, dtype)

    def near(name: str, given: torch.Tensor, ours: torch.Tensor, exact: torch.Tensor) -> None:
        check(name, given, ours, exact, case, dtype)

    def each(name: str, given: torch.Tensor, figure: Callable[[Reference], torch.Tensor]) -> None:
        near(name, given, figure(plain), figure(right))

    each("entropy", figures.entropy, lambda r: reference.entropy(r.weights, r.sink_share))
    each("received", figures.received, lambda r: reference.received(r.weights))
    offset = seen.offset
    if offset is None:
        assert figures.distance is None
    else:
        each("distance", figures.distance, lambda r: reference.distance(r.scores, offset))
    rows, cols = min(parts[0], seen.shape[-2]), min(parts[1], seen.shape[-1])
    each("pooled", figures.pooled, lambda r: reference.pooled(r.weights, rows, cols))
    if "sinks" in case.options:
        each("sink share", figures.sink_share, lambda r: r.sink_share)
    else:
        assert figures.sink_share is None
    count, chosen = min(top, seen.shape[-1]), figures.keys >= 0
    places = figures.keys.clamp(min=0)
    each("top", figures.values, lambda r: r.weights.sort(-1, descending=True).values[..., :count])
    each("keys of top", figures.values * chosen, lambda r: r.weights.gather(-1, places) * chosen)
    allowed = right.scores != -torch.inf
    assert torch.equal(chosen.sum(-1), allowed.sum(-1).clamp(max=count))
    assert allowed.gather(-1, places)[chosen].all()
    assert (figures.keys[~chosen] == -1).all()
    for row in figures.keys.flatten(0, -2).tolist():
        named = [key for key in row if key >= 0]
        assert len(set(named)) == len(named)


@settings(max_examples=60)
@given(cases(), st.integers(1, 9), st.tuples(SIZES, SIZES))
def test_one_pass(case: Case, top: int, parts: tuple[int, int]) -> None:
    seen = map_of(case)
    compare(case, seen, seen.statistics(top, parts), top, parts)


@settings(max_examples=40)
@given(cases((torch.float32, torch.bfloat16, torch.float16)), st.integers(1, 9), st.tuples(SIZES, SIZES))
def test_one_pass_of_the_cpu_tiles(case: Case, top: int, parts: tuple[int, int]) -> None:
    with cpu_tiles_at_any_size():
        seen = map_of(case)
        compare(case, seen, seen.statistics(top, parts), top, parts)
        weights, row = seen.dense(), seen[0, 0, 0, :1]
    plain, right = naive(case, weights.dtype), case.oracle()
    check("weights", weights, plain.weights, right.weights, case, weights.dtype)
    check("weight", row, plain.weights[0, 0, 0, :1], right.weights[0, 0, 0, :1], case, weights.dtype)


@settings(max_examples=25)
@given(cases(), st.tuples(SIZES, SIZES, st.integers(6, 90)))
def test_blocks_change_nothing(case: Case, blocks: tuple[int, int, int]) -> None:
    kept = score_tiles.TILE_ROWS, score_tiles.TILE_COLS, score_tiles.TILE_SCORES
    try:
        score_tiles.TILE_ROWS, score_tiles.TILE_COLS = blocks[:2]
        score_tiles.TILE_SCORES = {"cpu": blocks[2], "other": blocks[2]}
        seen = map_of(case)
        compare(case, seen, seen.statistics(3, (4, 5)), 3, (4, 5))
        weights = seen.dense()
    finally:
        score_tiles.TILE_ROWS, score_tiles.TILE_COLS, score_tiles.TILE_SCORES = kept
    right = case.oracle()
    check("weights", weights, naive(case, weights.dtype).weights, right.weights, case, weights.dtype)


@settings(max_examples=25)
@given(cases())
def test_one_by_one_is_the_same_as_all_at_once(case: Case) -> None:
    seen, all_at_once = map_of(case), map_of(case).statistics(3, (4, 5))
    values, keys = seen.top(3)
    assert worst(values, all_at_once.values) < 1e-6
    assert keys.shape == all_at_once.keys.shape
    for name, given_ in (("entropy", seen.entropy()), ("received", seen.received()), ("pooled", seen.pooled(4, 5))):
        right = getattr(all_at_once, name)
        assert worst(given_, right) <= 1e-5 * max(1.0, float(right.abs().max()))
    if seen.offset is not None:
        assert worst(seen.distance(), all_at_once.distance) < 1e-5
    if all_at_once.sink_share is not None:
        assert worst(seen.sink_share, all_at_once.sink_share) < 1e-6


@settings(max_examples=50)
@given(cases((torch.float64, torch.float32)))
def test_what_must_hold(case: Case) -> None:
    result = regard.attend(case.query, case.key, case.value, **case.options)
    seen, valid = result.weights, result.valid
    weights, share = seen.dense(), seen.sink_share
    assert not weights.isnan().any()
    assert weights.min() >= 0
    # A sink's share and the weights come from products of other shapes, which round a score differently.
    loose = 1e-5 + (4 * torch.finfo(weights.dtype).eps * case.largest if share.any() else 0.0)
    whole = (valid | ("sinks" in case.options)).to(weights.dtype)  # a sink takes all where there is nothing else
    assert worst(weights.sum(-1) + share, whole) < loose
    assert worst(seen.received().sum(-1), whole.sum(-1) - share.sum(-1)) < 20 * loose
    outcomes = (case.oracle().scores != -torch.inf).sum(-1) + ("sinks" in case.options)
    entropy = seen.entropy()
    assert entropy.min() >= 0
    assert (entropy <= outcomes.clamp(min=1).to(entropy.dtype).log() + 1e-5).all()


@settings(max_examples=30)
@given(st.integers(0, 999), st.sampled_from((torch.float64, torch.float32)))
def test_permuting_keys_permutes_what_they_get(seed: int, dtype: torch.dtype) -> None:
    query, key, bias = (
        random(seed, 2, 4, 5, 3, dtype=dtype),
        random(seed, 2, 2, 11, 3, dtype=dtype),
        random(seed, 11, dtype=dtype),
    )
    order = torch.randperm(11, generator=torch.Generator().manual_seed(seed))
    before = regard.attend(query, key, key, bias=bias).weights
    after = regard.attend(query, key[:, :, order], key[:, :, order], bias=bias[order]).weights
    torch.testing.assert_close(after.received(), before.received()[..., order])
    torch.testing.assert_close(after.dense(), before.dense()[..., order])
    torch.testing.assert_close(after.top(11)[0], before.top(11)[0])
    assert torch.equal(order[after.top(11)[1]], before.top(11)[1])


@pytest.mark.parametrize("tile", [1, 2, 1024])
def test_ties_go_to_the_smaller_key(tile: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score_tiles, "TILE_COLS", tile)
    monkeypatch.setattr(score_tiles, "TILE_SCORES", {"cpu": tile, "other": tile})
    scores = torch.tensor([2.0, 5.0, 2.0, 5.0, 1.0, 5.0, 2.0])
    values, keys = regard.attend(torch.ones(1, 1), scores[:, None], scores[:, None], scale=1.0).weights.top(5)
    assert keys.tolist() == [[1, 3, 5, 0, 2]]
    torch.testing.assert_close(values[0], scores.softmax(0)[keys[0]])


def test_top_beyond_what_is_allowed_is_none() -> None:
    query = random(0, 3, 2, dtype=torch.float32)
    values, keys = regard.attend(query, query, query, causal=True).weights.top(9)
    assert values.shape == keys.shape == (3, 3)
    assert (keys == -1).tolist() == [[False, True, True], [False, False, True], [False] * 3]
    assert not values[keys == -1].any()


def test_uniform_weights_in_closed_form() -> None:
    query = torch.zeros(7, 3)
    figures = regard.attend(query, query, query).weights.statistics(2, (3, 7))
    torch.testing.assert_close(figures.entropy, torch.full((7,), math.log(7)))
    torch.testing.assert_close(figures.received, torch.ones(7))
    torch.testing.assert_close(figures.pooled, torch.full((3, 7), 1 / 7))
    torch.testing.assert_close(figures.distance, torch.tensor([21, 16, 13, 12, 13, 16, 21]) / 7)
    assert figures.keys.tolist() == [[0, 1]] * 7


def test_one_hot_weights_in_closed_form() -> None:
    key = torch.eye(8)
    figures = regard.attend(1e4 * key.flip(0), key, key, scale=1.0).weights.statistics(1, (4, 4))
    assert not figures.entropy.any()
    assert torch.equal(figures.received, torch.ones(8))
    assert figures.keys[:, 0].tolist() == list(range(7, -1, -1))
    assert torch.equal(figures.pooled, torch.eye(4).flip(0) / 2)
    assert figures.distance.tolist() == [7, 5, 3, 1, 1, 3, 5, 7]


def test_what_received_and_distance_make_of_sinks_and_grouped_heads() -> None:
    """As their documentation says: one figure a query head; the sink's share is missing, and without a position."""
    query, key = random(0, 1, 6, 5, 4), random(1, 1, 2, 7, 4)
    seen = regard.attend(query, key, key, offset=2, sinks=random(2, 6), mask=torch.arange(5)[:, None] != 3).weights
    weights = seen.dense()
    assert seen.received().shape == (1, 6, 7)
    torch.testing.assert_close(seen.received(), weights.sum(-2))
    torch.testing.assert_close(seen.received().sum(-1), 5 - seen.sink_share.sum(-1))
    away = (torch.arange(5)[:, None] + 2 - torch.arange(7)).abs()
    on_keys = weights.sum(-1)
    assert (on_keys[..., [0, 1, 2, 4]] < 1).all()
    assert not on_keys[..., 3].any()
    torch.testing.assert_close(seen.distance(), (weights * away).sum(-1) / on_keys.clamp(min=1e-300))


@pytest.mark.parametrize(("length", "size"), [(0, 5), (5, 0), (0, 0)])
def test_nothing_to_look_at(length: int, size: int) -> None:
    query, key = torch.zeros(1, 2, length, 3), torch.zeros(1, 2, size, 3)
    figures = regard.attend(query, key, key, offset=0).weights.statistics(4, (3, 3))
    assert figures.values.shape == figures.keys.shape == (1, 2, length, min(4, size))
    assert figures.pooled.shape == (1, 2, min(3, length), min(3, size))
    for figure in vars(figures).values():
        assert figure is None or not figure.any()


def test_what_makes_no_sense_is_refused() -> None:
    query, key = torch.zeros(3, 2), torch.zeros(5, 2)
    seen = regard.attend(query, key, key).weights
    with pytest.raises(ValueError, match="distance: queries and keys are in different sequences"):
        seen.distance()
    with pytest.raises(ValueError, match="top: got k 0, expected 1 or more"):
        seen.top(0)
    with pytest.raises(ValueError, match="pooled: rows and cols are 0 and 4, expected"):
        seen.pooled(0, 4)
    with pytest.raises(ValueError, match="top: got k -1"):
        seen.statistics(top=-1)
    with pytest.raises(ValueError, match="pooled: rows and cols are 4 and 0"):
        seen.statistics(pooled=(4, 0))
