import math
import zlib

import numpy as np
import pytest
import torch

from regard.attention import masks
from regard.attention.attention_map import AttentionMap
from regard.attention.map_statistics import Statistics
from regard.attention.masks import Edges, Mask
from regard.attention.scores import ScoreRule
from regard.errors import RegardError
from regard.web import call as calls
from regard.web.call import (
    CallName,
    bias_data,
    call_data,
    largest_difference_on_page,
    mask_data,
    page_bias_by_offset,
    score_rule_for_page,
)
from regard.web.numbers import NumberStore
from tests.support.web_pages import check_call, from_byte_planes, stored

H, L, S = 3, 7, 9


def allowed(mask: Mask) -> np.ndarray:
    return mask.materialise(1, H, L, S, torch.device("cpu"))[0].numpy()


torch.manual_seed(0)
MASKS = {
    "padding": masks.padding(torch.tensor([[True] * 6 + [False] * 3])),
    "dense": masks.dense(torch.rand(L, S) > 0.5),
    "dense by head": masks.dense(torch.rand(1, H, L, S) > 0.5),
    "function": masks.function(lambda i, j: (i + j) % 3 == 0),
    "function of one answer": masks.function(lambda i, j: False),
    "window and function": masks.window(2, 1) & masks.function(lambda i, j: j != 4),
    "removed edges": Mask(high=2, removed=(Edges((1, H, L, S), queries=(1, 2), keys=(0, 3)),)),
    "removed of a head": Mask(removed=(Edges((1, H, L, S), heads=(1,), queries=(1, 2), keys=(0, 3)),)),
    "a row without keys": masks.dense(torch.arange(L)[:, None].expand(L, S) != 3),
}


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("rows", [1, 100])
def test_runs_allow_what_the_mask_allows(name: str, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "BAND", rows * S)
    numbers = NumberStore()
    says = mask_data(MASKS[name], H, L, S, numbers)
    assert says is not None
    assert says["kind"] == "runs"
    np.testing.assert_array_equal(
        np.broadcast_to(stored(numbers).mask(says, L, S), (H, L, S)), np.broadcast_to(allowed(MASKS[name]), (H, L, S))
    )
    assert says["heads"] == (H if name in ("dense by head", "removed of a head") else 1)


def test_bands_are_two_numbers() -> None:
    numbers = NumberStore()
    assert mask_data(masks.causal(), H, L, S, numbers) == {"kind": "band", "low": None, "high": 0}
    assert mask_data(masks.window(2, 1), H, L, S, numbers) == {"kind": "band", "low": -2, "high": 1}
    assert mask_data(masks.causal(offset=S), H, L, S, numbers) is None  # it hides nothing
    assert mask_data(None, H, L, S, numbers) is None
    assert numbers.blobs == []


def test_a_mask_of_too_many_runs_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "RUNS", 5)
    with pytest.raises(RegardError, match="the mask allows keys in more than 5 runs"):
        mask_data(masks.function(lambda i, j: (i + j) % 2 == 0), H, L, S, NumberStore())


def distances(heads: int) -> torch.Tensor:
    i, j = torch.arange(L)[:, None], torch.arange(S)
    return (torch.randn(heads, L + S - 1))[:, j - i + L - 1][None]


@pytest.mark.parametrize(
    ("kind", "bias"),
    [
        ("offsets", distances(H)),
        ("offsets", distances(1)),
        ("offsets", distances(1).masked_fill(torch.ones(L, S).triu(1).bool(), -torch.inf)),
        ("keys", torch.randn(1, H, 1, S)),
        ("keys", torch.randn(1, 1, 1, S).expand(1, 1, L, S)),
        ("keys", torch.randn(1, H, 1, 1)),
        ("dense", torch.randn(1, H, L, S)),
        ("dense", torch.randn(1, 1, L, 1)),
        ("keys", torch.full((1, 1, L, S), 2.0)),
    ],
)
@pytest.mark.parametrize("rows", [1, 100])
def test_a_bias_has_all_its_numbers(kind: str, bias: torch.Tensor, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "BAND", rows * S)
    numbers = NumberStore()
    says = bias_data(bias, L, S, numbers)
    assert says is not None
    assert says["kind"] == kind
    expected = bias[0].expand(-1, L, S).double().numpy()
    np.testing.assert_array_equal(np.broadcast_to(stored(numbers).bias(says, L, S), expected.shape), expected)


