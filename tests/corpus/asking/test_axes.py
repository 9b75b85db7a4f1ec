import numpy as np
import pytest
import torch

from regard.corpus.asking.axes import principal_axes
from regard.corpus.asking.clusters import unit
from regard.explain.vectors.planes import plane


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
