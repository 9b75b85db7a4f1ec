"""Sets of edges: any region of them, cropped, and as part of a map that is saved."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import regard
from regard.attention.ablation import EdgeAblation, ablating
from regard.attention.edges import Edges
from tests.attention.ablation_cases import AXES, Told, attend_cut, cut_cases, dense
from tests.attention.cases import Case, random


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
    with pytest.raises(
        ValueError, match=r"mask: its edges are of a call of shape \(1, 1, 3, 3\), needs \(1, 1, 4, 4\)"
    ):
        regard.attend(y, y, y, mask=mask)
