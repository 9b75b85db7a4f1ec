"""None"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard.corpus.asking.vectors import BLOCK, cosines, find_nearest_rows, largest, principal_axes, unit
from regard.corpus.store import Store
from regard.explain.vectors.planes import plane
from tests.support.stores import Document, write_store


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("count", [0, 1, BLOCK - 1, BLOCK, 2 * BLOCK + 3])
def test_cosines_are_exact_in_every_block(dtype: type, count: int) -> None:
    random = np.random.default_rng(0)
    whole = random.standard_normal((count, 2, 13)).astype(dtype)
    vectors, query = whole[:, 1], random.standard_normal(13).astype(np.float32)
    exact = vectors.astype(np.float64) @ query / np.linalg.norm(query)
    exact /= np.maximum(np.linalg.norm(vectors.astype(np.float64), axis=1), 1e-30)
    np.testing.assert_allclose(cosines(vectors, query), exact, atol=1e-6)


def test_zero_vectors_have_cosine_zero() -> None:
    assert cosines(np.zeros((2, 3), np.float16), np.ones(3, np.float32)).tolist() == [0, 0]
    assert cosines(np.ones((2, 3), np.float16), np.zeros(3, np.float32)).tolist() == [0, 0]


def test_the_largest_come_first_and_ties_keep_their_order() -> None:
    scores = np.array([1, 5, 3, 5, 2, 5], np.float32)
    assert [largest(scores, top).tolist() for top in (0, 1, 2, 4, 9)] == [
        [], [1], [1, 3], [1, 3, 5, 2], [1, 3, 5, 2, 4, 0]
    ]  # fmt: skip


def test_points_are_those_of_the_plane_of_most_variance() -> None:
    vectors = np.random.default_rng(0).standard_normal((29, 7)).astype(np.float32)
    points, share = principal_axes(vectors, 2)
    expected = plane(torch.from_numpy(unit(vectors)))
    np.testing.assert_allclose(points, expected.place(torch.from_numpy(unit(vectors))), atol=1e-6)
    assert share == pytest.approx(expected.share, abs=1e-6)


def test_order_along_the_first_axis_and_vectors_that_are_alike() -> None:
    points, _ = principal_axes(np.array([[1, 0.3], [1, -0.3], [1, 0.1], [1, 0]], np.float32), 1)
    assert np.argsort(points[:, 0]).tolist() == [1, 3, 2, 0]
    same, share = principal_axes(np.ones((3, 5), np.float32), 2)
    np.testing.assert_allclose(same, 0, atol=1e-6)
    assert all(0 <= each <= 1 for each in share)


def test_they_are_those_of_all_rows(tmp_path: Path) -> None:
    drawn = np.random.default_rng(5)
    shards: list[Any] = []
    for count in (3, 1, 7):
        documents = [Document(f"d{count}-{n}", "one two three") for n in range(count)]
        shards.append((documents, drawn.normal(size=(3 * count, 1, 5)).astype(np.float32)))
    query = drawn.normal(size=5).astype(np.float32)
    with Store(write_store(tmp_path / "s", shards)) as store:
        kept = {(shard, first + n): v for shard, first, some in store.all_vectors() for n, v in enumerate(some)}
        cosines = {
            key: float(v.astype(np.float64) @ query / np.linalg.norm(v.astype(np.float64)) / np.linalg.norm(query))
            for key, v in kept.items()
        }
        for top in (1, 4, 33, 50):
            rows, similarity = find_nearest_rows(store, query, top)
            expected = sorted(cosines, key=lambda key: -cosines[key])[:top]
            found = list(zip(rows.shard, rows.row.tolist(), strict=True))
            assert set(found) == set(expected)
            np.testing.assert_allclose(similarity, [cosines[key] for key in found], atol=1e-3)
