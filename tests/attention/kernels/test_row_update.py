"""A call that lost edges gives what it gives with a dense mask, and only its rows are computed again."""

import contextlib
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import regard
from regard.attention import reference
from regard.attention.ablation import EdgeAblation, HeadAblation, ablating
from regard.attention.kernels import dispatch, row_update
from regard.attention.masks import Edges
from regard.attention.scores import ScoreRule, score_tile, softmax_weights
from tests.attention.ablation_cases import Told, compare, cut_cases
from tests.attention.cases import Case, cpu_tiles_at_any_size, random


@settings(max_examples=60)
@given(cut_cases())
def test_an_edge_cut_is_a_dense_mask(drawn: tuple[Case, Told]) -> None:
    compare(*drawn)


@settings(max_examples=40)
@given(cut_cases(dtypes=(torch.float32, torch.bfloat16)))
def test_an_edge_cut_is_a_dense_mask_on_cpu_tiles(drawn: tuple[Case, Told]) -> None:
    with cpu_tiles_at_any_size():
        compare(*drawn)


@settings(max_examples=40)
@given(cut_cases(dtypes=(torch.float64, torch.float32)), st.sampled_from((0.0, 1.0)))
def test_few_rows_and_one_pass_give_the_same(drawn: tuple[Case, Told], share: float) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_update, "MAX_ROW_FRACTION", share)
        compare(*drawn)


@pytest.mark.parametrize("tiles", [False, True])
@pytest.mark.parametrize("heads", [[1], [1, 2], [0, 1, 2, 5], None])
def test_the_rows_keep_their_heads_sinks_bias_and_mask(tiles: bool, heads: list[int] | None) -> None:
    query, key, value = (random(n, 3, h, 53, 4, dtype=torch.float32) for n, h in ((0, 6), (1, 2), (2, 2)))
    options = {"bias": random(3, 3, 6, 53, 53, dtype=torch.float32), "sinks": random(4, 6).float(), "causal": True}
    case = Case(query, key, value, options | {"softcap": 5.0})
    with cpu_tiles_at_any_size() if tiles else contextlib.nullcontext():
        compare(case, [{"batch": [0, 2], "heads": heads, "queries": [7, 50], "keys": [0, 3, 6]}])


def test_rows_and_heads_that_lost_nothing_are_bit_for_bit_the_same() -> None:
    query, key, value = (random(n, 2, 6, 101, 8, dtype=torch.float32) for n in range(3))
    plain = regard.attend(query, key, value)
    with ablating([EdgeAblation(batch=[1], heads=[2, 3], queries=[50, 7], keys=[3])]):
        result = regard.attend(query, key, value)
    changed = (result.output != plain.output).any(-1)
    assert changed.nonzero().tolist() == [[1, h, r] for h in (2, 3) for r in (7, 50)]
    assert result.kernel == plain.kernel


def test_only_the_rows_that_lost_edges_are_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes, compute = [], dispatch.compute

    def spy(query: Tensor, key: Tensor, *rest: Any) -> Any:
        shapes.append((*query.shape[:3], key.shape[1]))
        return compute(query, key, *rest)

    monkeypatch.setattr(dispatch, "compute", spy)
    query, key = random(0, 5, 6, 101, 4, dtype=torch.float32), random(1, 5, 3, 101, 4, dtype=torch.float32)
    whole = (5, 6, 101, 3)
    for told, expected in (
        ([EdgeAblation(queries=[3], keys=[1]), EdgeAblation(queries=[9], keys=[0])], [whole, (5, 6, 2, 3)]),
        ([EdgeAblation(queries=[3], keys=[n], batch=[n]) for n in (1, 2, 4)], [whole, (2, 6, 1, 3), (1, 6, 1, 3)]),
        ([EdgeAblation(keys=[3], heads=[1], batch=[0])], [whole, (1, 1, 101, 1)]),
        ([EdgeAblation(queries=[3], heads=[0, 2, 3, 5])], [whole, (5, 1, 1, 1), (5, 2, 1, 1), (5, 1, 1, 1)]),
        ([EdgeAblation(queries=[3], heads=[1, 2])], [whole, (5, 1, 1, 1), (5, 1, 1, 1)]),
        ([EdgeAblation(keys=[3])], [whole]),
    ):
        shapes.clear()
        with ablating(told):
            regard.attend(query, key, key)
        assert shapes == expected


def test_the_row_sums_that_are_left_are_of_the_ablated_rows() -> None:
    query, key = random(0, 2, 3, 41, 4, dtype=torch.float32), random(1, 2, 3, 37, 4, dtype=torch.float32)
    removed = (Edges((2, 3, 41, 37), (1,), (2,), (5,), tuple(range(36))), Edges((2, 3, 41, 37), (0,), None, (6,)))
    with cpu_tiles_at_any_size():
        done, rule = row_update.compute(query, key, key, ScoreRule(0.5), 0.0, removed)
    assert done.row_max_sum is not None
    assert rule.mask is not None
    assert rule.mask.removed == removed
    scores = score_tile(query, key, rule, *(slice(0, n) for n in (2, 3, 41, 37)))
    sums = softmax_weights(scores, *done.row_max_sum).sum(-1)
    assert sums[0, :, 6].tolist() == [0.0] * 3
    sums[0, :, 6] = 1.0
    assert torch.allclose(sums, torch.ones(2, 3, 41))


@pytest.mark.parametrize("tiles", [False, True])
@pytest.mark.parametrize(
    "options", [{}, {"causal": True, "softcap": 2.0, "sinks": torch.tensor([0.5, -1.0, 0.0, 2.0])}]
)
def test_gradients_through_cuts(tiles: bool, options: dict[str, Any]) -> None:
    dtype = torch.float32 if tiles else torch.float64
    query = random(0, 2, 4, 7, 5, dtype=dtype).requires_grad_()
    key, value = (random(n, 2, 2, 7, 5, dtype=dtype).requires_grad_() for n in (1, 2))
    grad = random(3, 2, 4, 7, 5, dtype=dtype)
    left = torch.ones(2, 4, 7, 7, dtype=torch.bool)
    left[0, 1, 3, [0, 2]] = left[:, 2, 6, :] = False
    told = [EdgeAblation(batch=[0], heads=[1], queries=[3], keys=[0, 2]), EdgeAblation(heads=[2], queries=[6])]
    with (
        cpu_tiles_at_any_size() if tiles else contextlib.nullcontext(),
        ablating([*told, HeadAblation(heads=[3], batch=[1])]),
    ):
        result = regard.attend(query, key, value, **options)
        result.output.backward(grad)
    ours = [t.grad for t in (query, key, value)]
    for tensor in (query, key, value):
        tensor.grad = None
    options = options | {"mask": left}
    output = reference.attention(query, key, value, **options).output.clone()
    output[1, 3] = 0.0
    output.backward(grad.double())
    for mine, tensor in zip(ours, (query, key, value), strict=True):
        assert torch.allclose(mine, tensor.grad, atol=1e-5 if tiles else 1e-10)
    assert torch.allclose(result.output.double(), output, atol=1e-5)


def test_dropout_leaves_a_cut_edge_cut() -> None:
    query, value = random(0, 1, 5, 3), torch.eye(5).double()[None]
    with ablating([EdgeAblation(queries=[2], keys=[4])]):
        output = regard.attend(query, query, value, dropout=0.3).output
    assert output[0, 2, 4] == 0.0
    assert (output != 0).sum() > 5
