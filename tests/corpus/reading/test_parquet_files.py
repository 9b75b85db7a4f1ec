"""Rows of .parquet: any size, whatever wrote them; a part that is damaged keeps no other from being read."""

import datetime
from pathlib import Path

import pandas
import pyarrow
import pyarrow.parquet
import pytest

from regard.corpus.reading import streams
from regard.corpus.reading.document import DEFAULT, Columns, Document, Rejected
from regard.corpus.reading.streams import read_parquet


def read(path: Path, columns: Columns = DEFAULT) -> list[Document | Rejected]:
    return list(read_parquet(path.as_posix(), path, columns))


def write(path: Path, columns: dict[str, object], **options: int) -> Path:
    pyarrow.parquet.write_table(pyarrow.table(columns), path, **options)
    return path


def texts(found: list[Document | Rejected]) -> list[str]:
    return [each.text for each in found if isinstance(each, Document)]


def test_values_of_all_kinds(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.parquet",
        {
            "text": ["a", None, " ", "é😀"],
            "n": [1, 2, 3, None],
            "day": [datetime.date(1851, 10, 18)] * 4,
            "tags": [["x", None], [], [], []],
            "raw": [b"\xff", b"", b"", b""],
        },
    )
    name = path.as_posix()
    assert read(path) == [
        Document(f"{name}:1", "a", 0, name, 1, {"n": "1", "day": "1851-10-18", "tags": '["x", null]', "raw": "/w=="}),
        Rejected(name, 2, "column 'text' is null, expected a string"),
        Rejected(name, 3, "column 'text' is blank"),
        Document(f"{name}:4", "é😀", 0, name, 4, {"day": "1851-10-18", "tags": "[]", "raw": ""}),
    ]


@pytest.mark.parametrize("kind", [pyarrow.large_string(), pyarrow.dictionary(pyarrow.int32(), pyarrow.string())])
def test_kinds_of_strings(tmp_path: Path, kind: pyarrow.DataType) -> None:
    path = write(tmp_path / "a.parquet", {"text": pyarrow.array(["a", "b", "a"]).cast(kind)})
    assert texts(read(path)) == ["a", "b", "a"]


def test_what_pandas_writes(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    frame = pandas.DataFrame({"text": ["a", "b"], "when": pandas.to_datetime(["2001-02-03", None])}, index=["x", "y"])
    frame.to_parquet(path)
    assert [each.metadata for each in read(path) if isinstance(each, Document)] == [
        {"when": "2001-02-03T00:00:00", "__index_level_0__": "x"},
        {"__index_level_0__": "y"},
    ]
    assert [each.id for each in read(path, Columns(id="__index_level_0__")) if isinstance(each, Document)] == ["x", "y"]


def test_rows_are_numbered_across_batches_and_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.parquet", {"text": [f"text {n}" for n in range(1, 101)]}, row_group_size=30)
    for most in (1, 7, 1024):
        monkeypatch.setattr(streams, "MOST_ROWS", most)
        assert [(each.line, each.text) for each in read(path) if isinstance(each, Document)] == [
            (n, f"text {n}") for n in range(1, 101)
        ]


def test_a_damaged_row_group(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", {"text": [f"text {n}" for n in range(1, 101)]}, row_group_size=50)
    about = pyarrow.parquet.ParquetFile(path).metadata.row_group(0).column(0)
    content = bytearray(path.read_bytes())
    begin = about.dictionary_page_offset or about.data_page_offset
    content[begin : begin + about.total_compressed_size] = b"\xff" * about.total_compressed_size
    path.write_bytes(content)
    refused, *rest = read(path)
    assert isinstance(refused, Rejected)
    assert refused.line == 1
    assert refused.reason.startswith("cannot be read: ")
    assert refused.reason.endswith("; rows 1 to 50 are not read")
    assert texts(rest) == [f"text {n}" for n in range(51, 101)]


def test_bytes_that_are_no_utf8(tmp_path: Path) -> None:
    raw = pyarrow.array([b"good", b"ab\xff", b"after"])
    path = write(tmp_path / "a.parquet", {"text": pyarrow.Array.from_buffers(pyarrow.string(), 3, raw.buffers())})
    found = read(path)
    assert texts(found) == ["good", "after"]
    assert found[1] == Rejected(path.as_posix(), 2, "invalid UTF-8: byte 0xff at position 2 in column 'text'")


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"body": ["a"], "date": ["b"]}, "no column 'text': there are 'body', 'date'"),
        ({"text": [1]}, "column 'text' is int64, expected string"),
        ({"text": [b"a"]}, "column 'text' is binary, expected string"),
        ({"text": pyarrow.array([], pyarrow.string())}, "it has no rows"),
    ],
)
def test_files_without_texts(tmp_path: Path, columns: dict[str, object], reason: str) -> None:
    path = write(tmp_path / "a.parquet", columns)
    assert read(path) == [Rejected(path.as_posix(), None, reason)]


def test_names_of_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_arrays([pyarrow.array(["a"])] * 2, ["text", "text"]), path)
    assert read(path) == [Rejected(path.as_posix(), None, "column 'text' is there twice")]
    write(path, {"text": ["a"]})
    assert read(path, Columns(id="id")) == [Rejected(path.as_posix(), None, "no column 'id': there are 'text'")]


@pytest.mark.parametrize("kept", [0, 3, 50, -1])
def test_what_is_no_parquet(tmp_path: Path, kept: int) -> None:
    path = write(tmp_path / "a.parquet", {"text": ["a"] * 100})
    path.write_bytes(path.read_bytes()[:kept])
    (refused,) = read(path)
    assert isinstance(refused, Rejected)
    assert refused.line is None
    assert refused.reason.startswith("cannot be read: ")
    assert "\n" not in refused.reason
