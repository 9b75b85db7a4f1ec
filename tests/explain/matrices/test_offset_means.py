"""Means by offset, against loops over all pairs."""

import pytest
import torch

from regard.explain.matrices.offset_means import REACH, OffsetSums, offset_means
from regard.questions.map.whole import matrix
from regard.questions.map.windowed import windowed

TEXT = "The man sat down on the bank of the river and counted the money that he had taken from the bank. " * 16


def looped(dense, offset: int) -> float:
    return float(torch.diagonal(dense.double(), offset).mean())


def test_a_whole_map(minilm) -> None:
    trace = minilm.trace(TEXT, layers=[1])
    weights = trace.attention[1]
    found = offset_means(weights)
    assert len(trace.tokens) > 256  # more rows than are read at once
    assert (found.first, len(found.values), len(found.values[0])) == (-REACH, 12, 2 * REACH + 1)
    for head in (0, 7, 11):
        dense = weights[head]
        for offset in (-REACH, -7, -1, 0, 1, 30, REACH):
            assert found.values[head][offset + REACH] == pytest.approx(looped(dense, offset), rel=1e-5)
    for near, values in ((matrix(trace, 1).near, found.values), (matrix(trace, 1, 7).near, [found.values[7]])):
        assert near.first == found.first
        torch.testing.assert_close(torch.tensor(near.values), torch.tensor(values), rtol=1e-5, atol=1e-9)


def test_a_short_text_reaches_as_far_as_it_goes(bank) -> None:
    found = offset_means(bank[0].attention[2])
    length = len(bank[0].tokens)
    assert found.first == 1 - length
    assert found.values[3][0] == pytest.approx(float(bank[0].attention[2][3][-1, 0]), rel=1e-6)


def test_an_offset_without_a_pair_is_none() -> None:
    sums = OffsetSums(1, 3)
    spots = sums.spots(torch.arange(2), torch.arange(2))
    sums.add(0, spots, torch.tensor([[0.25, 0.75], [0.5, 0.5]]))
    assert sums.means().values == [[None, 0.5, 0.375, 0.75, None]]


def test_windows_count_the_pairs_of_one_window(minilm) -> None:
    plan, windows = minilm.stream(TEXT, window=64, layers=[2])
    windows = list(windows)
    found = windowed(plan, windows, 2, top=3, far=9)
    sources = plan.sources(False)
    sums: dict[int, list[float]] = {}
    for query, number in enumerate(sources):
        weights, shift = windows[number].attention[2][3], plan.shift(number)
        start, stop = plan.spans[number]
        first = start - (plan.before if number == 0 else 0)
        last = stop + (plan.after if number == len(plan.spans) - 1 else 0)
        for key in range(first, last):
            sums.setdefault(key - query, []).append(float(weights[query - shift, key - shift]))
    for offset in (-20, -1, 0, 1, 5):
        expected = sum(sums[offset]) / len(sums[offset])
        assert found.near.values[3][offset - found.near.first] == pytest.approx(expected, rel=1e-5)
