import numpy as np
import pyarrow as pa

from regard.corpus.columns import Columns, cells_at, integers

WORDS = ["bank", "river", "bank", "sée", "", "b"]


def test_some_rows_of_a_table_are_lists_and_equal_strings_one() -> None:
    table = pa.table(
        {"word": pa.array(WORDS).dictionary_encode(), "n": pa.array(range(6), pa.int32()), "line": [1, None] * 3}
    )
    found = cells_at(table.slice(1), np.array([4, 1, 1]), ["word", "n", "line"])
    assert found == {"word": ["b", "bank", "bank"], "n": [5, 2, 2], "line": [None, 1, 1]}
    assert found["word"][1] is found["word"][2]
    columns = Columns(["n", "word"])
    assert len(columns) == 0
    assert columns.row.tolist() == columns.numbers("n").tolist() == columns.list("word") == []
    columns.add("s", np.array([7, 8, 8]), found)
    columns.add("t", np.array([1]), {"word": ["x"], "n": [9]})
    assert (columns.shard, columns.row.tolist()) == (["s", "s", "s", "t"], [7, 8, 8, 1])
    assert columns.numbers("n").tolist() == [5, 2, 2, 9]
    assert columns.list("word") == ["b", "bank", "bank", "x"]


def test_numbers_as_they_lie_in_memory() -> None:
    for kind in (pa.int32(), pa.int64()):
        assert integers(pa.array([3, 1, 2], kind).slice(1)).tolist() == [1, 2]
    assert integers(pa.array([3, None])).tolist() == [3, -1]
