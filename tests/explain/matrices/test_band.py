"""Means of a band of weights, by query and by offset, against a plain loop."""

import torch

from regard.explain.matrices.band import BandSums, matrix_band_of_windows


def test_means_of_uneven_cells() -> None:
    torch.manual_seed(0)
    length, heads, parts, low, high = 11, 2, 4, -5, 3
    weights = torch.rand(heads, length, length)
    band = BandSums(length, parts, low, high)
    for rows in torch.arange(length).split(3):
        spots = band.spots(rows, torch.arange(length))
        for head in range(heads):
            band.add(spots, weights[head, rows])
    cells: dict[tuple[int, int], list[float]] = {}
    count = high - low + 1
    for i in range(length):
        for j in range(length):
            if low <= j - i <= high:
                p = max(p for p in range(parts) if p * length // parts <= i)
                q = max(q for q in range(parts) if q * count // parts <= j - i - low)
                cells.setdefault((p, q), []).extend(weights[:, i, j].tolist())
    found = band.means(heads)
    assert len(found) == len(found[0]) == parts
    for p in range(parts):
        for q in range(parts):
            mean = found[p][q]
            assert (mean is None) == ((p, q) not in cells)
            if mean is not None:
                assert abs(mean - sum(cells[p, q]) / len(cells[p, q])) < 1e-6


def test_a_cell_without_a_pair_is_none() -> None:
    band = BandSums(2, 2, -1, 1)
    band.add(band.spots(torch.arange(2), torch.arange(2)), torch.tensor([[0.25, 0.75], [1.0, 0.0]]))
    # offsets -1 and (0, 1): query 0 has no key before it
    assert band.means(1) == [[None, 0.5], [1.0, 0.0]]


def test_the_offsets_of_windows() -> None:
    rows = [(0, 4, 0, 6), (5, 9, 3, 9)]  # queries 0 to 4 see keys 0 to 6, queries 5 to 9 keys 3 to 9
    assert matrix_band_of_windows(rows, causal=False) == (-6, 6)
    assert matrix_band_of_windows(rows, causal=True) == (-6, 0)
