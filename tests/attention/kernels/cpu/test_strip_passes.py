"""What is read off a strip of equal scores, which can be said beforehand; what it does to the strip itself."""

import math

import numpy as np
import pytest

from regard.attention.kernels.cpu import strip_passes

ROWS, SIZE, SEEN, TOP, CELLS = 9, 600, 500, 3, 4  # rows: eight together and one; columns: two groups and a rest
NONE = np.float32(-np.inf)


def read_off(score: float, sink: np.float32, start: int = 0) -> dict[str, np.ndarray]:
    """A strip of equal scores, of which row i sees the first SEEN + i columns; row i stands at SEEN - 1 + i."""
    strip = np.full((ROWS, SIZE), score, np.float32)
    rows = {
        name: np.empty(ROWS, np.float32) for name in ("entropy", "distance", "shares", "inverse", "max", "sum", "lse")
    }
    received, picture = np.zeros(SIZE), np.zeros((2, CELLS))
    values, keys = np.empty((ROWS, TOP), np.float32), np.empty((ROWS, TOP), np.int64)
    away = np.abs(np.arange(2 * SIZE) - SIZE).astype(np.float32)
    chunks, band = np.empty(SIZE, np.float32), np.zeros(SIZE, np.float32)
    strip_passes.read_off_strip_statistics(
        strip, start, -(1 << 40), SEEN, SIZE - SEEN + 1, away, np.array([0, 8, ROWS]), np.array([0, 1]), sink, chunks,
        band, received, np.arange(CELLS + 1) * SIZE // CELLS, picture, values, keys, *rows.values(),
    )  # fmt: skip
    assert not band.any()
    return rows | {"strip": strip, "received": received, "picture": picture, "values": values, "keys": keys}


@pytest.mark.parametrize("score", [0.0, -7.0, 3e4])
def test_equal_scores(score: float) -> None:
    found = read_off(score, NONE, start=1000)
    seen = SEEN + np.arange(ROWS)
    allowed = np.arange(SIZE) < seen[:, None]
    weights = allowed / seen[:, None]
    assert np.array_equal(found["strip"], allowed)  # exp(score - row maximum), and 0 where nothing is seen
    np.testing.assert_allclose(found["inverse"], 1 / seen, rtol=1e-6)
    np.testing.assert_allclose(found["entropy"], np.log(seen), rtol=1e-6)
    np.testing.assert_allclose(found["distance"], (seen - 1) / 2, rtol=1e-6)
    np.testing.assert_allclose(found["received"], weights.sum(0), rtol=1e-6)
    cells = weights.reshape(ROWS, CELLS, -1).sum(-1)
    np.testing.assert_allclose(found["picture"], [cells[:8].sum(0), cells[8]], rtol=1e-6)
    assert (found["keys"] == 1000 + np.arange(TOP)).all()  # ties go to the smaller key
    np.testing.assert_allclose(found["values"], np.repeat(1 / seen[:, None], TOP, 1), rtol=1e-6)
    np.testing.assert_allclose(found["lse"], score + np.log(seen), rtol=1e-6)
    assert np.array_equal(found["sum"], seen)
    assert not found["shares"].any()


def test_a_sink_takes_as_much_as_all_keys_together() -> None:
    sink = np.float32(math.log(SEEN))
    found = read_off(0.0, sink)
    share = SEEN / (SEEN + SEEN + np.arange(ROWS))
    np.testing.assert_allclose(found["shares"], share, rtol=1e-6)
    np.testing.assert_allclose(found["received"].sum(), (1 - share).sum(), rtol=1e-6)
    each = (1 - share) / (SEEN + np.arange(ROWS))
    entropy = -(1 - share) * np.log(each) - share * np.log(share)
    np.testing.assert_allclose(found["entropy"], entropy, rtol=1e-6)
    np.testing.assert_allclose(found["distance"], (SEEN - 1 + np.arange(ROWS)) / 2, rtol=1e-6)


@pytest.mark.parametrize("sink", [NONE, np.float32(2.0)])
def test_rows_that_see_nothing(sink: np.float32) -> None:
    found = read_off(-math.inf, sink)
    for name in ("strip", "inverse", "entropy", "distance", "received", "picture", "values"):
        assert not found[name].any(), name
    assert (found["keys"] == -1).all()
    assert (found["shares"] == (0.0 if sink == NONE else 1.0)).all()
    assert (found["lse"] == sink).all()
