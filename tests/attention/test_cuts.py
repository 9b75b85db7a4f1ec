"""Cuts at the door: what a call gives is what it gives with the edges in a dense mask, or with the head at zero."""

import contextlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextvars import copy_context
from typing import Any

import jaxtyping
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import regard
from regard.attention import kernels, reference, rows, storage
from regard.attention.cuts import Cutting, EdgeCut, HeadCut, cutting, opened
from regard.attention.edges import Edges
from regard.attention.reference import Reference
from regard.attention.tiles import Rule, score_tile, weigh
from tests.attention.cases import Case, cases, check, cpu_tiles_at_any_size, naive, random, working

AXES = ("batch", "heads", "queries", "keys")


@st.composite
def cut_cases(draw: Callable[..., Any], **limits: Any) -> tuple[Case, list[dict[str, list[int] | None]]]:
    """A call, and one to three products of sets of its texts, heads, queries and keys."""
    case = draw(cases(**limits))
    shape = (*case.query.shape[:3], case.key.shape[2])

    def some(size: int) -> list[int] | None:
        return draw(st.one_of(st.none(), st.lists(st.integers(0, size - 1), min_size=1, max_size=3)))

    told = [{axis: some(n) for axis, n in zip(AXES, shape, strict=True)} for _ in range(draw(st.integers(1, 3)))]
    return case, told


def dense(case: Case, told: list[dict[str, list[int] | None]]) -> Tensor:
    """The edges that are left, (B, H, L, S)."""
    left = torch.ones(*case.query.shape[:3], case.key.shape[2], dtype=torch.bool)
    for cut in told:
        spots = [range(n) if cut[axis] is None else cut[axis] for axis, n in zip(AXES, left.shape, strict=True)]
        left[torch.meshgrid(*(torch.tensor(list(spot)) for spot in spots), indexing="ij")] = False
    return left


def masked(case: Case, left: Tensor) -> Case:
    """The same call with a dense mask in the cut's place, as the oracle is told."""
    told = dict(case.told)
    told["mask"] = left if told.get("mask") is None else left & told["mask"]
    return Case(case.query, case.key, case.value, told)


def attend_cut(case: Case, told: list[dict[str, list[int] | None]]) -> regard.Attention:
    with cutting([EdgeCut(**cut) for cut in told]):
        return regard.attend(case.query, case.key, case.value, **case.options)


def compare(case: Case, told: list[dict[str, list[int] | None]]) -> None:
    """Output, logsumexp, weights, every statistic and a map that was packed, against the dense mask."""
    expected = masked(case, dense(case, told))
    right = expected.oracle()
    result = attend_cut(case, told)
    seen, dtype = result.weights, working(case.query.dtype)
    plain = naive(expected, dtype)
    assert torch.equal(result.valid, right.valid)
    assert torch.equal(seen.scores[...] == -torch.inf, right.scores == -torch.inf)
    check("output", result.output, naive(expected, case.query.dtype).output, right.output, case, case.query.dtype)
    check("logsumexp", result.logsumexp, plain.logsumexp, right.logsumexp, case, dtype)
    check("weights", seen.dense(), plain.weights, right.weights, case, dtype)
    check("sink share", seen.sink_share, plain.sink_share, right.sink_share, case, dtype)
    _compare_statistics(seen, plain, right, case, dtype)
    tensors, description = storage.pack(seen)
    again = storage.unpack(tensors, json.loads(json.dumps(description)))
    check("packed", again.dense(), plain.weights, right.weights, case, dtype)


def _compare_statistics(
    seen: regard.AttentionMap, plain: Reference, right: Reference, case: Case, dtype: torch.dtype
) -> None:
    parts = min(3, seen.shape[2]), min(2, seen.shape[3])
    found = seen.statistics(top=2, pooled=parts)
    best = right.weights.sort(-1, descending=True).values[..., :2]
    check("top", found.values, plain.weights.sort(-1, descending=True).values[..., :2], best, case, dtype)
    entropy = [reference.entropy(of.weights, of.sink_share) for of in (plain, right)]
    check("entropy", found.entropy, *entropy, case, dtype)
    received = [reference.received(of.weights) for of in (plain, right)]
    check("received", found.received, *received, case, dtype)
    check("pooled", found.pooled, *(reference.pooled(of.weights, *parts) for of in (plain, right)), case, dtype)


