"""The files that a verb writes, checked before and written after its work."""

from pathlib import Path

import pytest

import regard
from regard.cli.outputs import Outputs, TraceFile
from regard.cli.page_file import PageFile
from regard.errors import RegardError
from regard.web.page import Page


@pytest.mark.parametrize(
    ("outputs", "says"),
    [
        (Outputs(figure=Path("a.gif")), "--figure: cannot write 'a.gif', the file's ending needs to be .png or .svg"),
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

    outputs = Outputs(tmp_path / "a.gif", tmp_path / "a.json", TraceFile(tmp_path / "a.safetensors"), (".gif",))
    outputs.check()
    assert outputs.write(traces=list(bank), draw=draw, data=lambda: {"format": "regard see"}) == ["a note"]
    assert drawn == [tmp_path / "a.gif"]
    assert (tmp_path / "a.json").read_text() == '{\n "format": "regard see"\n}\n'
    assert [trace.text for trace in regard.open(tmp_path / "a.safetensors")] == [trace.text for trace in bank]
    refusing = Outputs(tmp_path / "b.gif", save=TraceFile(tmp_path / "b.safetensors", layers=[9]), pictures=(".gif",))
    with pytest.raises(RegardError, match="layer 9"):
        refusing.write(traces=list(bank), draw=draw)
    assert drawn == [tmp_path / "a.gif"]


def test_nothing_asked_for_is_nothing_written() -> None:
    def fail(_: PageFile) -> Page:
        pytest.fail("nobody asked for a page")

    assert Outputs().files == (None,) * 4
    assert Outputs().write(traces=object(), draw=lambda file: [str(file)], data=dict, page=fail) == []


def test_a_page_that_is_refused_leaves_no_other_file(bank, tmp_path: Path) -> None:
    def refuse(_: PageFile) -> Page:
        raise RegardError("too large")

    outputs = Outputs(save=TraceFile(tmp_path / "a.safetensors"), html=PageFile(tmp_path / "a.html"))
    with pytest.raises(RegardError, match="too large"):
        outputs.write(traces=list(bank), page=refuse)
    assert list(tmp_path.iterdir()) == []
