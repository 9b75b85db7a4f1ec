from pathlib import Path

import pytest

from regard.cli.store_outputs import StoreOutputs
from regard.errors import RegardError


def test_every_file_is_written_and_none_that_was_not_asked_for(tmp_path: Path) -> None:
    files = StoreOutputs(tmp_path / "a.csv", tmp_path / "a.parquet", tmp_path / "a.json", tmp_path / "a.png")
    files.check()
    files.write(lambda: [{"a": 1}], lambda: {"b": 2}, lambda file: file.write_bytes(b"c") and None)
    assert [file.name for file in files.files if file and file.is_file()] == ["a.png", "a.csv", "a.parquet", "a.json"]
    StoreOutputs().write(lambda: pytest.fail("no table was asked for"), lambda: pytest.fail("no JSON was asked for"))


def test_a_wrong_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=r"--parquet: cannot write .*needs to be \.parquet"):
        StoreOutputs(parquet=tmp_path / "a.csv").check()
