"""A stranger's shard: files that are none, of other columns, or that would unpack to gigabytes."""

import resource
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from regard.corpus import schema
from regard.corpus.asking.look_up import look_up
from regard.corpus.parquet_pages import Chunk, column_chunks
from regard.corpus.store_tables import StoreTables
from regard.errors import RegardError
from tests.support.stores import Document, change_manifest, sign, word_rows, write_store

TEXTS = [Document("a", "The bank of clay"), Document("b", "a bank note")]
ROWS = pa.Table.from_pylist(word_rows(TEXTS), schema=schema.rows(6, statistics=False, sources=False)).sort_by("word")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return write_store(tmp_path / "s", [(TEXTS, np.ones((7, 1, 5), np.float16))])


def change(name: str, column: pa.Array) -> pa.Table:
    return ROWS.set_column(ROWS.schema.get_field_index(name), name, column)


LONG = change("form", pa.array(["x" * 10_000_000] * 7))


def asked(store: Path) -> None:
    with StoreTables(store) as tables:
        look_up(tables, "bank").lines(9)


def test_columns_under_other_names_than_pyarrow_finds_them_by_are_refused(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages are looked at by the names in the footer: a column under another's name would pass unmeasured."""

    def turned(footer: bytes) -> list[list[Chunk]]:
        return [[replace(chunk, path=other.path) for chunk, other in zip(own, [*own[1:], own[0]], strict=True)]
                for own in column_chunks(footer)]  # fmt: skip

    monkeypatch.setattr("regard.corpus.shard_reader.column_chunks", turned)
    with pytest.raises(RegardError, match="damaged: its columns are not in their order"):
        asked(store)


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda file: file.write_bytes(b""), "is damaged: "),
        (lambda file: file.write_bytes(b"PAR1"), "is damaged: "),
        (lambda file: file.write_bytes(np.random.default_rng(0).bytes(999)), "is damaged: "),
        (lambda file: file.write_bytes(file.read_bytes()[:-9]), "is damaged: "),
        (lambda file: file.write_bytes(file.read_bytes()[:-8] + b"\xff" * 4 + b"PAR1"), "its footer has 4,294,967,295"),
        (lambda file: pq.write_table(ROWS.slice(1), file), "it has 6 rows, the manifest says 7"),
        (lambda file: pq.write_table(ROWS, file, row_group_size=3), "its row groups have not 4,096 rows each"),
        (lambda file: pq.write_table(ROWS.drop_columns(["form"]), file), "damaged: .*form"),
        (lambda file: pq.write_table(change("part", pa.array(["0"] * 7)), file), "'part' is string, needs int32"),
        (lambda file: pq.write_table(change("word", pa.array(range(7))), file), "'word' is int64, needs string"),
        (lambda file: pq.write_table(change("form", pa.array([None] * 7, pa.string())), file), "lacks values of form"),
        (lambda file: pq.write_table(pa.table({"word": pa.array([["a"]] * 7)}), file), "is damaged: "),
        (lambda file: pq.write_table(LONG, file, compression="zstd", use_dictionary=False),
         "of column 'form' hold 70,000,..."),
    ],
)  # fmt: skip
def test_tables_that_are_none_are_one_line(store: Path, write: Callable[[Path], object], said: str) -> None:
    write(store / "shards" / "shard0" / "rows.parquet")
    sign(store)
    with pytest.raises(RegardError, match=said) as raised:
        asked(store)
    assert "\n" not in str(raised.value)


def test_a_string_that_all_rows_share_is_there_once(store: Path) -> None:
    """A Parquet file of some kilobytes whose strings would take 2 GB, one by one."""
    change_manifest(store, shards=[change_manifest(store)["shards"][0] | {"rows": 4096}])
    rows = pa.concat_tables([ROWS.slice(1, 1)] * 4096)  # "bank"
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 4096, pa.int32()), pa.array(["x" * 500_000]))
    rows = rows.set_column(1, "form", column).set_column(0, "word", pa.array(["bank"] * 4096))
    folder = store / "shards" / "shard0"
    pq.write_table(rows, folder / "rows.parquet", compression="zstd", row_group_size=4096, store_schema=False)
    assert (folder / "rows.parquet").stat().st_size < 9000
    np.save(folder / "vectors.npy", np.ones((4096, 1, 5), np.float16))
    sign(store)
    with StoreTables(store) as tables:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found = look_up(tables, "bank")
        assert (len(found), len(found.form[0])) == (4096, 500_000)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_vectors_are_read_in_blocks_and_in_any_order(tmp_path: Path) -> None:
    draws = np.random.default_rng(3)
    vectors = draws.standard_normal((2003, 2, 499)).astype(np.float32)
    store = write_store(
        tmp_path / "s", [([Document("a", " ".join(f"w{n:04}" for n in range(2003)))], vectors)], layers=(1, 4)
    )
    with StoreTables(store) as tables:
        [shard] = tables.shards.values()
        rows = draws.permutation(2003)[:777]
        np.testing.assert_array_equal(shard.vectors(rows, 1), vectors[rows, 1])
        blocks = list(shard.all_vectors(0))
        assert [first for first, _ in blocks] == [0, 2003] or len(blocks) in (1, 2)
        np.testing.assert_array_equal(np.concatenate([each for _, each in blocks]), vectors[:, 0])
        assert shard.vectors(np.empty(0, np.int64), 0).shape == (0, 499)
        assert shard.groups_with("word", "w0007") == [0]
        assert shard.groups_with("word", "none of these") == []
        assert shard.groups_with("lemma", "w0007") == []
