"""The files that a verb writes, checked before and written after its work."""

import json
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.cli.outputs import Outputs, TraceFile
from regard.cli.page_file import PageFile
from regard.errors import RegardError
from regard.files import write_json
from regard.questions.map.whole import matrix
from regard.trace.trace import Trace
from regard.web import built_page
from regard.web.page import Page
from tests.support.web_pages import Read, build_nothing


@pytest.mark.parametrize(
    ("outputs", "says"),
    [
        (
            Outputs(figure=Path("a.gif")),
            "--figure: cannot write 'a.gif', the file's ending needs to be .pdf or .png or .svg",
        ),
        (Outputs(json=Path("a.txt")), "--json: cannot write 'a.txt'"),
        (Outputs(save=TraceFile(Path("a.pt"))), "--save: cannot write 'a.pt'"),
        (Outputs(save=TraceFile(layers=[0])), "--save-layers needs --save"),
        (Outputs(save=TraceFile(heads=[0])), "--save-heads needs --save"),
        (Outputs(save=TraceFile(dtype="float16")), "--save-dtype needs --save"),
        (Outputs(save=TraceFile(attention_outputs=True)), "--save-attention-outputs needs --save"),
        (Outputs(save=TraceFile(Path("a.safetensors"), dtype="int8")), "dtype: given 'int8'"),
    ],
)
def test_what_is_refused(outputs: Outputs, says: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RegardError, match=says):
        outputs.check()
    assert list(tmp_path.iterdir()) == []


def test_traces_are_written_first_for_they_may_refuse(bank, tmp_path: Path) -> None:
    drawn: list[Path] = []

    def draw(file: Path) -> list[str]:
        assert (tmp_path / "a.safetensors").exists()
        drawn.append(file)
        return ["a note"]

    def write(file: Path) -> None:
        write_json({"format": "regard see"}, file, indent=1)

    outputs = Outputs(tmp_path / "a.png", json=tmp_path / "a.json", save=TraceFile(tmp_path / "a.safetensors"))
    outputs.check()
    assert outputs.write(traces=list(bank), draw=draw, data=write) == ["a note"]
    assert drawn == [tmp_path / "a.png"]
    assert (tmp_path / "a.json").read_text() == '{\n "format": "regard see"\n}\n'
    assert [trace.text for trace in regard.open(tmp_path / "a.safetensors")] == [trace.text for trace in bank]
    refusing = Outputs(tmp_path / "b.png", save=TraceFile(tmp_path / "b.safetensors", layers=[9]))
    with pytest.raises(RegardError, match="layer 9"):
        refusing.write(traces=list(bank), draw=draw)
    assert drawn == [tmp_path / "a.png"]


def test_nothing_asked_for_is_nothing_written() -> None:
    def fail(_: Any) -> Any:
        pytest.fail("nobody asked for it")

    assert Outputs().files == (None,) * 6
    assert Outputs().write(traces=object(), draw=lambda *file: [str(file)], data=fail, page=fail) == []


def test_a_page_that_is_refused_leaves_no_other_file(bank, tmp_path: Path) -> None:
    def refuse(_: PageFile) -> Page:
        raise RegardError("too large")

    outputs = Outputs(save=TraceFile(tmp_path / "a.safetensors"), html=PageFile(tmp_path / "a.html"))
    with pytest.raises(RegardError, match="too large"):
        outputs.write(traces=list(bank), page=refuse)
    assert list(tmp_path.iterdir()) == []


def test_every_file_is_written_and_none_that_was_not_asked_for(tmp_path: Path) -> None:
    files = Outputs(
        tmp_path / "a.png", csv=tmp_path / "a.csv", parquet=tmp_path / "a.parquet", json=tmp_path / "a.json"
    )
    files.check()
    files.write(
        rows=lambda: [{"a": 1}],
        data=lambda file: file.write_text("{}"),
        draw=lambda file: [str(file.write_bytes(b"c"))],
    )
    assert [file.name for file in files.files if file and file.is_file()] == ["a.png", "a.csv", "a.parquet", "a.json"]
    Outputs().write(
        rows=lambda: pytest.fail("no table was asked for"),
        data=lambda _: pytest.fail("no JSON was asked for"),
        page=lambda _: pytest.fail("no page was asked for"),
    )


def test_a_map_is_written_on_one_line(bank: list[Trace], tmp_path: Path) -> None:
    Outputs(json=tmp_path / "a.json").write(data=matrix(bank[0], 1).to_json)
    written = (tmp_path / "a.json").read_text(encoding="utf-8")
    assert written.count("\n") == 1
    assert json.loads(written)["format"] == "regard map"


def test_a_page_that_refuses_leaves_nothing_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_nothing(tmp_path / "built", monkeypatch)

    def refused(_: PageFile) -> Page:
        raise RegardError("too many")

    files = Outputs(csv=tmp_path / "a.csv", html=PageFile(tmp_path / "a.html"))
    files.check()
    with pytest.raises(RegardError, match="too many"):
        files.write(rows=lambda: [{"a": 1}], page=refused)
    assert [each for each in files.files if each and each.exists()] == []
    files.write(rows=lambda: [{"a": 1}], page=lambda _: Page("What was found"))
    assert Read(tmp_path / "a.html").data["title"] == "What was found"
    monkeypatch.setattr(built_page, "BUILT", tmp_path)
    with pytest.raises(RegardError, match="the page is not built: run make page"):
        files.check()


def test_a_wrong_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=r"--parquet: cannot write .*needs to be \.parquet"):
        Outputs(parquet=tmp_path / "a.csv").check()
    with pytest.raises(RegardError, match=r"--html: cannot write .*needs to be \.html"):
        Outputs(html=PageFile(tmp_path / "a.htm")).check()