@settings(max_examples=120)
@given(cut_cases())
def test_an_edge_cut_is_a_dense_mask(drawn: tuple[Case, list[dict[str, list[int] | None]]]) -> None:
    compare(*drawn)


@settings(max_examples=60)
@given(cut_cases(dtypes=(torch.float32, torch.bfloat16)))
def test_an_edge_cut_is_a_dense_mask_on_cpu_tiles(drawn: tuple[Case, list[dict[str, list[int] | None]]]) -> None:
    with cpu_tiles_at_any_size():
        compare(*drawn)


@settings(max_examples=60)
@given(cut_cases(dtypes=(torch.float64, torch.float32)), st.sampled_from((0.0, 1.0)))
def test_few_rows_and_one_pass_give_the_same(
    drawn: tuple[Case, list[dict[str, list[int] | None]]], share: float
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "SHARE", share)
        compare(*drawn)


def test_equal_scores_share_what_the_cut_edge_had() -> None:
    query, value = torch.zeros(1, 2, 3, 5), random(0, 1, 2, 3, 7)
    with cutting([EdgeCut(heads={1}, queries=(0,), keys=(2,))]):
        result = regard.attend(query.double(), query.double(), value)
    third, half = [1 / 3] * 3, [0.5, 0.5, 0.0]
    expected = torch.tensor([[[third, third, third], [half, third, third]]]).double()
    assert torch.allclose(result.weights[...], expected)
    assert torch.allclose(result.output, expected @ value)
    assert torch.allclose(result.logsumexp[0, 1].exp(), torch.tensor([2.0, 3.0, 3.0]).double())
    assert result.weights.top(3)[1][0, 1, 0].tolist() == [0, 1, -1]


def test_a_sink_takes_its_share_of_what_was_cut() -> None:
    query, value = torch.zeros(1, 3, 2), random(0, 1, 3, 2).float()
    with cutting([EdgeCut(queries=(1,), keys=(0, 2)), EdgeCut(queries=(2,))]):
        result = regard.attend(query, query, value, sinks=torch.zeros(1))
    expected = torch.tensor([[[1 / 4] * 3, [0.0, 1 / 2, 0.0], [0.0, 0.0, 0.0]]])
    assert torch.allclose(result.weights[...], expected)
    assert torch.allclose(result.weights.sink_share, torch.tensor([[1 / 4, 1 / 2, 0.0]]))
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
        cutting([HeadCut(heads=some, batch=None if text is None else [text])]),
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
    told = [EdgeCut(batch=[0], heads=[1], queries=[3], keys=[0, 2]), EdgeCut(heads=[2], queries=[6])]
    with (
        cpu_tiles_at_any_size() if tiles else contextlib.nullcontext(),
        cutting([*told, HeadCut(heads=[3], batch=[1])]),
    ):
        result = regard.attend(query, key, value, **options)
        result.output.backward(grad)
    ours = [t.grad for t in (query, key, value)]
    for tensor in (query, key, value):
        tensor.grad = None
    options = options | {"mask": left}
    output = reference.attend(query, key, value, **options).output.clone()
    output[1, 3] = 0.0
    output.backward(grad.double())
    for mine, tensor in zip(ours, (query, key, value), strict=True):
        assert torch.allclose(mine, tensor.grad, atol=1e-5 if tiles else 1e-10)
    assert torch.allclose(result.output.double(), output, atol=1e-5)


def test_dropout_leaves_a_cut_edge_cut() -> None:
    query, value = random(0, 1, 5, 3), torch.eye(5).double()[None]
    with cutting([EdgeCut(queries=[2], keys=[4])]):
        output = regard.attend(query, query, value, dropout=0.3).output
    assert output[0, 2, 4] == 0.0
    assert (output != 0).sum() > 5


def test_rows_and_heads_that_lost_nothing_are_bit_for_bit_the_same() -> None:
    query, key, value = (random(n, 2, 6, 101, 8, dtype=torch.float32) for n in range(3))
    plain = regard.attend(query, key, value)
    with cutting([EdgeCut(batch=[1], heads=[2, 3], queries=[50, 7], keys=[3])]):
        result = regard.attend(query, key, value)
    changed = (result.output != plain.output).any(-1)
    assert changed.nonzero().tolist() == [[1, h, r] for h in (2, 3) for r in (7, 50)]
    assert result.kernel == plain.kernel


