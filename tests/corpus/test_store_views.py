"""SQL over a store: its views, and what a query may not do."""

from pathlib import Path

import numpy as np
import pytest

from regard.corpus.store_tables import StoreTables
from regard.errors import RegardError
from tests.support.stores import Document, write_store

ONE = [Document("a", "The bank of clay", {"year": "1850"}, line=3), Document("b", "A BANK note")]
OTHER = [Document("c", "No bank; the end")]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    vectors = [np.ones((count, 1, 3), np.float16) for count in (7, 4)]
    return write_store(tmp_path / "it's a store", [(ONE, vectors[0]), (OTHER, vectors[1])])


def test_views_tell_where_each_row_stands(store: Path) -> None:
    with StoreTables(store) as tables:
        found = tables.sql(
            "SELECT shard, row, document, form, start FROM rows WHERE word = ? ORDER BY shard, row", ["bank"]
        )
        assert [tuple(each.values()) for each in found.to_pylist()] == [
            ("shard0", 1, "a", "bank", 4), ("shard0", 2, "b", "BANK", 2), ("shard1", 0, "c", "bank", 3)
        ]  # fmt: skip
        joined = tables.sql(
            'SELECT substr(t.text, r.start + 1, r."end" - r.start) AS cut, r.form, '
            "t.metadata['year'] AS year, t.line FROM rows r JOIN texts t ON r.shard = t.shard AND r.part = t.row"
        ).to_pylist()
        assert len(joined) == 11
        assert all(each["cut"] == each["form"] for each in joined)
        assert {(each["year"], each["line"]) for each in joined} == {("1850", 3), (None, None)}
        assert tables.sql("SELECT count(*) AS n FROM spans").to_pylist() == [{"n": 0}]
        assert tables.sql("SELECT * FROM quarantine").column_names == ["source", "line", "reason"]
        assert tables.sql("SELECT sum(rows) AS n FROM shards").to_pylist() == [{"n": 11}]
        assert repr(tables).endswith("11 rows in 2 shards)")
        assert tables.notes == ()


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT * FROM read_text('/etc/hostname')", "Permission Error"),
        ("SELECT * FROM read_csv('../a.csv')", "Permission Error"),
        ("COPY (SELECT 1) TO 'x.csv'", "needs one statement that selects"),
        ("SELECT 1; SELECT 2", "needs one statement that selects"),
        ("SET enable_external_access = true", "needs one statement that selects"),
        ("ATTACH 'x.db'", "needs one statement that selects"),
        ("DROP VIEW rows", "needs one statement that selects"),
        ("", "needs one statement that selects"),
        ("SELEC 1", "syntax error"),
        ("SELECT nothing FROM rows", 'column "nothing" not found'),
    ],
)
def test_queries_reach_no_further_than_the_store(store: Path, query: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    before = sorted(each for each in tmp_path.rglob("*"))
    with StoreTables(store) as tables, pytest.raises(RegardError, match=message) as raised:
        tables.sql(query)
    assert "\n" not in str(raised.value)
    assert sorted(each for each in tmp_path.rglob("*")) == before


def test_the_settings_are_locked(store: Path) -> None:
    import duckdb

    with StoreTables(store) as tables:
        tables.sql("SELECT 1")
        assert tables._views is not None
        with pytest.raises(duckdb.Error, match="configuration has been locked"):
            tables._views.execute("SET enable_external_access = true")
