"""One walk over a block of queries, against the softmax in float64."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.attention.masks import Mask
from regard.attention.scores import ScoreRule
from regard.server.cell_mean_kernel import CELL, tiled_cell_means


@settings(max_examples=25, deadline=None)
@given(
    blocks=st.integers(0, 3), rows=st.integers(1, 67), size=st.integers(1, 2311), width=st.sampled_from([3, 7, 13]),
    low=st.none() | st.integers(-900, 0), high=st.none() | st.integers(0, 900), sink=st.booleans(),
    seed=st.integers(0, 1000),
)  # fmt: skip
def test_means_and_row_sums_of_any_block(
    blocks: int, rows: int, size: int, width: int, low: int | None, high: int | None, sink: bool, seed: int
) -> None:
    start, draws = blocks * 11 * CELL, torch.Generator().manual_seed(seed)
    query, key = (3 * torch.randn(n, width, generator=draws) for n in (start + rows, size))
    mask = None if low is None and high is None else Mask(low=low, high=high)
    rule = ScoreRule(scale=0.7, mask=mask, sinks=torch.tensor([1.5]) if sink else None)
    means, row_max, row_sum = tiled_cell_means(query, key, rule, start, start + rows)

    ahead = np.arange(size) - np.arange(start, start + rows)[:, None]
    scores = 0.7 * (query[start:].double() @ key.double().T).numpy()
    scores[(ahead < (-np.inf if low is None else low)) | (ahead > (np.inf if high is None else high))] = -np.inf
    joined = np.concatenate([scores, np.full((rows, 1), 1.5)], 1) if sink else scores
    best = joined.max(1)
    sums = np.where(np.isinf(best), 0, np.exp(joined - np.where(np.isinf(best), 0, best)[:, None]).sum(1))
    weights = np.exp(scores - np.where(np.isinf(best), 0, best)[:, None]) / np.where(sums == 0, 1, sums)[:, None]
    expected = [
        [weights[r : r + CELL, c : c + CELL].mean() for c in range(0, size, CELL)] for r in range(0, rows, CELL)
    ]
    np.testing.assert_allclose(means.numpy(), expected, atol=1e-7, rtol=2e-5)
    np.testing.assert_allclose(row_max.numpy(), best, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(row_sum.numpy(), sums, rtol=2e-5)
