"""Which routine computes statistics, and that both compute the same."""

import pytest
import torch

from regard.attention import masks
from regard.attention.kernels import statistics
from regard.attention.kernels.cpu import statistics as cpu_statistics
from regard.attention.map_statistics import Statistics
from regard.attention.scores import ScoreRule
from tests.attention.cases import random

REQUEST = Statistics(3, (4, 5))


@pytest.mark.parametrize(
    ("limit", "dtype", "tiles"),
    [(13 * 17 * 6, torch.float32, True), (13 * 17 * 6 + 1, torch.float32, False), (0, torch.float64, False)],
)
def test_the_cpu_s_own_pass_is_for_large_maps(
    limit: int, dtype: torch.dtype, tiles: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    used, compute = [], cpu_statistics.compute
    monkeypatch.setattr(cpu_statistics, "compute", lambda *a: used.append(True) or compute(*a))
    monkeypatch.setattr(statistics, "CPU_SCORES", limit)
    query, key = random(0, 2, 3, 13, 5, dtype=dtype), random(1, 2, 1, 17, 5, dtype=dtype)
    rule = ScoreRule(0.5, mask=masks.window(6, 6, 2), sinks=random(2, 3, dtype=dtype))
    ours, right = statistics.compute(query, key, rule, REQUEST, 2), statistics.blockwise(query, key, rule, REQUEST, 2)
    assert bool(used) is tiles
    for name, tensor in vars(ours).items():
        torch.testing.assert_close(tensor, getattr(right, name), atol=1e-6, rtol=1e-5)


def test_progress_adds_up_to_one() -> None:
    query, shares = random(0, 3, 2, 1100, 4), []
    statistics.blockwise(query, query, ScoreRule(0.5), Statistics.only(entropy=True), 0, shares.append)
    assert len(shares) > 1
    assert sum(shares) == pytest.approx(1.0)
