"""The sizes in the headers of pages, against those that pyarrow says, and damaged headers."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.corpus.parquet_pages import column_chunks, parquet_page_sizes

TABLE = pa.table(
    {
        "text": ["bank", "river", None, "a" * 2000] * 700,
        "number": list(range(2800)),
        "pairs": pa.array([[("a", "1"), ("b", "2")]] * 2800, pa.map_(pa.string(), pa.string())),
    }
)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["zstd", "none"])
def test_pages_sum_to_what_the_footer_says(tmp_path: Path, version: str, compression: str) -> None:
    file = tmp_path / "a.parquet"
    pq.write_table(TABLE, file, data_page_version=version, compression=compression, data_page_size=999)
    content, group = file.read_bytes(), pq.read_metadata(file).row_group(0)
    for n in range(group.num_columns):
        chunk = group.column(n)
        start = chunk.dictionary_page_offset or chunk.data_page_offset
        pages = list(parquet_page_sizes(content[start : start + chunk.total_compressed_size]))
        assert len(pages) > 1
        assert sum(page.values for page in pages) == chunk.num_values
        headers = chunk.total_uncompressed_size - sum(page.unpacked for page in pages)
        assert 0 < headers < 5000 * len(pages)  # one says the least and largest value of its page, here a long one


@pytest.mark.parametrize("dictionary", [True, False])
def test_where_columns_are_is_what_pyarrow_says(tmp_path: Path, dictionary: bool) -> None:
    file = tmp_path / "a.parquet"
    pq.write_table(TABLE, file, row_group_size=1000, use_dictionary=dictionary)
    content, about = file.read_bytes(), pq.read_metadata(file)
    length = int.from_bytes(content[-8:-4], "little")
    found = column_chunks(content[-8 - length : -8])
    assert len(found) == about.num_row_groups == 3
    for group, chunks in enumerate(found):
        there = [about.row_group(group).column(n) for n in range(about.num_columns)]
        assert [".".join(chunk.path) for chunk in chunks] == [each.path_in_schema for each in there]
        assert [(chunk.start, chunk.size) for chunk in chunks] == [
            (each.dictionary_page_offset or each.data_page_offset, each.total_compressed_size) for each in there
        ]


def test_columns_without_rows(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    pq.write_table(TABLE.slice(0, 0), file)
    content = file.read_bytes()
    (group,) = column_chunks(content[-8 - int.from_bytes(content[-8:-4], "little") : -8])
    for chunk in group:
        assert [page.values for page in parquet_page_sizes(content[chunk.start : chunk.start + chunk.size])] in (
            [],
            [0],
        )


@given(st.binary(max_size=99))
def test_what_is_no_footer_is_a_value_error(content: bytes) -> None:
    with pytest.raises(ValueError):
        column_chunks(content)


def test_what_are_no_pages_is_a_value_error(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    pq.write_table(TABLE, file)
    chunk = pq.read_metadata(file).row_group(0).column(0)
    whole = file.read_bytes()[chunk.dictionary_page_offset :][: chunk.total_compressed_size]
    with pytest.raises(ValueError, match="cut short|ends behind its column"):
        list(parquet_page_sizes(whole[:-1]))
    with pytest.raises(ValueError, match="cut short"):
        list(parquet_page_sizes(whole[:3]))
    with pytest.raises(ValueError, match="a field of kind 11"):
        list(parquet_page_sizes(b"\x1b\x00"))
    with pytest.raises(ValueError, match="has None where a size is needed"):
        list(parquet_page_sizes(b"\x00"))
    with pytest.raises(ValueError, match="without an end"):
        list(parquet_page_sizes(b"\x15" + b"\xff" * 30))
    draws = np.random.default_rng(0)
    for _ in range(500):  # whatever the bytes are, it ends, in a page or in a ValueError
        try:
            list(parquet_page_sizes(draws.bytes(40)))
        except ValueError:
            continue
