"""Means of a band of weights, by query and by offset, against a plain loop."""

import pytest
import torch

from regard.explain.matrices import (
    REACH,
    BandSums,
    Distant,
    NearSums,
    matrix_band_of_windows,
    offer_rows,
    offset_means,
)
from regard.questions.map.whole import matrix, windowed

TEXT = "The man sat down on the bank of the river and counted the money that he had taken from the bank. " * 16


def test_a_cell_without_a_pair_is_none() -> None:
    band = BandSums(2, 2, -1, 1)
    band.add(0, band.cells(torch.arange(2), torch.arange(2)), torch.tensor([[0.25, 0.75], [1.0, 0.0]]))
    # offsets -1 and (0, 1): query 0 has no key before it
    assert band.means(1) == [[None, 0.5], [1.0, 0.0]]


def test_the_offsets_of_windows() -> None:
    rows = [(0, 4, 0, 6), (5, 9, 3, 9)]  # queries 0 to 4 see keys 0 to 6, queries 5 to 9 keys 3 to 9
    assert matrix_band_of_windows(rows, causal=False) == (-6, 6)
    assert matrix_band_of_windows(rows, causal=True) == (-6, 0)


def test_rows_of_a_window_are_numbered_as_in_the_whole_text() -> None:
    best = Distant(1, 2)
    weights = torch.tensor([[0.1, 0.2, 0.3, 0.4]])
    offer_rows(best, weights, 2, torch.tensor([0]), torch.tensor([False, False, False, True]), shift=100)
    assert best.found() == [(pytest.approx(0.3), 2, 100, 102)]  # key 3 is special, keys 0 and 1 are near
    assert best.least == 0.0  # there is room for one more


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
    sums = NearSums(1, 3)
    spots = sums.cells(torch.arange(2), torch.arange(2))
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
