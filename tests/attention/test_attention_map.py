"""Regions of the matrix: any index of numpy's, the scores before the softmax, dense, crop and to."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import regard
from regard.attention import attention_map, region_scores
from regard.attention import scores as score_tiles
from regard.attention.attention_map import AttentionMap
from tests.attention.cases import Case, as_from_a_file, cases, check, naive, random, worst


@settings(max_examples=60)
@given(cases())
def test_what_was_packed_is_the_same_map(case: Case) -> None:
    seen = regard.attend(case.query, case.key, case.value, **case.options).weights
    again = as_from_a_file(seen)
    assert (again.shape, again.dtype, again.offset) == (seen.shape, seen.dtype, seen.offset)
    rounding = 1e-6 + 8 * torch.finfo(seen.dtype).eps * case.largest  # another layout may be summed in another order
    assert worst(again.scores[...], seen.scores[...]) <= rounding
    assert worst(again.dense(), seen.dense()) <= rounding


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_a_file_holds_a_map(tmp_path: Path, dtype: torch.dtype) -> None:
    query = random(0, 2, 5, 3, dtype=dtype)
    mask = regard.masks.padding(torch.tensor([[True, True, False, True, True]])) & regard.masks.function(
        lambda i, j: (i + j) % 3 != 0
    )
    seen = regard.attend(query, query, query, mask=mask, causal=True, softcap=3.0, sinks=torch.zeros(2)).weights
    file = tmp_path / "map.safetensors"
    seen.save(file)
    again = regard.AttentionMap.load(file)
    torch.testing.assert_close(again.dense(), seen.dense(), atol=1e-6, rtol=0)
    torch.testing.assert_close(again.distance(), seen.distance(), atol=1e-5, rtol=0)
    assert again.query.dtype == dtype
    assert again.shape == seen.shape == (2, 5, 5)
    assert list(tmp_path.iterdir()) == [file]


def test_nothing_of_size_n_by_n_is_written(tmp_path: Path) -> None:
    query = random(0, 1, 1, 1024, 2, dtype=torch.float32)
    bias = torch.zeros(1).expand(1, 1, 1024, 1024)
    regard.attend(query, query, query, causal=True, bias=bias).weights.save(tmp_path / "map")
    assert (tmp_path / "map").stat().st_size < 60_000


def test_a_function_over_too_much_is_refused_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention_map, "FUNCTION_LIMIT", 24)
    query = random(0, 5, 2)
    mask = regard.masks.function(lambda i, j: (i + j) % 2 == 0)
    seen = regard.attend(query, query, query, mask=mask).weights
    with pytest.raises(ValueError, match=r"mask: a function of positions over 5 × 5 scores can't be saved"):
        seen.save(tmp_path / "map")
    assert not list(tmp_path.iterdir())


AXES = (2, 6, 7, 11)  # B, H, L, S


def some_map(**options: Any) -> AttentionMap:
    query, key = random(0, 2, 6, 7, 5), random(1, 2, 3, 11, 5)
    return regard.attend(query, key, key, causal=True, bias=random(2, 6, 1, 11), **options).weights


def part(size: int) -> st.SearchStrategy[Any]:
    """What one axis may be indexed with."""
    place = st.integers(-size, size - 1)
    bound = st.none() | st.integers(-size - 2, size + 2)
    slices = st.builds(slice, bound, bound, st.none() | st.integers(1, 4))
    lists = st.lists(place, min_size=1, max_size=5)
    bools = st.lists(st.booleans(), min_size=size, max_size=size)
    vectors = st.one_of(
        lists, lists.map(np.array), lists.map(torch.tensor), bools, bools.map(np.array), bools.map(torch.tensor)
    )
    return st.one_of(place, place.map(np.int64), slices, vectors)


@st.composite
def indices(draw: Any) -> tuple[Any, ...]:
    """Tuples of at most four parts with '...' and None anywhere; at most one vector, so that broadcasting is plain."""
    count = draw(st.integers(0, 4))
    front = draw(st.integers(0, count))
    axes = [*AXES[:front], *AXES[4 - (count - front) :][: count - front]]
    parts: list[Any] = [draw(part(size)) for size in axes]
    if front < count or draw(st.booleans()):
        parts.insert(front, Ellipsis)
    for _ in range(draw(st.integers(0, 2))):
        parts.insert(draw(st.integers(0, len(parts))), None)
    return tuple(parts)


def as_torch(index: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same index for a tensor, which takes numpy's vectors only as its own."""
    return tuple(torch.as_tensor(np.asarray(p)) if isinstance(p, (list, np.ndarray)) else p for p in index)


