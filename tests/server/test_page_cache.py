"""What is kept, and what goes where there is no room."""

import json
from itertools import product

import numpy as np
import pytest
import torch
from starlette.exceptions import HTTPException

from regard import attend
from regard.attention.masks import causal, function, window
from regard.server.cell_means import CELL
from regard.server.page_cache import FINEST, SIDE, CachedPage, PageCache, ZoomMap
from regard.web.page import Page


def page(count: int) -> CachedPage:
    """A page with numbers that do not deflate."""
    made = Page("a title")
    made.numbers.add(np.random.default_rng(0).standard_normal(count).astype(np.float32))
    return CachedPage(made)


def test_a_page_gives_its_data_and_its_numbers() -> None:
    kept = page(5)
    assert json.loads(kept.data)["title"] == "a title"
    assert kept.numbers(0) == kept.page.numbers.blobs[0]
    for wrong in (-1, 1):
        with pytest.raises(HTTPException, match=f"got {wrong}, but the page has 1"):
            kept.numbers(wrong)
    with pytest.raises(HTTPException, match="call 0"):
        kept.map(0)


def test_what_was_not_looked_at_for_the_longest_goes_first() -> None:
    shelf = PageCache(2 * page(3000).size + 100)
    shelf.put("a", page(3000))
    shelf.put("b", page(3000))
    assert shelf.get("a")
    shelf.put("c", page(3000))
    assert shelf.find("b") is None
    assert shelf.find("a") is not None
    assert shelf.find("c") is not None
    with pytest.raises(HTTPException, match="no longer stored") as found:
        shelf.get("b")
    assert found.value.status_code == 404


def test_one_page_is_kept_however_large() -> None:
    shelf = PageCache(10)
    shelf.put("a", page(100))
    assert shelf.find("a") is not None
    shelf.put("b", page(100))
    assert shelf.find("a") is None
    assert shelf.find("b") is not None


def made(length: int, size: int, heads: int = 2, key_heads: int = 1, **how: object) -> ZoomMap:
    draws = torch.Generator().manual_seed(0)
    query = 2 * torch.randn(heads, length, 8, generator=draws)
    key, value = (2 * torch.randn(key_heads, size, 8, generator=draws) for _ in range(2))
    return ZoomMap(attend(query, key, value, **how).weights)  # type: ignore[arg-type]


def cells(dense: np.ndarray, level: int, row: int, col: int) -> np.ndarray:
    """A tile by its definition, in float64."""
    cell, found = 1 << level, np.zeros((SIDE, SIDE))
    for r, c in product(range(SIDE), range(SIDE)):
        top, left = (row * SIDE + r) * cell, (col * SIDE + c) * cell
        part = dense[top : top + cell, left : left + cell]
        found[r, c] = part.mean() if part.size else 0
    return found


RULES = {
    "full": {},
    "causal": {"causal": True},
    "window": {"mask": window(40, 3)},
    "function": {"mask": function(lambda i, j: (i + j) % 3 != 0)},
    "bias": {"bias": torch.linspace(-2, 2, 613)},
    "sinks": {"sinks": torch.tensor([0.5, 3.0])},
    "causal and a function": {"mask": causal() & function(lambda i, j: (i - j) % 5 != 1)},
}


@pytest.mark.parametrize("rule", RULES)
def test_every_level_has_the_exact_means(rule: str) -> None:
    zoom = made(613, 613, **RULES[rule])
    zoom.prepare(lambda share: None)
    dense = zoom.weights.dense().double().numpy()
    for level in (0, 2, 4, FINEST):
        last = -(-613 // (SIDE << level)) - 1
        for head in (0, 1, None):
            whole = dense[head] if head is not None else dense.mean(0)
            found = zoom.tile(head, level, last, 0)
            np.testing.assert_allclose(found, cells(whole, level, last, 0), atol=2e-6)


@pytest.mark.parametrize(("length", "size"), [(5003, 61), (61, 5003), (4397, 4397)])
def test_coarse_levels_count_every_weight_once(length: int, size: int) -> None:
    zoom = made(length, size, heads=1)
    zoom.prepare(lambda share: None)
    dense = zoom.weights.dense()[0].double().numpy()
    for level in (FINEST, FINEST + 1):
        np.testing.assert_allclose(zoom.tile(0, level, 0, 0), cells(dense, level, 0, 0), atol=1e-6)


def test_rows_and_columns_are_the_weights() -> None:
    zoom = made(67, 41)
    dense = zoom.weights.dense().numpy()
    np.testing.assert_allclose(zoom.row(1, 66), dense[1, 66], atol=1e-6)
    np.testing.assert_allclose(zoom.row(None, 3), dense[:, 3].mean(0), atol=1e-6)
    np.testing.assert_allclose(zoom.column(0, 40), dense[0, :, 40], atol=1e-6)


def test_the_pass_tells_its_share_and_goes_on_where_it_was_stopped() -> None:
    zoom, told = made(2111, 2111, heads=3, causal=True), []

    def progress(share: float) -> None:
        told.append(share)
        if sum(told) > 0.5 and not stopped:
            stopped.append(True)
            raise HTTPException(409, "stopped")

    stopped: list[bool] = []
    with pytest.raises(HTTPException):
        zoom.prepare(progress)
    with pytest.raises(HTTPException, match="was not made"):
        zoom.tile(0, 0, 0, 0)
    told.clear()
    zoom.prepare(progress)
    assert sum(told) < 0.9  # the first head was not gone through again
    zoom.prepare(lambda share: pytest.fail("it is made"))
    assert zoom.ready


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"level": 0, "row": 6, "col": 0}, "no such tile"),
        ({"level": 0, "row": 0, "col": -1}, "no such tile"),
        ({"level": 9, "row": 0, "col": 0}, "coarsest is 5"),
        ({"level": 0, "row": 0, "col": 0, "head": 2}, "there are 2"),
    ],
)
def test_places_that_are_not_there_are_named(asked: dict[str, int], says: str) -> None:
    zoom = made(700, 700)
    zoom.prepare(lambda share: None)
    with pytest.raises(HTTPException, match=says) as found:
        zoom.tile(**({"head": 0} | asked))
    assert found.value.status_code == 404


def test_row_and_column_out_of_the_matrix() -> None:
    zoom = made(CELL, 3)
    for ask in (lambda: zoom.row(0, CELL), lambda: zoom.column(0, 3), lambda: zoom.row(5, 0)):
        with pytest.raises(HTTPException):
            ask()
