"""What ablations and patches do to a call of `attend`: to its heads, edges and rows of weights; what it refuses."""

import contextlib
import re
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import regard
from regard.attention import ablated_call, reference
from regard.attention.ablation import CallPatch, EdgeAblation, HeadAblation, OpenAblations, ablating
from regard.attention.kernels import dispatch
from regard.attention.masks import Edges
from regard.attention.recording import scope
from regard.attention.scores import ScoreRule, score_tile, softmax_weights
from regard.errors import OutOfRangeError
from tests.attention.ablation_cases import Told, compare, cut_cases
from tests.attention.cases import Case, cases, cpu_tiles_at_any_size, random


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
        patch.setattr(ablated_call, "MAX_ROW_FRACTION", share)
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
        done, rule = ablated_call.compute(query, key, key, ScoreRule(0.5), 0.0, removed)
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


def test_equal_scores_share_what_the_cut_edge_had() -> None:
    query, value = torch.zeros(1, 2, 3, 5), random(0, 1, 2, 3, 7)
    with ablating([EdgeAblation(heads={1}, queries=(0,), keys=(2,))]):
        result = regard.attend(query.double(), query.double(), value)
    third, half = [1 / 3] * 3, [0.5, 0.5, 0.0]
    expected = torch.tensor([[[third, third, third], [half, third, third]]]).double()
    assert torch.allclose(result.weights[...], expected)
    assert torch.allclose(result.output, expected @ value)
    assert torch.allclose(result.logsumexp[0, 1].exp(), torch.tensor([2.0, 3.0, 3.0]).double())
    assert result.weights.top(3)[1][0, 1, 0].tolist() == [0, 1, -1]


def test_a_sink_takes_its_share_of_what_was_cut() -> None:
    query, value = torch.zeros(1, 3, 2), random(0, 1, 3, 2).float()
    with ablating([EdgeAblation(queries=(1,), keys=(0, 2)), EdgeAblation(queries=(2,))]):
        result = regard.attend(query, query, value, sinks=torch.zeros(1))
    expected = torch.tensor([[[1 / 4] * 3, [0.0, 1 / 2, 0.0], [0.0, 0.0, 0.0]]])
    assert torch.allclose(result.weights[...], expected)
    assert torch.allclose(result.weights.sink_share, torch.tensor([[1 / 4, 1 / 2, 1.0]]))
    assert result.valid.tolist() == [[True, True, False]]
    assert torch.allclose(result.output, expected @ value)


@settings(max_examples=30)
@given(cases(dtypes=(torch.float32, torch.bfloat16)), st.booleans(), st.data())
def test_a_head_cut_zeroes_its_output_and_nothing_else(case: Case, one_text: bool, data: st.DataObject) -> None:
    batch, heads = case.query.shape[:2]
    some = data.draw(st.lists(st.integers(0, heads - 1), min_size=1))
    text = data.draw(st.integers(0, batch - 1)) if one_text else None
    plain = regard.attend(case.query, case.key, case.value, **case.options)
    with (
        ablating([HeadAblation(heads=some, batch=None if text is None else [text])]),
        regard.record(keep=["output"]) as calls,
    ):
        result = regard.attend(case.query, case.key, case.value, **case.options)
    gone = torch.zeros(batch, heads, dtype=torch.bool)
    gone[slice(None) if text is None else text, sorted(set(some))] = True
    expected = plain.output.masked_fill(gone[..., None, None], 0.0)
    assert torch.equal(result.output.nan_to_num(), expected.nan_to_num())
    assert torch.equal(calls["", 0].output.nan_to_num(), expected.nan_to_num())
    assert torch.equal(result.logsumexp.nan_to_num(), plain.logsumexp.nan_to_num())
    assert torch.equal(result.weights.dense().nan_to_num(), plain.weights.dense().nan_to_num())


