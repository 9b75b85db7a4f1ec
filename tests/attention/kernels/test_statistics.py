"""Which routine computes statistics, and that both compute the same."""

import pytest
import torch

from regard.attention import masks, reference
from regard.attention.attend import attend
from regard.attention.given_map import one_head
from regard.attention.kernels import statistics
from regard.attention.kernels.cpu import statistics as cpu_statistics
from regard.attention.map_statistics import Statistics
from regard.attention.scores import ScoreRule
from regard.server.cell_means import CELL, cell_means, region_cell_means
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


LENGTHS = (61, 613, 1103)  # small, by the CPU's own pass, and with regions of the product in fixed order
BOUND = 1e-6


def check_against_float64(inputs: dict[str, torch.Tensor], length: int, computed_with_output: bool) -> None:
    """Hold every answer of a map against float64, within one bound; entropy and distance of their largest possible."""
    exact = reference.attention(**inputs)
    weights = attend(**inputs, statistics=computed_with_output).weights
    found = weights.statistics(top=8, pooled=(7, 11))
    keys = reference.top(exact.scores, 8)
    largest = exact.weights.gather(-1, keys.clamp(min=0)).masked_fill(keys < 0, 0.0)
    for ours, right, whole in (
        (weights.dense(), exact.weights, 1.0),
        (weights[0, 0, 3:50, 5:40], exact.weights[0, 0, 3:50, 5:40], 1.0),
        (found.values, largest, 1.0),
        (found.received, reference.received(exact.weights), 1.0),
        (found.pooled, reference.pooled(exact.weights, 7, 11), 1.0),
        (found.entropy, reference.entropy(exact.weights, exact.sink_share), 7.0),
        (found.distance, reference.distance(exact.scores), float(length)),
    ):
        assert ours is not None
        torch.testing.assert_close(ours.double() / whole, right / whole, atol=BOUND, rtol=0)
    torch.testing.assert_close(weights.scores[0, 1].double(), exact.scores[0, 1], atol=2e-3, rtol=0)
    row_max, row_sum = weights.row_max_sum()
    of_scores = torch.exp(exact.scores - row_max[..., None]) / row_sum[..., None]
    torch.testing.assert_close(of_scores, exact.weights, atol=1e-3, rtol=0)


@pytest.mark.parametrize("computed_with_output", [False, True])
@pytest.mark.parametrize("length", LENGTHS)
def test_biases_of_whole_rows_cost_no_answer_its_precision(length: int, computed_with_output: bool) -> None:
    """A score near -10,000 is rounded by 5e-4 in float32; what all scores of a query share is taken off before."""
    query, key, value = (random(n, 1, 2, length, 7) for n in range(3))
    far = torch.zeros(1, 1, length, 1)
    far[:, :, length // 3 : length // 2] = -1e4
    for bias in (
        far.expand(1, 1, length, length),
        far,
        far + random(3, 1, 2, 1, length),
        3000 * random(4, 1, 2, length, 1),
    ):
        inputs = {"query": query, "key": key, "value": value, "bias": bias}
        check_against_float64(inputs, length, computed_with_output)


@pytest.mark.parametrize("computed_with_output", [False, True])
@pytest.mark.parametrize("length", LENGTHS)
def test_biases_of_forbidden_keys_do_not_count(length: int, computed_with_output: bool) -> None:
    """The biases of the allowed keys are all far from 0; some that the mask forbids are 0."""
    query, key, value = (random(n, 1, 2, length, 7) for n in range(3))
    all_but_last = torch.full((1, 1, 1, length), -1e4)
    all_but_last[..., -1] = 0.0
    for bias in (torch.full((1, 1, length, length), -1e4).tril(), all_but_last):
        inputs = {"query": query, "key": key, "value": value, "bias": bias, "causal": True}
        check_against_float64(inputs, length, computed_with_output)


@pytest.mark.parametrize("size", [0, 3])
def test_a_bias_without_queries_or_keys(size: int) -> None:
    query, key = random(0, 1, 2, 3 - size, 5), random(1, 1, 2, size, 5)
    done = attend(query, key, key, bias=random(2, 1, 2, 3 - size, size), statistics=True)
    assert done.output.shape == query.shape
    assert not done.output.any()
    assert done.weights.dense().shape == (1, 2, 3 - size, size)
    assert not done.weights.received().any()


@pytest.mark.parametrize("length", LENGTHS)
def test_rows_at_the_smallest_number_there_is(length: int) -> None:
    """As masks of finfo.min leave them: float64 cannot tell these scores apart either, so all weights are alike."""
    query, key, value = (random(n, 1, 2, length, 7) for n in range(3))
    bias = torch.zeros(1, 1, length, length)
    bias[:, :, length // 3 : length // 2] = torch.finfo(torch.float32).min
    inputs = {"query": query, "key": key, "value": value, "bias": bias}
    exact, found = reference.attention(**inputs), attend(**inputs)
    torch.testing.assert_close(found.output.double(), exact.output, atol=BOUND, rtol=0)
    torch.testing.assert_close(found.weights.dense().double(), exact.weights, atol=BOUND, rtol=0)
    torch.testing.assert_close(found.weights.received().double(), reference.received(exact.weights), atol=BOUND, rtol=0)
    masked = attend(**inputs, causal=True).weights.received()
    exact = reference.attention(**inputs, causal=True)
    torch.testing.assert_close(masked.double(), reference.received(exact.weights), atol=BOUND, rtol=0)


@pytest.mark.parametrize("computed_with_output", [False, True])
@pytest.mark.parametrize("length", LENGTHS)
def test_distances_where_sinks_take_all(length: int, computed_with_output: bool) -> None:
    query, key, value = (random(n, 1, 2, length, 7) for n in range(3))
    for sinks in (torch.tensor([40.0, 0.5]), torch.tensor([150.0, 600.0])):
        inputs = {"query": query, "key": key, "value": value, "sinks": sinks}
        check_against_float64(inputs, length, computed_with_output)
    alone = attend(query, key, value, sinks=torch.tensor([150.0, 2000.0])).weights.distance()
    bare = reference.attention(query, key, value)  # a distance does not depend on what the sink takes
    torch.testing.assert_close(alone.double() / length, reference.distance(bare.scores) / length, atol=BOUND, rtol=0)


def test_means_of_cells_with_biases_of_whole_rows() -> None:
    query, key, value = (random(n, 1, 1, 1103, 7) for n in range(3))
    weights = one_head(attend(query, key, value, bias=3000 * random(4, 1, 1, 1103, 1)).weights, 0)
    means = torch.cat([each for _, each in cell_means(weights)])
    dense = weights.dense().reshape(1103, 1103)
    torch.testing.assert_close(means, region_cell_means(dense, CELL), atol=1e-6, rtol=0)
