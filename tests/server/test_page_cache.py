"""What is kept, and what goes where there is no room."""

import json

import numpy as np
import pytest
from starlette.exceptions import HTTPException

from regard.server.page_cache import CachedPage, PageCache
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
        with pytest.raises(HTTPException, match=f"given {wrong}, the page has 1"):
            kept.numbers(wrong)
    with pytest.raises(HTTPException, match="call: given 0"):
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
    with pytest.raises(HTTPException, match="not kept any more") as found:
        shelf.get("b")
    assert found.value.status_code == 404


def test_one_page_is_kept_however_large() -> None:
    shelf = PageCache(10)
    shelf.put("a", page(100))
    assert shelf.find("a") is not None
    shelf.put("b", page(100))
    assert shelf.find("a") is None
    assert shelf.find("b") is not None
