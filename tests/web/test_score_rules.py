import math
import zlib

import numpy as np
import pytest
import torch

from regard.attention import masks
from regard.attention.attention_map import AttentionMap
from regard.attention.masks import Edges, Mask
from regard.attention.scores import ScoreRule
from regard.errors import RegardError
from regard.web import score_rules
from regard.web.numbers import NumberStore
from regard.web.score_rules import bias_data, mask_data, page_bias_by_offset, score_rule_for_page
from tests.support.web_pages import from_byte_planes, stored

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
    monkeypatch.setattr(score_rules, "BAND", rows * S)
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
    monkeypatch.setattr(score_rules, "RUNS", 5)
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
    monkeypatch.setattr(score_rules, "BAND", rows * S)
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
    monkeypatch.setattr(score_rules, "DENSE", 10)
    with pytest.raises(RegardError, match=r"the bias has 63 numbers that follow neither .* 10 are the most"):
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
