"""The largest weights between distant tokens, against a search of the whole matrix."""

import pytest
import torch

import regard
from regard.explain.matrices.distant_weights import Distant, offer_rows, whole_map


@pytest.mark.parametrize("listed", [1, 3, 41])
def test_a_whole_map_is_searched_exactly(listed: int) -> None:
    torch.manual_seed(0)
    heads, length, far, count = 3, 41, 7, 13
    query, key, value = (torch.randn(heads, length, 5) for _ in range(3))
    weights = regard.attend(query, key, value).weights
    special = torch.zeros(length, dtype=torch.bool)
    special[[0, 17, 40]] = True
    values, keys = weights.top(listed)
    dense = weights.dense()
    every = [
        (float(dense[h, i, j]), h, i, j)
        for h in range(heads)
        for i in range(length)
        for j in range(length)
        if abs(i - j) > far and not special[i] and not special[j]
    ]
    every.sort(key=lambda each: (-each[0], each[1:]))
    found = whole_map(weights, values, keys, special, far, count).found()
    assert [each[1:] for each in found] == [each[1:] for each in every[:count]]
    for (ours, *_), (theirs, *_) in zip(found, every, strict=False):
        assert ours == pytest.approx(theirs, abs=1e-6)


def test_rows_of_a_window_are_numbered_as_in_the_whole_text() -> None:
    best = Distant(1, 2)
    weights = torch.tensor([[0.1, 0.2, 0.3, 0.4]])
    offer_rows(best, weights, 2, torch.tensor([0]), torch.tensor([False, False, False, True]), shift=100)
    assert best.found() == [(pytest.approx(0.3), 2, 100, 102)]  # key 3 is special, keys 0 and 1 are near
    assert best.least == 0.0  # there is room for one more