def test_one_other_number_makes_a_bias_dense() -> None:
    bias = distances(1)
    bias[0, 0, 3, 4] += 1e-6
    assert page_bias_by_offset(bias[0]) is None
    numbers = NumberStore()
    says = bias_data(bias, L, S, numbers)
    assert says is not None
    assert says["kind"] == "dense"


def test_a_bias_of_zeros_is_none_and_a_large_dense_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert bias_data(torch.zeros(1, 1, L, S), L, S, NumberStore()) is None
    assert bias_data(None, L, S, NumberStore()) is None
    monkeypatch.setattr(calls, "DENSE", 10)
    with pytest.raises(RegardError, match=r"the bias has 63 numbers that follow neither .* a page can have at most 10"):
        bias_data(torch.randn(1, 1, L, S), L, S, NumberStore())


def test_where_a_bias_is_minus_infinity_the_mask_forbids() -> None:
    heads, length = 2, 5
    later = torch.ones(length, length, dtype=torch.bool).triu(1)
    bias = torch.randn(1, heads, length, length).masked_fill(later, -math.inf)
    own = ScoreRule(0.5, None, bias, Mask(low=-2), None)
    page = score_rule_for_page(own)
    assert page.bias is not None
    assert page.mask is not None
    assert bool(page.bias.isfinite().all())
    query, key = torch.randn(1, heads, length, 3), torch.randn(1, heads, length, 3)
    expected = AttentionMap(query, key, own, ndim=3)
    assert torch.equal(AttentionMap(query, key, page, ndim=3).dense(), expected.dense())
    data = mask_data(page.mask, heads, length, length, NumberStore())
    assert data is not None
    assert data["heads"] == 1  # of all heads alike


def test_the_first_run_of_each_query_counts_through_all_heads() -> None:
    numbers = NumberStore()
    says = mask_data(masks.dense(torch.ones(1, 2, 2, 3, dtype=torch.bool)), 2, 2, 3, numbers)
    assert says is not None
    assert from_byte_planes(zlib.decompress(numbers.blobs[0]), "int32", [2, 3]).tolist() == [[0, 1, 2], [2, 3, 4]]


NAME = CallName(3, 0, 0, 0)
ROW, COL = torch.arange(20)[:, None], torch.arange(23)
RULES = {
    "plain": ScoreRule(0.5),
    "causal": ScoreRule(0.5, mask=masks.causal(3)),
    "softcap": ScoreRule(0.5, softcap=1.5, mask=masks.window(4, 1)),
    "sinks": ScoreRule(0.5, sinks=torch.tensor([0.3, -torch.inf, 2.0, 0.0]), mask=masks.causal()),
    "bias by distance": ScoreRule(0.5, bias=(-0.3 * (COL - ROW).abs())[None, None].float()),
    "bias by key": ScoreRule(0.5, bias=torch.linspace(-3, 3, 23)[None, None, None]),
    "dense bias": ScoreRule(0.5, bias=torch.sin((ROW * COL).float())[None, None]),
    "no key": ScoreRule(0.5, mask=masks.dense((ROW != 5).expand(20, 23)) & masks.causal()),
    "sinks and no key": ScoreRule(0.5, mask=masks.dense((ROW != 5).expand(20, 23)), sinks=torch.ones(4)),
    "large scores": ScoreRule(20.0),
}


def map_of(rule: ScoreRule, heads: int = 4, groups: int = 2, length: int = 20, size: int = 23) -> AttentionMap:
    torch.manual_seed(1)
    return AttentionMap(torch.randn(1, heads, length, 5), torch.randn(1, groups, size, 5), rule, ndim=3)


@pytest.mark.parametrize("name", RULES)
def test_every_weight_is_within_the_difference_that_is_stated(name: str) -> None:
    weights, numbers = map_of(RULES[name]), NumberStore()
    call = call_data(weights, NAME, numbers)
    found = check_call(call, weights, stored(numbers))
    difference = call["difference"]
    assert isinstance(difference, float)
    # what is stated is what there is, not a bound
    assert abs(abs(found - weights.dense().double().numpy()).max() - difference) < 1e-6
    assert difference < (2e-2 if name == "large scores" else 1e-4)


