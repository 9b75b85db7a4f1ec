import numpy as np
import pytest

from regard.corpus.asking.nearest import BLOCK, cosines, largest


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
