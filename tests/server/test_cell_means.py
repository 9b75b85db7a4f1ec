"""Means of cells against the dense weights, and the row sums that they leave with the map."""

import pytest
import torch

from regard import attend
from regard.attention.attention_map import AttentionMap
from regard.attention.given_map import one_head
from regard.attention.masks import causal, function, window
from regard.server.cell_means import CELL, ROWS, cell_means, region_cell_means

RULES = {
    "full": {},
    "causal": {"causal": True},
    "window": {"mask": window(300, 7)},
    "function": {"mask": function(lambda i, j: (i + j) % 3 != 0)},
    "causal and a function": {"mask": causal() & function(lambda i, j: (i - j) % 5 != 1)},
    "bias": {"bias": torch.linspace(-2, 2, 1109)},
    "sinks": {"sinks": torch.tensor([0.5, 3.0])},
    "softcap": {"softcap": 2.0},
    "queries without a key": {"mask": function(lambda i, j: (i % 4 != 1) & (j >= 0))},
}


def made(length: int, size: int, dtype: torch.dtype = torch.float32, **how: object) -> AttentionMap:
    draws = torch.Generator().manual_seed(0)
    query = 2 * torch.randn(2, length, 7, generator=draws)
    key, value = (2 * torch.randn(1, size, 7, generator=draws) for _ in range(2))
    return attend(query.to(dtype), key.to(dtype), value.to(dtype), **how).weights  # type: ignore[arg-type]


def by_definition(dense: torch.Tensor) -> torch.Tensor:
    rows = [dense[start : start + CELL].mean(0) for start in range(0, len(dense), CELL)]
    both = torch.stack(rows)
    return torch.stack([both[:, start : start + CELL].mean(1) for start in range(0, dense.shape[1], CELL)], 1)


@pytest.mark.parametrize("rule", RULES)
def test_cells_are_the_means_of_their_weights(rule: str) -> None:
    weights = one_head(made(1361, 1109, **RULES[rule]), 1)
    bands = list(cell_means(weights))
    assert [first for first, _ in bands] == sorted({first // ROWS * ROWS for first, _ in bands})
    found = torch.cat([band for _, band in bands])
    torch.testing.assert_close(found.double(), by_definition(weights.dense()[0].double()), atol=1e-7, rtol=1e-5)


@pytest.mark.parametrize(("length", "size"), [(1, 1), (61, 20011), (20011, 61), (17, 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_other_shapes_and_dtypes(length: int, size: int, dtype: torch.dtype) -> None:
    weights = one_head(made(length, size, dtype), 0)
    found = torch.cat([band for _, band in cell_means(weights)])
    torch.testing.assert_close(found.double(), by_definition(weights.dense()[0].double()), atol=1e-7, rtol=1e-5)


def test_the_walk_leaves_the_row_sums_that_regions_are_read_with(monkeypatch: pytest.MonkeyPatch) -> None:
    weights, fresh = (one_head(made(1361, 1109, causal=True), 1) for _ in range(2))
    for _ in cell_means(weights):
        pass
    maximum, total = fresh.row_max_sum()
    monkeypatch.setattr("regard.attention.region_scores.cpu", None)  # there is nothing left to compute
    left_maximum, left_total = weights.row_max_sum()
    # A score near 0 is a difference of large products: its rounding error is relative to the largest score.
    torch.testing.assert_close(left_maximum, maximum, rtol=0, atol=1e-6 * maximum.abs().max().item())
    torch.testing.assert_close(left_total, total, rtol=1e-6, atol=0)
    torch.testing.assert_close(weights[0, 700:720, 300:310], fresh.dense()[0, 700:720, 300:310], rtol=2e-6, atol=0)


def test_scores_of_thousands_keep_their_precision() -> None:
    query, key = (40 * torch.randn(1, 1500, 16, generator=torch.Generator().manual_seed(n)) for n in (1, 2))
    weights = attend(query, key, key, causal=True).weights
    found = torch.cat([band for _, band in cell_means(weights)])
    rows = weights.dense()[0].double()
    torch.testing.assert_close(found.double(), by_definition(rows), atol=1e-7, rtol=1e-5)
    assert rows.sum(-1).sub(1).abs().max() < 1e-5


def test_it_goes_on_from_a_later_query() -> None:
    weights = one_head(made(1361, 1109), 0)
    whole = torch.cat([band for _, band in cell_means(weights)])
    (first, band), *_ = cell_means(weights, 1024)
    assert first == 1024
    torch.testing.assert_close(band, whole[1024 // CELL : 1024 // CELL + len(band)])


def test_means_of_what_is_left_at_the_ends() -> None:
    torch.testing.assert_close(
        region_cell_means(torch.arange(15.0).reshape(3, 5), 2), torch.tensor([[3.0, 5.0, 6.5], [10.5, 12.5, 14.0]])
    )