def test_only_the_rows_that_lost_edges_are_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes, compute = [], kernels.compute

    def spy(query: Tensor, key: Tensor, *rest: Any) -> Any:
        shapes.append((*query.shape[:3], key.shape[1]))
        return compute(query, key, *rest)

    monkeypatch.setattr(kernels, "compute", spy)
    query, key = random(0, 5, 6, 101, 4, dtype=torch.float32), random(1, 5, 3, 101, 4, dtype=torch.float32)
    whole = (5, 6, 101, 3)
    for told, expected in (
        ([EdgeCut(queries=[3], keys=[1]), EdgeCut(queries=[9], keys=[0])], [whole, (5, 6, 2, 3)]),
        ([EdgeCut(queries=[3], keys=[n], batch=[n]) for n in (1, 2, 4)], [whole, (2, 6, 1, 3), (1, 6, 1, 3)]),
        ([EdgeCut(keys=[3], heads=[1], batch=[0])], [whole, (1, 1, 101, 1)]),
        ([EdgeCut(queries=[3], heads=[0, 2, 3, 5])], [whole, (5, 1, 1, 1), (5, 2, 1, 1), (5, 1, 1, 1)]),
        ([EdgeCut(queries=[3], heads=[1, 2])], [whole, (5, 1, 1, 1), (5, 1, 1, 1)]),
        ([EdgeCut(keys=[3])], [whole]),
    ):
        shapes.clear()
        with cutting(told):
            regard.attend(query, key, key)
        assert shapes == expected


@pytest.mark.parametrize("tiles", [False, True])
@pytest.mark.parametrize("heads", [[1], [1, 2], [0, 1, 2, 5], None])
def test_the_rows_keep_their_heads_sinks_bias_and_mask(tiles: bool, heads: list[int] | None) -> None:
    query, key, value = (random(n, 3, h, 53, 4, dtype=torch.float32) for n, h in ((0, 6), (1, 2), (2, 2)))
    options = {"bias": random(3, 3, 6, 53, 53, dtype=torch.float32), "sinks": random(4, 6).float(), "causal": True}
    case = Case(query, key, value, options | {"softcap": 5.0})
    with cpu_tiles_at_any_size() if tiles else contextlib.nullcontext():
        compare(case, [{"batch": [0, 2], "heads": heads, "queries": [7, 50], "keys": [0, 3, 6]}])


def test_the_normaliser_that_is_left_is_of_the_cut_rows() -> None:
    query, key = random(0, 2, 3, 41, 4, dtype=torch.float32), random(1, 2, 3, 37, 4, dtype=torch.float32)
    removed = (Edges((2, 3, 41, 37), (1,), (2,), (5,), tuple(range(36))), Edges((2, 3, 41, 37), (0,), None, (6,)))
    with cpu_tiles_at_any_size():
        done = rows.compute(query, key, key, Rule(0.5), 0.0, removed)
    assert done.normaliser is not None
    scores = score_tile(query, key, rows.without(Rule(0.5), removed), *(slice(0, n) for n in (2, 3, 41, 37)))
    sums = weigh(scores, *done.normaliser).sum(-1)
    assert sums[0, :, 6].tolist() == [0.0] * 3
    sums[0, :, 6] = 1.0
    assert torch.allclose(sums, torch.ones(2, 3, 41))


def test_nothing_of_size_n_by_n_is_kept_or_written(tmp_path: Any) -> None:
    query = random(0, 1, 2, 2048, 2, dtype=torch.float32)
    with cutting([EdgeCut(heads=[1], queries=[2000], keys=[5, 6])]):
        seen = regard.attend(query, query, query, causal=True).weights
    assert seen.rule.mask.removed == (Edges((1, 2, 2048, 2048), None, (1,), (2000,), (5, 6)),)
    assert not seen.rule.mask.dense
    seen.save(tmp_path / "map")
    assert (tmp_path / "map").stat().st_size < 100_000
    again = regard.AttentionMap.load(tmp_path / "map")
    assert (again[0, :, 2000, 4:8] == 0).tolist() == [[False] * 4, [False, True, True, False]]


