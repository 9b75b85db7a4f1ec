from pathlib import Path

import numpy as np
import pytest

from regard.corpus.asking.look_up import look_up
from regard.corpus.asking.occurrences import at_rows
from regard.corpus.store_tables import StoreTables
from regard.errors import RegardError
from tests.support.stores import Document, write_store


def test_order_vectors_and_contexts(tmp_path: Path) -> None:
    documents = [Document("b", "no end,\n\n the  End and"), Document("a", "END")]
    vectors = np.arange(6, dtype=np.float32).repeat(3).reshape(6, 1, 3)
    with StoreTables(write_store(tmp_path / "s", [(documents, vectors)])) as tables:
        found = look_up(tables, "eNd")
        assert (found.document, found.start.tolist()) == (("b", "b", "a"), [3, 15, 0])
        np.testing.assert_array_equal(found.vectors()[:, 0], [1, 3, 5])
        lines = found.lines(8)
        assert [(line.left, line.form, line.right) for line in lines] == [
            ("no ", "end", ", the "), (" the ", "End", " and"), ("", "END", "")
        ]  # fmt: skip
        assert [line.document for line in found.take([2, 0]).lines(1)] == ["a", "b"]


def test_rows_are_found_by_shard_and_number_in_the_order_given(tmp_path: Path) -> None:
    first, second = [Document("a", "one two one")], [Document("b", "two three")]
    vectors = [np.zeros((n, 1, 3), np.float16) for n in (3, 2)]
    with StoreTables(write_store(tmp_path / "s", [(first, vectors[0]), (second, vectors[1])])) as tables:
        two = look_up(tables, "two")
        assert two.document == ("a", "b")
        a, b = two.row.tolist()
        found = at_rows(tables, ["shard1", "shard0", "shard0"], [b, a, a])
        assert (found.document, found.form, found.start.tolist()) == (("b", "a", "a"), ("two",) * 3, [0, 4, 4])
        assert len(at_rows(tables, [], [])) == 0
        with pytest.raises(RegardError, match="shard shard1: the embedding index has no row 2"):
            at_rows(tables, ["shard0", "shard1"], [2, 2])
        with pytest.raises(RegardError, match="given 2 rows of 1 shards"):
            at_rows(tables, ["shard0"], [0, 1])
