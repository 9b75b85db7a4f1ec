import csv
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from regard.display.table_file import neutral, write_csv, write_parquet
from regard.errors import RegardError

ROWS = [
    {"left": "=HYPERLINK(1)", "n": -3, "share": -0.5, "x": None},
    {"left": 'a, "b"\nc', "n": 2, "share": 0.25, "x": None, "metadata.y": "@sum"},
]


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t", "\r", "\n", " =", "＝"])
def test_what_a_spreadsheet_takes_for_a_formula_gets_an_apostrophe(first: str) -> None:
    assert neutral(f"{first}1+1") == f"'{first}1+1"
    assert neutral(f"a{first}") == f"a{first}"


def test_numbers_stay_numbers() -> None:
    assert [neutral(each) for each in (-1, -0.5, None, "")] == [-1, -0.5, None, ""]


def test_csv_reads_back(tmp_path: Path) -> None:
    write_csv(ROWS, tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["left", "n", "share", "x", "metadata.y"]
    assert rows == [["'=HYPERLINK(1)", "-3", "-0.5", "", ""], ['a, "b"\nc', "2", "0.25", "", "'@sum"]]


def test_parquet_keeps_types_and_texts_as_they_are(tmp_path: Path) -> None:
    write_parquet(ROWS, tmp_path / "a.parquet")
    table = pq.read_table(tmp_path / "a.parquet")
    assert table.to_pylist() == [{"metadata.y": None} | row for row in ROWS]
    assert str(table.schema.field("x").type) == "string"
    assert str(table.schema.field("n").type) == "int64"


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="cannot write"):
        write_csv(ROWS, tmp_path / "none" / "a.csv")