def test_a_later_reader_is_told_of_edges() -> None:
    query = random(0, 5, 2)
    with cutting([EdgeCut(queries=[1], keys=[1])]):
        cut = regard.attend(query, query, query).weights
    tensors, description = storage.pack(cut)
    assert description["version"] == storage.WITH_EDGES
    short = {name: tensor[:, :, 1:].contiguous() for name, tensor in tensors.items()}
    with pytest.raises(
        ValueError, match=r"its edges are of a map of shape \(1, 1, 5, 5\), its tensors of \(1, 1, 4, 4\)"
    ):
        storage.unpack(short, description)
    assert storage.pack(regard.attend(query, query, query).weights)[1]["version"] == storage.VERSION


@settings(max_examples=60)
@given(cut_cases(dtypes=(torch.float64,)), st.data())
def test_edges_of_any_region(drawn: tuple[Case, list[dict[str, list[int] | None]]], data: st.DataObject) -> None:
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


@settings(max_examples=60)
@given(cut_cases(dtypes=(torch.float64,)), st.data())
def test_a_crop_keeps_the_edges_of_its_text(
    drawn: tuple[Case, list[dict[str, list[int] | None]]], data: st.DataObject
) -> None:
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
    with cutting([EdgeCut(batch=[1], queries=[2, 4], keys=[3]), EdgeCut(heads=[2], queries=[6])]):
        seen = regard.attend(query, query, query).weights
    run = slice(1, 6)
    assert seen.crop(0, run, run).rule.mask is None
    assert seen.crop(1, run, run).rule.mask.removed == (Edges((1, 3, 5, 5), None, None, (1, 3), (2,)),)


def test_which_calls_a_cut_holds_for() -> None:
    x = random(0, 1, 3, 2)
    paths = ["encoder.layer.0", "encoder.layer.1", "decoder.layer.1.self", "decoder.layer.1.self", "decoderless.2", ""]

    def cut_calls(*layers: Any) -> list[int]:
        with cutting([HeadCut(layers=layers or None)]), regard.record(keep=["output"]) as calls:
            for path in paths:
                with regard.scope(path):
                    regard.attend(x, x, x)
        assert [call.cuts != () for call in calls.values()] == [not call.output.any() for call in calls.values()]
        return [n for n, call in enumerate(calls.values()) if call.cuts]

    assert cut_calls() == [0, 1, 2, 3, 4, 5]
    assert cut_calls(1) == [1, 2, 3]
    assert cut_calls(2, 0) == [0, 4]
    assert cut_calls("encoder.layer.1") == [1]
    assert cut_calls("decoder") == [2, 3]
    assert cut_calls(("decoder.layer.1.self", 1)) == [3]
    assert cut_calls("decoder.layer") == [2, 3]
    assert cut_calls("layer.1", 7, ("decoder", 0)) == []


def test_cuts_that_met_no_call_are_named() -> None:
    x, cuts = random(0, 1, 3, 2), [HeadCut(layers={0}), HeadCut(layers={7}), EdgeCut(layers={"layer.9"}, keys=[0])]
    with cutting(cuts) as block:
        assert block.unmet == tuple(cuts)
        with regard.scope("layer.0"):
            regard.attend(x, x, x)
        assert block.unmet == (cuts[1], cuts[2])


def test_nested_cuts_add_up_and_end_with_their_blocks() -> None:
    query = torch.zeros(1, 2, 4, 3)
    outer, inner = EdgeCut(queries=[0], keys=[0]), EdgeCut(queries=[0], keys=[1])

    def row() -> list[float]:
        with regard.record() as calls:
            result = regard.attend(query, query, query)
        assert torch.equal(calls["", 0].weights[...], result.weights[...])
        return result.weights[0, 0, 0].tolist()

    with cutting([outer]):
        assert row() == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3])
        with cutting([inner, HeadCut(heads=[1])]):
            assert row() == pytest.approx([0, 0, 0.5, 0.5])
        assert row() == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3])
    assert row() == [0.25] * 4
    with pytest.raises(ZeroDivisionError), cutting([outer]):
        raise ZeroDivisionError
    assert opened() == ()


