from pathlib import Path

import pytest

from regard.cli.store_outputs import StoreOutputs
from regard.errors import RegardError
from regard.web import built_page
from regard.web.page import Page
from tests.support.web_pages import Read, build_nothing


def test_every_file_is_written_and_none_that_was_not_asked_for(tmp_path: Path) -> None:
    files = StoreOutputs(tmp_path / "a.csv", tmp_path / "a.parquet", tmp_path / "a.json", tmp_path / "a.png")
    files.check()
    files.write(lambda: [{"a": 1}], lambda: {"b": 2}, lambda file: file.write_bytes(b"c") and None)
    assert [file.name for file in files.files if file and file.is_file()] == ["a.png", "a.csv", "a.parquet", "a.json"]
    StoreOutputs().write(
        lambda: pytest.fail("no table was asked for"),
        lambda: pytest.fail("no JSON was asked for"),
        page=lambda: pytest.fail("no page was asked for"),
    )


def test_a_page_that_refuses_leaves_nothing_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_nothing(tmp_path / "built", monkeypatch)

    def refused() -> Page:
        raise RegardError("too many")

    files = StoreOutputs(csv=tmp_path / "a.csv", html=tmp_path / "a.html")
    files.check()
    with pytest.raises(RegardError, match="too many"):
        files.write(lambda: [{"a": 1}], dict, page=refused)
    assert [each for each in files.files if each and each.exists()] == []
    files.write(lambda: [{"a": 1}], dict, page=lambda: Page("What was found"))
    assert Read(tmp_path / "a.html").data["title"] == "What was found"
    monkeypatch.setattr(built_page, "BUILT", tmp_path)
    with pytest.raises(RegardError, match="the page is not built: run make page"):
        files.check()


def test_a_wrong_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=r"--parquet: cannot write .*needs to be \.parquet"):
        StoreOutputs(parquet=tmp_path / "a.csv").check()
    with pytest.raises(RegardError, match=r"--html: cannot write .*needs to be \.html"):
        StoreOutputs(html=tmp_path / "a.htm").check()
