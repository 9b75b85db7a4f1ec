"""The promise of `parse_map_index`: x[np.ix_(needed)][finish] is x[index]."""

from typing import Any

import numpy as np
import pytest
import torch

from regard.attention.indexing import parse_map_index

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    "index",
    [
        (),
        ...,
        1,
        (slice(1, None), [0, 0, 3]),
        (None, 1, None, ..., -1),
        (slice(None, None, -1),),
        ([True, False, True], slice(0, 2)),
        (np.array([2, 0]), np.array([1, -1])),
        (slice(2, 1),),
        (range(2),),
    ],
    ids=str,
)
def test_needed_then_finish(index: Any) -> None:
    x = torch.arange(12).reshape(3, 4)
    needed, finish = parse_map_index(index, (3, 4), CPU)
    places = [np.arange(n)[p] if isinstance(p, slice) else p.numpy() for p, n in zip(needed, x.shape, strict=True)]
    given = tuple(list(p) if isinstance(p, range) else p for p in index) if isinstance(index, tuple) else index
    right = x.numpy()[given]
    ending = tuple(f.numpy() if isinstance(f, torch.Tensor) else f for f in finish)
    assert np.array_equal(x.numpy()[np.ix_(*places)][ending], right)


def test_only_what_is_named_is_needed() -> None:
    needed, _ = parse_map_index((5, slice(10, 20), [7, 3, 7]), (9, 100, 50), CPU)
    assert needed[:2] == [slice(5, 6), slice(10, 20)]
    assert needed[2].tolist() == [3, 7]
