"""What the page's components compute before they draw: orders, places, axes, cells; in Node."""

import numpy as np
import pytest
import torch

from tests.support.node import call
from tests.web.test_region import runs as made_runs


@pytest.mark.parametrize("head", [0, 1, None])
def test_runs_tell_what_a_mask_forbids_as_the_mask_does(head: int | None) -> None:
    allowed = np.random.default_rng(3).random((2, 9, 14)) < 0.6
    allowed[1, 4] = False  # no key at all
    runs = made_runs(allowed)
    expected = allowed.any(0) if head is None else allowed[head]
    for query, key in [(0, 0), (4, 3), (8, 13), *np.random.default_rng(4).integers(0, 9, (12, 2)).tolist()]:
        assert call("attention/mask", "allows", runs, head, query, key) == expected[query, key]


@pytest.mark.parametrize(
    ("i", "j", "allowed"), [(5, 6, True), (5, 7, False), (5, 2, True), (5, 1, False), (0, 0, True)]
)
def test_a_band_tells_what_a_mask_forbids(i: int, j: int, allowed: bool) -> None:
    assert call("attention/mask", "allows", {"kind": "band", "low": -3, "high": 1}, None, i, j) is allowed


@pytest.mark.parametrize("head", [0, 1, None])
def test_fewer_cells_of_an_overview_are_means_of_weights(head: int | None) -> None:
    """1100 queries in 256 rows are 4 or 5 in each: cells count for as many weights as they are of."""
    weights = torch.rand(2, 1100, 30, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    overview = torch.stack([means(each, 256, 30) for each in weights])
    largest = overview.amax((1, 2))
    codes = ((overview / largest[:, None, None]).sqrt() * 65535).round().long()
    described = {"rows": 256, "cols": 30, "largest": largest.tolist()}
    found = call(
        "views/fewer_cells", "fewer", codes.flatten().tolist(), described, [1100, 30], head, [16, 7]
    )  # 16 divides 256: the edges of cells are the weights' own
    shown = weights.mean(0) if head is None else weights[head]
    rows = [slice(r * 1100 // 16, (r + 1) * 1100 // 16) for r in range(16)]
    cols = [slice(c * 30 // 7, (c + 1) * 30 // 7) for c in range(7)]
    expected = torch.tensor([[float(shown[r, c].mean()) for c in cols] for r in rows])
    assert float((torch.tensor(found).view(16, 7) - expected).abs().max()) < 1e-4


def means(matrix: torch.Tensor, rows: int, cols: int) -> torch.Tensor:
    """The mean of every cell of a matrix in rows × cols cells."""
    height, width = matrix.shape
    return torch.tensor(
        [
            [
                float(
                    matrix[
                        r * height // rows : (r + 1) * height // rows, c * width // cols : (c + 1) * width // cols
                    ].mean()
                )
                for c in range(cols)
            ]
            for r in range(rows)
        ]
    )