def test_other_threads_see_no_cuts() -> None:
    x, found = random(0, 1, 3, 2), []
    with cutting([HeadCut()]):
        thread = threading.Thread(target=lambda: found.append(bool(regard.attend(x, x, x).output.any())))
        thread.start()
        thread.join()
        copied = copy_context()
        assert not regard.attend(x, x, x).output.any()
    assert found == [True]
    assert not copied.run(lambda: regard.attend(x, x, x).output.any())


def test_a_map_of_another_shape_refuses_edges() -> None:
    x = random(0, 3, 2)
    with cutting([EdgeCut(keys=[0])]):
        mask = regard.attend(x, x, x).weights.rule.mask
    y = random(0, 4, 2)
    with pytest.raises(
        ValueError, match=r"mask: its edges are of a call of shape \(1, 1, 3, 3\), needs \(1, 1, 4, 4\)"
    ):
        regard.attend(y, y, y, mask=mask)


@pytest.fixture
def as_users_call() -> Iterator[None]:
    """The run-time checks of annotations, which tests otherwise have, would speak first."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.mark.usefixtures("as_users_call")
@pytest.mark.parametrize(
    ("make", "options", "error", "needed"),
    [
        (HeadCut, {"heads": [-1]}, ValueError, "heads: given -1, needs numbers from 0 on"),
        (HeadCut, {"heads": []}, ValueError, "heads: given none, needs at least one, or None for all"),
        (HeadCut, {"heads": 3}, TypeError, "heads: given 3, needs a collection such as {3, 5}"),
        (HeadCut, {"heads": [1.5]}, TypeError, "heads: given 1.5, needs integers"),
        (HeadCut, {"heads": [True]}, TypeError, "heads: given True, needs integers"),
        (HeadCut, {"layers": [-2]}, ValueError, "layers: given -2, needs numbers from 0 on"),
        (HeadCut, {"layers": "encoder"}, TypeError, "layers: given 'encoder', needs a collection"),
        (HeadCut, {"layers": [None]}, TypeError, "layers: given None, needs integers or paths"),
        (HeadCut, {"layers": [("a", -1)]}, ValueError, "layers: given -1"),
        (EdgeCut, {"queries": [-3]}, ValueError, "queries: given -3, needs numbers from 0 on"),
        (EdgeCut, {"keys": ["bank"]}, TypeError, "keys: given 'bank', needs integers"),
        (EdgeCut, {"batch": [-1]}, ValueError, "batch: given -1"),
    ],
)
def test_what_makes_no_cut(make: Any, options: dict[str, Any], error: type[Exception], needed: str) -> None:
    with pytest.raises(error, match=re.escape(needed)):
        make(**options)


@pytest.mark.usefixtures("as_users_call")
def test_what_is_no_cut() -> None:
    with pytest.raises(TypeError, match="cutting: given dict, needs HeadCut and EdgeCut objects"), cutting([{}]):
        pass


@pytest.mark.parametrize(
    ("cut", "needed"),
    [
        (HeadCut(heads=[1, 4]), "heads: given 4, needs numbers that the call 'layer.3' has: 0 to 3"),
        (HeadCut(batch=[2]), "batch: given 2, needs numbers that the call 'layer.3' has: 0 to 1"),
        (EdgeCut(heads=[9]), "heads: given 9"),
        (EdgeCut(queries=[5]), "queries: given 5, needs numbers that the call 'layer.3' has: 0 to 4"),
        (EdgeCut(keys=[7]), "keys: given 7, needs numbers that the call 'layer.3' has: 0 to 6"),
    ],
)
def test_a_call_refuses_what_it_does_not_have(cut: HeadCut | EdgeCut, needed: str) -> None:
    query, key = random(0, 2, 4, 5, 3), random(1, 2, 2, 7, 3)
    with cutting([cut]) as block:
        assert isinstance(block, Cutting)
        with pytest.raises(ValueError, match=re.escape(needed)), regard.scope("layer.3"):
            regard.attend(query, key, key)
    with cutting([HeadCut(layers={2}, heads=[99])]), regard.scope("layer.3"):
        regard.attend(query, key, key)
    with (
        cutting([EdgeCut(keys=[0])]),
        pytest.raises(ValueError, match="keys: given 0, needs numbers that this call has: none, it is empty"),
    ):
        regard.attend(query, key[:, :, :0], key[:, :, :0])
