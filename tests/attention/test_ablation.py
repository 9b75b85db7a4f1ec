"""Ablations in `attend`: which calls they apply to, what they do to heads and edges, and what is refused."""

import threading
from contextvars import copy_context
from typing import Any

import pytest
import torch

import regard
from regard.attention.ablation import CallPatch, EdgeAblation, HeadAblation, PatchError, ablating, open_blocks
from regard.attention.recording import scope
from regard.attention.reference import attention as definition
from tests.attention.cases import random

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
    with ablating([edge, patch]), pytest.raises(PatchError, match="later keys or ablated edges"):
        regard.attend(query, key, value)


def test_what_does_not_fit() -> None:
    query, key, value = tensors()
    for patch, says in (
        (
            CallPatch(what="values", rows=torch.zeros(1, 1, 4), positions=(0,)),
            "of width 4, but the layer has 3 of width 13",
        ),
        (CallPatch(what="head_outputs", rows=torch.zeros(2, 1, E), positions=(0,)), "got 2 heads .* has 6 of width"),
        (CallPatch(what="weights", rows=torch.ones(1, 1, 9), positions=(0,)), "1 heads of 9 weights, .* 6 heads of 7"),
        (CallPatch(what="weights", rows=torch.ones(1, 1, S), positions=(1,)), "the row of token 1 sums to 7"),
        (CallPatch(what="values", rows=torch.zeros(1, 1, E), positions=(7,)), "keys: got 7"),
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


def test_which_calls_a_cut_holds_for() -> None:
    x = random(0, 1, 3, 2)
    paths = ["encoder.layer.0", "encoder.layer.1", "decoder.layer.1.self", "decoder.layer.1.self", "decoderless.2", ""]

    def cut_calls(*layers: Any) -> list[int]:
        with ablating([HeadAblation(layers=layers or None)]), regard.record(keep=["output"]) as calls:
            for path in paths:
                with scope(path):
                    regard.attend(x, x, x)
        assert [call.ablations != () for call in calls.values()] == [not call.output.any() for call in calls.values()]
        return [n for n, call in enumerate(calls.values()) if call.ablations]

    assert cut_calls() == [0, 1, 2, 3, 4, 5]
    assert cut_calls(1) == [1, 2, 3]
    assert cut_calls(2, 0) == [0, 4]
    assert cut_calls("encoder.layer.1") == [1]
    assert cut_calls("decoder") == [2, 3]
    assert cut_calls(("decoder.layer.1.self", 1)) == [3]
    assert cut_calls("decoder.layer") == [2, 3]
    assert cut_calls("layer.1", 7, ("decoder", 0)) == []


def test_calls_by_other_names_than_their_paths() -> None:
    """Names are asked for once a call, in order, and take the place of paths and their numbers."""
    x, asked = random(0, 1, 3, 2), []

    def name(path: str, nth: int) -> str:
        asked.append((path, nth))
        return f"self.{len(asked) - 1}" if path == "layer.7" else ""

    cuts = [
        HeadAblation(layers={"self.1"}),
        HeadAblation(layers={7}),
        HeadAblation(layers={"layer.7"}),
        EdgeAblation(layers={"self"}),
    ]
    with ablating(cuts, name) as block, regard.record() as calls:
        for path in ("layer.7", "layer.7", "other"):
            with scope(path):
                regard.attend(x, x, x)
    assert asked == [("layer.7", 0), ("layer.7", 1), ("other", 0)]
    assert [call.ablations for call in calls.values()] == [(cuts[3],), (cuts[0], cuts[3]), ()]
    assert block.unmet == (cuts[1], cuts[2])


def test_cuts_that_met_no_call_are_named() -> None:
    x, cuts = (
        random(0, 1, 3, 2),
        [HeadAblation(layers={0}), HeadAblation(layers={7}), EdgeAblation(layers={"layer.9"}, keys=[0])],
    )
    with ablating(cuts) as block:
        assert block.unmet == tuple(cuts)
        with scope("layer.0"):
            regard.attend(x, x, x)
        assert block.unmet == (cuts[1], cuts[2])


def test_nested_cuts_add_up_and_end_with_their_blocks() -> None:
    query = torch.zeros(1, 2, 4, 3)
    outer, inner = EdgeAblation(queries=[0], keys=[0]), EdgeAblation(queries=[0], keys=[1])

    def row() -> list[float]:
        with regard.record() as calls:
            result = regard.attend(query, query, query)
        assert torch.equal(calls["", 0].weights[...], result.weights[...])
        return result.weights[0, 0, 0].tolist()

    with ablating([outer]):
        assert row() == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3])
        with ablating([inner, HeadAblation(heads=[1])]):
            assert row() == pytest.approx([0, 0, 0.5, 0.5])
        assert row() == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3])
    assert row() == [0.25] * 4
    with pytest.raises(ZeroDivisionError), ablating([outer]):
        raise ZeroDivisionError
    assert open_blocks.get() == ()


def test_other_threads_see_no_cuts() -> None:
    x, found = random(0, 1, 3, 2), []
    with ablating([HeadAblation()]):
        thread = threading.Thread(target=lambda: found.append(bool(regard.attend(x, x, x).output.any())))
        thread.start()
        thread.join()
        copied = copy_context()
        assert not regard.attend(x, x, x).output.any()
    assert found == [True]
    assert not copied.run(lambda: regard.attend(x, x, x).output.any())
