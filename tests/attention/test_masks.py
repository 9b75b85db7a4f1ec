"""Mask specifications: what each allows, alone and joined, whole and tile by tile."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import regard
from regard.attention import masks
from regard.attention.ablation import EdgeAblation, ablating
from regard.attention.masks import Edges, Mask
from tests.attention.ablation_cases import AXES, Told, attend_cut, cut_cases, dense
from tests.attention.cases import Case, random

CPU = torch.device("cpu")
SIZES = st.sampled_from((1, 2, 5, 7, 11))
SIDE = st.none() | st.integers(0, 6)


def whole(mask: Mask, length: int, size: int, batch: int = 1, heads: int = 1) -> torch.Tensor:
    return mask.materialise(batch, heads, length, size, CPU)


def test_causal() -> None:
    assert whole(masks.causal(), 3, 4)[0, 0].int().tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0]]
    assert whole(masks.causal(1), 2, 4)[0, 0].int().tolist() == [[1, 1, 0, 0], [1, 1, 1, 0]]


def test_window_holds_both_its_ends() -> None:
    assert whole(masks.window(1, 0), 3, 3)[0, 0].int().tolist() == [[1, 0, 0], [1, 1, 0], [0, 1, 1]]
    assert whole(masks.window(0, 1, offset=1), 2, 4)[0, 0].int().tolist() == [[0, 1, 1, 0], [0, 0, 1, 1]]
    assert whole(masks.window(None, None), 2, 3).all()


def test_padding_and_dense_broadcast() -> None:
    keys = torch.tensor([[True, False], [True, True]])
    assert whole(masks.padding(keys), 3, 2, batch=2).tolist() == [[[[True, False]] * 3], [[[True, True]] * 3]]
    column = torch.tensor([[True], [False]])
    assert whole(masks.dense(column), 2, 3)[0, 0].int().tolist() == [[1, 1, 1], [0, 0, 0]]


@settings(max_examples=100)
@given(st.integers(0, 999), SIZES, SIZES, SIDE, SIDE, st.integers(-4, 4))
def test_both_and_tiles(seed: int, length: int, size: int, left: int | None, right: int | None, offset: int) -> None:
    parts = [
        masks.window(left, right, offset),
        masks.causal(offset + 1),
        masks.padding(random(seed, 2, size) > -0.5),
        masks.dense(random(seed + 1, 3, 1, size) > -0.5),
        masks.function(lambda i, j: (i * 3 + j) % 4 != 0),
        masks.padding(random(seed + 2, 1, size) > -0.5),
    ]
    joined = Mask()
    right_answer = torch.ones(2, 3, length, size, dtype=torch.bool)
    for mask in parts:
        joined = joined & mask
        right_answer = right_answer & whole(mask, length, size, 2, 3)
        assert torch.equal(whole(joined, length, size, 2, 3).expand(2, 3, -1, -1), right_answer)
    rows, cols = slice(length // 2, length), torch.arange(size).flip(0)[: size // 2 + 1]
    part = joined.tile(slice(1, 2), torch.tensor([2, 0]), rows, cols, CPU)
    expected = right_answer[1:2, [2, 0]][:, :, rows][..., cols]
    assert torch.equal(part.expand_as(expected), expected)


@settings(max_examples=100)
@given(SIZES, SIZES, SIDE, SIDE, st.integers(-9, 9))
def test_what_never_binds_is_left_out(length: int, size: int, left: int | None, right: int | None, offset: int) -> None:
    mask = masks.window(left, right, offset)
    before, simple = whole(mask, length, size), mask.simplified(length, size)
    if simple is None:
        assert before.all()
    else:
        assert torch.equal(whole(simple, length, size), before)
        assert not before.all() or simple is None
    for start in range(length):
        first, last = mask.key_range(start, length, size)
        assert not before[0, 0, start:, :first].any()
        assert not before[0, 0, start:, last:].any()
        seen = before[0, 0, start:].any(0).nonzero()
        assert (first, last) == ((int(seen[0]), int(seen[-1]) + 1) if len(seen) else (first, first)) or not len(seen)


def test_a_mask_that_says_nothing() -> None:
    assert Mask().only_band
    assert Mask().simplified(3, 4) is None
    assert Mask().tile(slice(0, 1), slice(0, 1), slice(0, 3), slice(0, 4), CPU) is None
    assert whole(Mask(), 3, 4).shape == (1, 1, 3, 4)
    assert whole(Mask(), 3, 4).all()


def test_functions_are_never_shown_more_than_they_are_asked_for() -> None:
    shapes = []

    def predicate(i: torch.Tensor, j: torch.Tensor) -> torch.Tensor:
        shapes.append((tuple(i.shape), tuple(j.shape)))
        return j <= i

    masks.function(predicate).tile(slice(0, 1), slice(0, 1), slice(100_000, 100_003), slice(5, 7), CPU)
    assert shapes == [((3, 1), (1, 2))]


def test_what_makes_no_mask() -> None:
    with pytest.raises(ValueError, match="window: right is -2, expected 0 or more, or None"):
        masks.window(1, -2)
    with pytest.raises(TypeError, match="mask function: returned torch.int64"):
        whole(masks.function(lambda i, j: i - j), 2, 2)


def test_a_function_may_answer_for_all_at_once() -> None:
    assert whole(masks.function(lambda i, j: True), 2, 3).all()
    assert not whole(masks.function(lambda i, j: False), 2, 3).any()
    assert whole(masks.function(lambda i, j: j > 0), 2, 3)[0, 0].tolist() == [[False, True, True]] * 2
    with pytest.raises(TypeError, match="mask function: returned NoneType"):
        whole(masks.function(lambda i, j: None), 2, 3)
    needed = r"returned shape \(2,\), expected a shape that broadcasts to \(2, 3\)"
    with pytest.raises(ValueError, match=needed):
        whole(masks.function(lambda i, j: torch.ones(2, dtype=torch.bool)), 2, 3)


@given(
    st.sampled_from((1, 3)), st.sampled_from((1, 2)), st.sampled_from((1, 7)), st.sampled_from((1, 11)),
    st.integers(0, 2), st.integers(0, 4), st.integers(0, 6), SIDE, SIDE, st.integers(0, 99),
)  # fmt: skip
@settings(max_examples=60)
def test_a_crop_is_that_part_of_the_whole(
    batch: int, heads: int, length: int, size: int, text: int, row: int, col: int, left: int, right: int, seed: int
) -> None:
    allowed = random(seed, batch, heads, length, size) > 0
    mask = masks.dense(allowed) & masks.window(left, right, 2) & masks.function(lambda i, j: (2 * i + 3 * j) % 5 > 0)
    mask &= masks.padding(random(seed + 1, 3, 11) > -1)
    rows, cols = slice(row, row + 3), slice(col, col + 5)
    part = mask.crop(text, rows, cols)
    assert torch.equal(whole(part, 3, 5, 1, 2), whole(mask, 7, 11, 3, 2)[text : text + 1, :, rows, cols])


def test_masks_are_equal_only_to_themselves() -> None:
    assert masks.causal() != masks.causal()  # tensors in them have no one answer to ==


def test_a_mask_of_tensors_goes_to_another_device_with_them() -> None:
    keys, allowed = torch.tensor([[True, False, True]]), torch.rand(1, 1, 2, 3) > 0.5
    moved = (masks.padding(keys) & masks.dense(allowed)).to(torch.device("meta"))
    assert moved.keys is not None
    assert (moved.keys.device.type, moved.dense[0].device.type) == ("meta", "meta")
    assert masks.causal().to(torch.device("meta")).keys is None


def test_one_row_of_padding_is_every_texts() -> None:
    mask = masks.padding(torch.tensor([[True, False, True, True]]))
    of_second = mask.crop(1, slice(0, 4), slice(0, 4))
    assert of_second.keys is not None
    assert of_second.keys.tolist() == [[True, False, True, True]]


def test_a_band_that_just_binds_is_kept() -> None:
    """High one below the last key leaves one pair out; at the last key it leaves none out."""
    for size in (4, 5, 6, 7):
        simplified = Mask(high=size - 2).simplified(1, size)
        assert simplified is not None
        assert simplified.high == size - 2
        assert Mask(high=size - 1).simplified(1, size) is None


@settings(max_examples=40)
@given(cut_cases(dtypes=(torch.float64,)), st.data())
def test_edges_of_any_region(drawn: tuple[Case, Told], data: st.DataObject) -> None:
    case, told = drawn
    left = dense(case, told)
    shape = tuple(left.shape)
    spot = []
    for size in shape:
        run = sorted(data.draw(st.tuples(st.integers(0, size), st.integers(0, size))))
        some = data.draw(st.lists(st.integers(0, size - 1), max_size=4))
        spot.append(data.draw(st.sampled_from((slice(None), slice(*run), torch.tensor(some).long()))))
    for cut in told:
        axes = (None if cut[axis] is None else tuple(sorted(set(cut[axis]))) for axis in AXES)
        edges = Edges(shape, *axes)
        expected = ~dense(case, [cut])[spot[0]][:, spot[1]][:, :, spot[2]][..., spot[3]]
        found = edges.tile(*spot, torch.device("cpu"))
        assert torch.equal(expected, torch.zeros_like(expected) if found is None else found.expand_as(expected))


@settings(max_examples=40)
@given(cut_cases(dtypes=(torch.float64,)), st.data())
def test_a_crop_keeps_the_edges_of_its_text(drawn: tuple[Case, Told], data: st.DataObject) -> None:
    case, told = drawn
    case.plain["causal"] = False
    seen = attend_cut(case, told).weights
    text = data.draw(st.integers(0, len(case.query) - 1))
    first, last = sorted(data.draw(st.tuples(*[st.integers(0, case.query.shape[2])] * 2)))
    begin, end = sorted(data.draw(st.tuples(*[st.integers(0, case.key.shape[2])] * 2)))
    begin, end = (begin, end) if begin < end else (0, case.key.shape[2])
    part = seen.crop(text, slice(first, last), slice(begin, end))
    expected = seen.scores[text, :, first:last, begin:end]
    assert torch.equal(part.scores[...] == -torch.inf, expected == -torch.inf)


def test_a_crop_leaves_other_texts_edges_behind() -> None:
    query = random(0, 2, 3, 7, 4)
    with ablating([EdgeAblation(batch=[1], queries=[2, 4], keys=[3]), EdgeAblation(heads=[2], queries=[6])]):
        seen = regard.attend(query, query, query).weights
    run = slice(1, 6)
    assert seen.crop(0, run, run).rule.mask is None
    assert seen.crop(1, run, run).rule.mask.removed == (Edges((1, 3, 5, 5), None, None, (1, 3), (2,)),)


def test_nothing_of_size_n_by_n_is_kept_or_written(tmp_path: Any) -> None:
    query = random(0, 1, 2, 2048, 2, dtype=torch.float32)
    with ablating([EdgeAblation(heads=[1], queries=[2000], keys=[5, 6])]):
        seen = regard.attend(query, query, query, causal=True).weights
    assert seen.rule.mask.removed == (Edges((1, 2, 2048, 2048), None, (1,), (2000,), (5, 6)),)
    assert not seen.rule.mask.dense
    seen.save(tmp_path / "map")
    assert (tmp_path / "map").stat().st_size < 100_000
    again = regard.AttentionMap.load(tmp_path / "map")
    assert (again[0, :, 2000, 4:8] == 0).tolist() == [[False] * 4, [False, True, True, False]]


def test_a_map_of_another_shape_refuses_edges() -> None:
    x = random(0, 3, 2)
    with ablating([EdgeAblation(keys=[0])]):
        mask = regard.attend(x, x, x).weights.rule.mask
    y = random(0, 4, 2)
    with pytest.raises(ValueError, match=r"mask: its edges are for a call of shape \(1, 1, 3, 3\), not \(1, 1, 4, 4\)"):
        regard.attend(y, y, y, mask=mask)
