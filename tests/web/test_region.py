"""The page's blocked loop over a region against its plain loop over rows, and against numpy, in Node."""

from typing import Any

import numpy as np
import pytest

from tests.support.node import call

LENGTH, SIZE, WIDTH, HEADS, KEY_HEADS = 23, 37, 7, 6, 2


@pytest.mark.parametrize(
    ("kind", "head"),
    [
        ("plain", 0), ("causal", None), ("window", 5), ("runs", None), ("softcap", 0), ("offsets", 5), ("keys", None),
        ("dense", None), ("ablated", 5), ("ablated", None),
    ],
)  # fmt: skip
def test_region_is_the_mean_of_each_cells_weights(kind: str, head: int | None) -> None:
    asked, weights = made(kind)
    rows_of = [call("attention/weights", "row", asked, head, i) for i in range(LENGTH)]
    shown = weights[:, :, :].mean(0) if head is None else weights[head]
    assert np.abs(np.array(rows_of) - shown).max() < 1e-6
    for queries, keys, rows, cols in (
        ((0, LENGTH), (0, SIZE), LENGTH, SIZE),  # every weight
        ((3, 20), (5, 34), 17, 29),
        ((2, 21), (1, 36), 4, 5),  # cells of unequal sizes
        ((16, 32), (32, 48), 4, 4),  # beyond the end
    ):
        part = {"head": head, "queries": queries, "keys": keys, "rows": rows, "cols": cols}
        cells = np.array(call("attention/region", "region", asked, part)).reshape(rows, cols)
        assert np.abs(cells - means(shown, queries, keys, rows, cols)).max() < 1e-7


def test_rows_of_a_region_sum_to_one() -> None:
    asked, _ = made("causal")
    part = {"head": 1, "queries": [0, LENGTH], "keys": [0, SIZE], "rows": LENGTH, "cols": SIZE}
    cells = np.array(call("attention/region", "region", asked, part)).reshape(LENGTH, SIZE)
    assert np.abs(cells.sum(1) - 1).max() < 1e-6


def test_exp_is_within_a_hundred_billionth() -> None:
    x = np.concatenate([-np.linspace(0, 103, 5000), [0.0, 1e-6, 0.04, 3.0]])
    found = [call("attention/region", "exp", each) for each in x.tolist()]
    assert np.abs(np.array(found) / np.exp(x) - 1).max() < 1e-11
    assert [call("attention/region", "exp", each) for each in (-105, -1e9)] == [0, 0]


def made(kind: str) -> tuple[dict[str, Any], np.ndarray]:
    """A call of random numbers, and its weights by numpy."""
    generator = np.random.default_rng(5)
    query = generator.normal(size=(HEADS, LENGTH, WIDTH)).astype(np.float32)
    key = generator.normal(size=(KEY_HEADS, SIZE, WIDTH)).astype(np.float32)
    i, j = np.arange(LENGTH)[:, None], np.arange(SIZE)[None]
    allowed = np.ones((HEADS, LENGTH, SIZE), bool)
    scores = query.astype(np.float64) @ np.repeat(key, HEADS // KEY_HEADS, 0).transpose(0, 2, 1).astype(np.float64)
    mask = bias = softcap = None
    ablated: list[int] = []
    if kind == "causal":
        mask, allowed = {"kind": "band", "low": -1e9, "high": 2}, allowed & (j - i <= 2)
    elif kind == "window":
        mask, allowed = {"kind": "band", "low": -3, "high": 4}, allowed & (j - i >= -3) & (j - i <= 4)
    elif kind == "runs":
        allowed = generator.random((HEADS, LENGTH, SIZE)) < 0.4
        allowed[2, 7] = False  # no key at all
        mask = runs(allowed)
    elif kind == "softcap":
        softcap, scores = 2.0, 2.0 * np.tanh(scores / 2.0)
    elif kind == "ablated":
        ablated = [5]
    elif kind != "plain":
        shape = {"offsets": (HEADS, LENGTH + SIZE - 1), "keys": (1, SIZE), "dense": (HEADS, LENGTH, SIZE)}[kind]
        values = generator.normal(size=shape).astype(np.float32)
        bias = {"kind": kind, "heads": shape[0], "values": {"float32": values.ravel().tolist()}}
        spread = {"offsets": (slice(None), j - i + LENGTH - 1), "keys": (slice(None), None), "dense": ()}[kind]
        scores = scores + values[spread]
    scores = np.where(allowed, scores, -np.inf)
    most = scores.max(-1, initial=-np.inf).astype(np.float32)
    powers = np.where(allowed, np.exp(scores - np.where(np.isfinite(most), most, 0)[..., None]), 0)
    total = powers.sum(-1).astype(np.float32)
    weights = np.divide(powers, total[..., None], where=total[..., None] > 0, out=np.zeros_like(powers))
    weights[ablated] = 0
    asked = {
        "heads": HEADS, "share": HEADS // KEY_HEADS, "length": LENGTH, "size": SIZE, "width": WIDTH,
        "query": {"float32": query.ravel().tolist()}, "key": {"float32": key.ravel().tolist()},
        "rowMax": {"float32": [float(x) if np.isfinite(x) else None for x in most.ravel()]},
        "rowSum": {"float32": total.ravel().tolist()},
        "softcap": softcap, "mask": mask, "bias": bias, "ablated": {"set": ablated},
    }  # fmt: skip
    return asked, weights


def runs(allowed: np.ndarray) -> dict[str, Any]:
    """A mask as runs of keys."""
    first, starts, ends = [], [], []
    for head in allowed:
        for row in head:
            first.append(len(starts))
            edges = np.flatnonzero(np.diff(np.concatenate([[0], row.astype(int), [0]])))
            starts += edges[::2].tolist()
            ends += edges[1::2].tolist()
        first.append(len(starts))
    return {
        "kind": "runs", "heads": len(allowed),
        "first": {"int32": first}, "starts": {"int32": starts}, "ends": {"int32": ends},
    }  # fmt: skip


def means(weights: np.ndarray, queries: tuple[int, int], keys: tuple[int, int], rows: int, cols: int) -> np.ndarray:
    """The mean weight of each cell, 0 where it has none."""
    out = np.zeros((rows, cols))
    for r in range(rows):
        for c in range(cols):
            top, bottom = (queries[0] + (r + n) * (queries[1] - queries[0]) // rows for n in (0, 1))
            left, right = (keys[0] + (c + n) * (keys[1] - keys[0]) // cols for n in (0, 1))
            cell = weights[top:bottom, left:right]
            out[r, c] = cell.mean() if cell.size else 0
    return out