@pytest.mark.parametrize("total", [1.0, 0.6])
def test_given_weights_are_shown_as_they_are(total: float) -> None:
    given = (torch.randn(3, 20, 23).softmax(-1) * (ROW >= COL)) * total
    weights, numbers = AttentionMap.of_weights(given), NumberStore()
    call = call_data(weights, NAME, numbers)
    found = stored(numbers).weights(call)
    np.testing.assert_allclose(found, given.double().numpy(), atol=1e-6)
    assert abs(found - given.double().numpy()).max() <= float(str(call["difference"])) + 1e-7
    with pytest.raises(RegardError, match="layer 3: its weights are below 0, which a page cannot show"):
        call_data(AttentionMap.of_weights(-given), NAME, numbers)


@pytest.mark.parametrize(("length", "size"), [(1, 1), (0, 0), (1, 4), (3, 0)])
def test_calls_of_few_tokens(length: int, size: int) -> None:
    weights, numbers = map_of(ScoreRule(0.5), length=length, size=size), NumberStore()
    call = call_data(weights, NAME, numbers)
    assert check_call(call, weights, stored(numbers)).shape == (4, length, size)


def test_the_difference_is_that_of_the_worst_weight_wherever_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    one = map_of(ScoreRule(0.5, mask=masks.causal()))
    query = one.query.clone()
    query[0, 1, 7] += 1.0
    other = AttentionMap(query, one.key, one.rule, ndim=3)
    whole = float((one.dense() - other.dense()).abs().max())
    for block in (1, 100, 1 << 22):
        monkeypatch.setattr(calls, "BLOCK", block)
        assert largest_difference_on_page(one, other) == pytest.approx(whole, abs=1e-7)
    assert largest_difference_on_page(one, one) == 0


def test_numbers_that_are_none_are_refused() -> None:
    weights = map_of(ScoreRule(0.5))
    weights.query[0, 1, 2, 3] = math.nan
    with pytest.raises(RegardError, match="layer 3: its queries hold infinite numbers or NaN"):
        call_data(weights, NAME, NumberStore())
    bias = torch.zeros(1, 1, 20, 23)
    bias[0, 0, 4, 4] = math.nan
    with pytest.raises(RegardError, match="layer 3: its weights hold NaN"):
        call_data(map_of(ScoreRule(0.5, bias=bias)), NAME, NumberStore())


def test_a_rule_that_a_page_cannot_have_is_refused_with_its_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.web.call.DENSE", 10)
    with pytest.raises(RegardError, match="layer 3: the bias has 460 numbers"):
        call_data(map_of(RULES["dense bias"]), NAME, NumberStore())


@pytest.mark.parametrize(("name", "side"), [("overview", 256), ("small", 32)])
def test_an_overview_has_the_mean_of_each_cell_and_a_small_one_the_largest_of_these(name: str, side: int) -> None:
    torch.manual_seed(0)
    length, size = 1100, 300
    query, key = (torch.randn(1, 2, n, 8, dtype=torch.float64) * 3 for n in (length, size))
    weights, numbers = AttentionMap(query, key, ScoreRule(0.5, mask=Mask(high=10)), ndim=3), NumberStore()
    weights.keep_statistics(Statistics.only(pooled=(256, 256)))
    kept = weights.pooled(256, 256).clone()
    says = call_data(weights, NAME, numbers)[name]
    assert torch.equal(weights.pooled(256, 256), kept)
    assert (says["rows"], says["cols"]) == (side, side)
    found, dense = stored(numbers).overview(says), weights.dense().double().numpy()
    rows, cols = (np.arange(257) * count // 256 for count in (length, size))
    by = 256 // side
    for head in range(2):
        for r, c in ((0, 0), (3, 7), (side // 2 - 8, side // 2 - 9), (side - 1, side - 1), (side // 3, 3)):
            means = (
                dense[head, rows[p] : rows[p + 1], cols[q] : cols[q + 1]].mean()
                for p in range(r * by, (r + 1) * by) for q in range(c * by, (c + 1) * by)
            )  # fmt: skip
            cell = max(means)
            # a code is off by half of 1/65535 of the square root
            step = says["largest"][head] * (2 * math.sqrt(cell / says["largest"][head]) + 1e-5) / 65535
            assert abs(found[head, r, c] - cell) <= 0.51 * step + 1e-7
    assert call_data(map_of(ScoreRule(0.5)), NAME, NumberStore())[name] is None
