"""The nearest rows of a store: those of a search by hand, over random vectors."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.corpus.asking.nearest_rows import find_nearest_rows
from regard.corpus.store import Store
from tests.support.stores import Document, write_store


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
            near = find_nearest_rows(store, query, top)
            expected = sorted(cosines, key=lambda key: -cosines[key])[:top]
            found = list(zip(near.found.shard, near.found.row.tolist(), strict=True))
            assert set(found) == set(expected)
            np.testing.assert_allclose(near.similarity, [cosines[key] for key in found], atol=1e-3)
            assert near.total == 33
            assert near.mean == pytest.approx(np.mean(list(cosines.values())), abs=1e-3)
