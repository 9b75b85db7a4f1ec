"""Rows put into an attention call: values, rows of weights and heads' outputs, against the definition."""

import pytest
import torch

import regard
from regard.attention.ablation import EdgeAblation, HeadAblation, ablating
from regard.attention.patches import CallPatch, PatchError
from regard.attention.reference import attention as definition

B, H, G, L, S, D, E = 2, 6, 3, 5, 7, 11, 13


def tensors() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    make = torch.Generator().manual_seed(3)
    return tuple(torch.randn(B, n, k, w, generator=make) for n, k, w in ((H, L, D), (G, S, D), (G, S, E)))  # type: ignore[return-value]


def test_values_are_put_in_before_they_are_weighted() -> None:
    query, key, value = tensors()
    rows, changed = torch.randn(1, 2, E), value.clone()
    changed[1, 2, [1, 4]] = rows[0]
    with ablating([CallPatch(what="values", rows=rows, positions=(1, 4), heads=(2,), batch=(1,))]) as block:
        found = regard.attend(query, key, value)
    assert not block.unmet
    assert torch.allclose(found.output, definition(query, key, changed).output.float(), atol=1e-6)
    assert not torch.equal(value, changed)  # the tensor that was given, perhaps a cache's, stays as it was


def test_outputs_are_put_in_in_order() -> None:
    query, key, value = tensors()
    rows = torch.randn(H, 1, E)
    patch = CallPatch(what="head_outputs", rows=rows, positions=(3,))
    expected = regard.attend(query, key, value).output
    expected[:, :, 3] = rows[:, 0]
    with ablating([HeadAblation(heads={2}), patch]):
        found = regard.attend(query, key, value).output
    expected[:, 2, [0, 1, 2, 4]] = 0.0
    assert torch.equal(found, expected)
    with ablating([patch, HeadAblation(heads={2})]):
        assert not regard.attend(query, key, value).output[:, 2].any()


@pytest.mark.parametrize("biased", [False, True])
def test_rows_of_weights_make_the_output_and_are_shown(biased: bool) -> None:
    query, key, value = tensors()
    bias = torch.randn(1, H, L, S) if biased else None
    rows = torch.rand(2, 2, S).softmax(-1)
    rows[0, 0, 3] = 0.0
    rows = rows / rows.sum(-1, keepdim=True)
    patch = CallPatch(what="weights", rows=rows, positions=(0, 2), heads=(1, 4), batch=(0,))
    plain = regard.attend(query, key, value, bias=bias)
    with ablating([patch]):
        found = regard.attend(query, key, value, bias=bias, statistics=True)
    weights, output = plain.weights.dense(), plain.output.clone()
    for n, head in enumerate((1, 4)):
        weights[0, head, [0, 2]] = rows[n]
        output[0, head, [0, 2]] = rows[n] @ value[0, head // 2]
    assert torch.allclose(found.weights.dense(), weights, atol=1e-6)
    assert torch.allclose(found.output, output, atol=1e-6)
    assert torch.allclose(found.weights.received(), weights.sum(2), atol=1e-5)
    assert torch.allclose(found.weights.crop(0, slice(0, 3), slice(0, S)).dense(), weights[0, :, :3], atol=1e-6)


def test_edges_ablated_later_are_taken_from_the_rows() -> None:
    query, key, value = tensors()
    rows = torch.rand(1, 1, S).softmax(-1)
    patch, edge = CallPatch(what="weights", rows=rows, positions=(2,)), EdgeAblation(queries=(2,), keys=(3, 6))
    with ablating([patch, edge]):
        found = regard.attend(query, key, value)
    left = rows[0, 0].clone()
    left[[3, 6]] = 0.0
    assert torch.allclose(found.weights[0, 5, 2], left / left.sum(), atol=1e-6)
    with ablating([edge, patch]), pytest.raises(PatchError, match="later keys, or ablated edges"):
        regard.attend(query, key, value)


def test_what_does_not_fit() -> None:
    query, key, value = tensors()
    for patch, says in (
        (
            CallPatch(what="values", rows=torch.zeros(1, 1, 4), positions=(0,)),
            "of width 4, the model has 3 of width 13",
        ),
        (CallPatch(what="head_outputs", rows=torch.zeros(2, 1, E), positions=(0,)), "given 2 heads .* has 6 of width"),
        (CallPatch(what="weights", rows=torch.ones(1, 1, 9), positions=(0,)), "1 heads of 9 weights, .* 6 heads of 7"),
        (CallPatch(what="weights", rows=torch.ones(1, 1, S), positions=(1,)), "the row of token 1 sums to 7"),
        (CallPatch(what="values", rows=torch.zeros(1, 1, E), positions=(7,)), "keys: given 7"),
    ):
        with ablating([patch]), pytest.raises(ValueError, match=says):
            regard.attend(query, key, value)
    for rule in ({"softcap": 3.0}, {"sinks": torch.zeros(H)}):
        rows = torch.full((1, 1, S), 1 / S)
        with (
            ablating([CallPatch(what="weights", rows=rows, positions=(0,))]),
            pytest.raises(PatchError, match=f"the model's scores have {'a softcap' if 'softcap' in rule else 'sinks'}"),
        ):
            regard.attend(query, key, value, **rule)