@settings(max_examples=100)
@given(indices(), st.booleans())
def test_any_index_is_that_of_the_dense_matrix(index: tuple[Any, ...], scores: bool) -> None:
    seen = some_map()
    whole = seen.scores[...] if scores else seen.dense()
    try:
        right = whole[as_torch(index)]
    except IndexError:  # vectors that do not broadcast
        with pytest.raises(IndexError):
            seen[index]
        return
    got = (seen.scores if scores else seen)[index]
    assert got.shape == right.shape
    assert worst(got, right) < 1e-12


@pytest.mark.parametrize("index", [3, (0, 1), (slice(None), 2), (..., 4), (0, 2, slice(1, 3), [0, 5]), None])
@pytest.mark.parametrize("sinks", [False, True])
def test_a_region_alone_is_that_of_the_whole(index: Any, sinks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    index = 1 if index == 3 else index
    whole = some_map(sinks=random(5, 6) if sinks else None).dense()
    monkeypatch.setattr(score_tiles, "TILE_SCORES", {"cpu": 8, "other": 8})
    monkeypatch.setattr(score_tiles, "TILE_COLS", 3)
    torch.testing.assert_close(some_map(sinks=random(5, 6) if sinks else None)[index], whole[index], rtol=0, atol=1e-12)


@settings(max_examples=60)
@given(cases(), st.data())
def test_dense_scores_and_regions_are_right(case: Case, data: st.DataObject) -> None:
    seen = regard.attend(case.query, case.key, case.value, **case.options).weights
    right, plain = case.oracle(), naive(case, seen.dtype)
    check("scores", seen.scores[...], plain.scores, right.scores, case, seen.dtype)
    row, column = data.draw(st.integers(0, seen.shape[2] - 1)), data.draw(st.integers(0, seen.shape[3] - 1))
    for index in (
        (...,),
        (slice(None), 0, row),
        (0, slice(None), slice(None), column),
        (0, 0, [row], slice(0, column)),
    ):
        check(f"weights at {index}", seen[index], plain.weights[index], right.weights[index], case, seen.dtype)


@settings(max_examples=60)
@given(st.booleans().flatmap(lambda empty: cases(empty=empty)), st.booleans())
def test_dense_in_float32_is_as_exact_as_eager_attention(case: Case, in_tiles: bool) -> None:
    seen = regard.attend(case.query, case.key, case.value, **case.options).weights
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(region_scores, "CACHED", 8 if in_tiles else region_scores.CACHED)
        weights = seen.dense(dtype=torch.float32)
    assert weights.dtype == torch.float32
    check("weights", weights, naive(case, torch.float32).weights, case.oracle().weights, case, torch.float32)


def test_dense_of_given_weights_and_of_other_dtypes() -> None:
    weights = random(0, 2, 3, 5)
    given = AttentionMap.of_weights(weights).dense(dtype=torch.float32)
    assert torch.equal(given, weights.float())
    for options in ({"dtype": torch.float16}, {"dtype": torch.float32, "differentiable": True}):
        with pytest.raises(ValueError, match=r"dense: dtype=torch.float\d\d: use torch.float32, without"):
            some_map().dense(**options)


@pytest.mark.parametrize(
    ("index", "needed"),
    [
        ((0, 0, 0, 0, 0), "an attention map of 4 axes (2, 6, 7, 11) got 5 indices"),
        ((..., ...), "an index may hold one '...' only"),
        (2, "index 2 is out of bounds for axis 0 with size 2"),
        ((0, 0, -8), "index -8 is out of bounds for axis 2 with size 7"),
        ((..., [0, 11]), "index 11 is out of bounds for axis 3 with size 11"),
        ((..., [True, False]), "along axis 3; size of axis is 11 but size of corresponding boolean axis is 2"),
        ("a", "only integers, slices"),
        (1.0, "only integers, slices"),
        (True, "axis 0: got True: expected integers, slices"),
        ((0, torch.tensor(True), 1), "axis 1: got tensor(True): expected integers, slices"),
        ((0, np.array(False), 1), "axis 1: got array(False): expected integers, slices"),
        ((0, 1.5), "axis 1: got 1.5: only integers, slices"),
        ((0, {1}), "axis 1: got {1}: only integers, slices"),
        ((0, 10**30), "axis 1: got 1000000000000000000000000000000: "),
        ((0, [[0], [1, 2]]), "axis 1: got [[0], [1, 2]]: "),
        ((0, torch.ones(1, dtype=torch.bfloat16)), "axis 1: got tensor("),
        ((0, torch.ones(1, requires_grad=True)), "axis 1: got tensor("),
        ((0, [1.5]), "only integers, slices"),
        ((0, ["a"]), "only integers, slices"),
        ((0, torch.tensor([1.5])), "arrays used as indices must be of integer"),
    ],
)
def test_an_index_that_makes_no_sense(index: Any, needed: str) -> None:
    with pytest.raises(IndexError, match=re.escape(needed)):
        some_map()[index]
    with pytest.raises(IndexError, match=re.escape(needed)):
        some_map().scores[index]


def test_slices_with_a_negative_step_run_backwards() -> None:
    seen = some_map()
    torch.testing.assert_close(seen[0, 0, ::-1, 8:2:-2], seen.dense()[0, 0].flip(0)[:, [8, 6, 4]])


def test_matrices_of_positions() -> None:
    seen = some_map()
    rows, columns = torch.tensor([[0, 3], [6, 2]]), torch.tensor([[10, 1], [0, 0]])
    torch.testing.assert_close(seen[0, 1, rows, columns], seen.dense()[0, 1][rows, columns])
    empty = seen[0, 1, []]
    assert empty.shape == (0, 11)


@pytest.mark.parametrize("ndim", [2, 3])
def test_maps_of_fewer_axes(ndim: int) -> None:
    query = random(0, *(3, 5, 4)[3 - ndim :])
    seen = regard.attend(query, query, query, causal=True).weights
    assert seen.shape == (*query.shape[:-1], 5)
    assert len(seen) == seen.shape[0]
    assert seen.dense().shape == seen.shape == seen.scores.shape
    assert seen[0].shape == seen.shape[1:]
    assert seen.entropy().shape == seen.sink_share.shape == query.shape[:-1]
    assert seen.row_max_sum()[0].shape == query.shape[:-1]
    assert seen.top(2)[1].shape == (*query.shape[:-1], 2)
    assert not seen.sink_share.any()
    assert repr(seen) == f"AttentionMap(shape={tuple(seen.shape)}, dtype=torch.float64, device='cpu')"
    assert repr(seen.scores) == f"ScoreView(shape={tuple(seen.shape)}): index it for scores, as in scores[:]"


@pytest.mark.parametrize("sinks", [None, torch.full((6,), -1e6)], ids=["", "sinks"])
@pytest.mark.parametrize("groups", [6, 2, 1])
def test_rows_sum_to_one_at_scores_of_ten_thousand(groups: int, sinks: torch.Tensor | None) -> None:
    query, key = 100 * random(0, 50, 6, 3, 11), 100 * random(1, 50, groups, 7, 11)
    seen = regard.attend(query.float(), key.float(), key.float(), sinks=sinks).weights
    seen.sink_share  # the row sums are known from here on, from products of another shape  # noqa: B018
    assert worst(seen[...].sum(-1), torch.ones(50, 6, 3)) < 1e-5
    assert worst(seen[1, [0, 4], 1:3].sum(-1), torch.ones(2, 2)) < 1e-5


def test_autocast_does_not_reach_the_weights() -> None:
    """Inside autocast, matrix products of float32 tensors would be computed in bfloat16."""
    query, key = torch.randn(2, 3, 17, 8), torch.randn(2, 3, 19, 8)
    expected = regard.attend(query, key, key).weights.dense()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        weights = regard.attend(query, key, key, softcap=1e9).weights
        torch.testing.assert_close(weights.dense(), expected, atol=1e-6, rtol=0)
        torch.testing.assert_close(weights[:, :, 3:5, 2:9], expected[:, :, 3:5, 2:9], atol=1e-6, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_a_map_becomes_an_array_up_to_a_size(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    query = random(0, 2, 3, 5, 4).to(dtype)
    seen = regard.attend(query, query, query).weights
    assert torch.equal(torch.as_tensor(seen), seen.dense())
    assert torch.equal(torch.from_numpy(np.asarray(seen)), seen.dense())
    assert np.asarray(seen, dtype=np.float16).dtype == np.float16
    monkeypatch.setattr(attention_map, "MAX_ARRAY", 149)
    for convert in (np.asarray, torch.as_tensor):
        with pytest.raises(regard.RegardError, match="150 weights as one array: ask for a smaller region"):
            convert(seen)


@settings(max_examples=40)
@given(st.integers(0, 1), st.tuples(st.integers(0, 4), st.integers(5, 13)), st.booleans(), st.booleans())
def test_crop_is_the_call_of_the_text_alone(text: int, span: tuple[int, int], causal: bool, sided: bool) -> None:
    start, stop = span
    keys = torch.zeros(2, 13, dtype=torch.bool)
    keys[text, start:stop] = True
    keys[1 - text, 0] = True
    mask = regard.masks.padding(keys) & regard.masks.function(lambda i, j: (i + 2 * j) % 5 != 1)
    mask = mask & regard.masks.dense(random(6, 2, 1, 13, 13) > -1.5)
    query, key, bias, sinks = random(0, 2, 4, 13, 5), random(1, 2, 2, 13, 5), random(2, 4, 13, 13), random(3, 4)
    options: dict[str, Any] = {"causal": causal, "window": (4, 3) if sided else None, "sinks": sinks, "bias": bias}
    whole = regard.attend(query, key, key, mask=mask, **options).weights
    one = whole.crop(text, slice(start, stop), slice(start, stop))
    inside = (slice(start, stop), slice(start, stop))
    assert one.shape == (4, stop - start, stop - start)
    torch.testing.assert_close(one.dense(), whole.dense()[text, :, *inside], rtol=0, atol=1e-12)
    torch.testing.assert_close(one.entropy(), whole.entropy()[text, :, start:stop])
    torch.testing.assert_close(one.received(), whole[text, :, *inside].sum(-2))
    torch.testing.assert_close(one.distance(), whole.distance()[text, :, start:stop])
    torch.testing.assert_close(one.crop(0, slice(1, 3), slice(None))[...], one[:, 1:3], rtol=0, atol=1e-12)


def test_to_another_dtype_and_device() -> None:
    seen = some_map(mask=regard.masks.padding(torch.arange(11)[None].expand(2, 11) != 4), sinks=random(4, 6))
    single = seen.to(torch.float32)
    assert single.dtype == torch.float32
    torch.testing.assert_close(single.dense().double(), seen.dense(), rtol=0, atol=1e-6)
    half = seen.to(torch.bfloat16)
    assert (half.query.dtype, half.dtype) == (torch.bfloat16, torch.float32)
    assert worst(half.dense(), seen.dense()) < 0.05
    assert seen.to("cpu").device == torch.device("cpu")
    elsewhere = seen.to("meta")
    assert elsewhere.device.type == elsewhere.rule.bias.device.type == elsewhere.rule.mask.keys.device.type == "meta"
    assert seen.to(torch.float64).distance().equal(seen.distance())


@pytest.mark.parametrize(
    ("call", "error", "needed"),
    [
        (lambda m: m.to(3), TypeError, "to: got 3, expected a device such as 'cpu' or a dtype"),
        (lambda m: m.to(None), TypeError, "to: got None, expected a device"),
        (lambda m: m.to(torch.ones(1, dtype=torch.int8)), TypeError, "expected a device"),
        (lambda m: m.to("abc"), RuntimeError, "device string: abc"),
        (lambda m: m.to(torch.int64), TypeError, "to: got torch.int64, expected float64"),
    ],
)
@pytest.mark.usefixtures("no_checks_of_annotations")
def test_what_cannot_be_moved(call: Any, error: type[Exception], needed: str) -> None:
    seen = some_map()
    with pytest.raises(error, match=re.escape(needed)):
        call(seen)


def test_crop_counts_texts_from_the_end_too() -> None:
    seen = some_map()
    run = slice(0, 7), slice(0, 11)
    assert torch.equal(seen.crop(-1, *run)[...], seen.crop(1, *run)[...])


@pytest.mark.parametrize("rows", [slice(None, None, -1), slice(30, 5, -3), [39, 0, 7, 7]])
@pytest.mark.parametrize("options", [{"causal": True}, {"window": (4, 2)}, {"causal": True, "offset": -3}])
def test_rows_may_come_in_any_order(rows: Any, options: dict[str, Any]) -> None:
    weights = regard.attend(random(1, 2, 40, 8), random(2, 2, 40, 8), random(3, 2, 40, 8), **options).weights
    whole = weights.dense()
    index = torch.arange(40)[torch.as_tensor(range(40)[rows])] if isinstance(rows, slice) else torch.tensor(rows)
    assert worst(weights[:, rows], whole[:, index]) < 1e-6
    assert worst(weights[:, :, 2:4], whole[:, :, 2:4]) < 1e-6  # what was kept of these rows is theirs