@pytest.mark.parametrize(
    ("cut", "needed"),
    [
        (HeadAblation(heads=[1, 4]), "heads: got 4, expected numbers that the call 'layer.3' has: 0 to 3"),
        (HeadAblation(batch=[2]), "batch: got 2, expected numbers that the call 'layer.3' has: 0 to 1"),
        (EdgeAblation(heads=[9]), "heads: got 9"),
        (EdgeAblation(queries=[5]), "queries: got 5, expected numbers that the call 'layer.3' has: 0 to 4"),
        (EdgeAblation(keys=[7]), "keys: got 7, expected numbers that the call 'layer.3' has: 0 to 6"),
    ],
)
def test_a_call_refuses_what_it_does_not_have(cut: HeadAblation | EdgeAblation, needed: str) -> None:
    query, key = random(0, 2, 4, 5, 3), random(1, 2, 2, 7, 3)
    with ablating([cut]) as block:
        assert isinstance(block, OpenAblations)
        with pytest.raises(OutOfRangeError, match=re.escape(needed)) as refused, scope("layer.3"):
            regard.attend(query, key, key)
    assert all(isinstance(refused.value, kind) for kind in (regard.RegardError, ValueError, IndexError))
    axis, given = refused.value.axis, refused.value.given
    assert getattr(cut, axis)[-1] == given
    assert refused.value.size == {"batch": 2, "heads": 4, "queries": 5, "keys": 7}[axis]
    with ablating([HeadAblation(layers={2}, heads=[99])]), scope("layer.3"):
        regard.attend(query, key, key)
    with (
        ablating([EdgeAblation(keys=[0])]),
        pytest.raises(ValueError, match="keys: got 0, expected numbers that this call has: none, it is empty"),
    ):
        regard.attend(query, key[:, :, :0], key[:, :, :0])


def test_none_is_all_heads_and_all_texts() -> None:
    query = random(3, 2, 5, 7, 11)  # two texts, five heads
    plain = regard.attend(query, query, query).output
    for ablation, expected in (
        (HeadAblation(batch={1}), torch.tensor([[True] * 5, [False] * 5])),
        (HeadAblation(heads={4}), torch.tensor([[True] * 4 + [False]] * 2)),
    ):
        with ablating([ablation]):
            output = regard.attend(query, query, query).output
        torch.testing.assert_close(output, plain * expected[..., None, None])


def test_all_that_is_done_to_a_call_is_done_in_its_order() -> None:
    """Values, edges, rows of weights, outputs: each counts on what came before, statistics on all of the weights."""
    query, value = random(0, 1, 2, 3, 4), random(1, 1, 2, 3, 5)
    new, row = random(2, 1, 1, 5), torch.tensor([[[0.25, 0.0, 0.75]]])
    done = [
        CallPatch(what="values", rows=new, positions=(2,)),
        EdgeAblation(heads={1}, queries=(0,), keys=(1,)),
        CallPatch(what="weights", rows=row, positions=(2,), heads=(0,)),
        HeadAblation(heads={1}),
    ]
    before = value.clone()
    with ablating(done), regard.record(keep=("value", "output")) as calls:
        result = regard.attend(query, query, value, statistics=True)
    assert torch.equal(value, before)
    values = value.clone()
    values[:, :, 2] = new
    weights = (query @ query.mT / 2).masked_fill(torch.tensor([[[[False]], [[True]]]]) & _edge(0, 1), -torch.inf)
    weights = weights.softmax(-1)
    weights[0, 0, 2] = row
    torch.testing.assert_close(result.weights[...].to(weights), weights, rtol=1e-5, atol=1e-6)
    expected = weights @ values
    expected[:, 1] = 0
    torch.testing.assert_close(result.output, expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(result.weights.received().to(weights), weights.sum(2), rtol=1e-5, atol=1e-6)
    call = calls["", 0]
    assert call.ablations == tuple(done)
    assert torch.equal(call.value, values)
    assert torch.equal(call.output, result.output)
    assert torch.equal(call.weights.received(), result.weights.received())


def _edge(query: int, key: int) -> torch.Tensor:
    chosen = torch.zeros(3, 3, dtype=torch.bool)
    chosen[query, key] = True
    return chosen
