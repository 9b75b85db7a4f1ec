"""What a file of traces says of itself without torch, and that it is refused in the words of `regard.open`."""

from pathlib import Path

import pytest

import regard
from regard.errors import RegardError
from regard.trace.file_header import check_saving, check_trace_file, errors_name_trace_file, read_traces_header


def test_the_description_of_a_saved_trace(minilm, tmp_path: Path) -> None:
    minilm.trace("a bank").save(tmp_path / "a.safetensors")
    described = read_traces_header(tmp_path / "a.safetensors")
    assert described["many"] is False
    assert [each["text"] for each in described["traces"]] == ["a bank"]


@pytest.mark.parametrize("content", [b"", b"no trace at all", b"\x02" + bytes(7) + b"{}", b"\xff" * 7 + b"\x00{}"])
def test_what_is_none_is_refused_as_opening_refuses_it(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "a.safetensors"
    file.write_bytes(content)
    told = []
    for reading in (read_traces_header, regard.open):
        with pytest.raises(RegardError) as refused:
            reading(file)
        told.append(str(refused.value))
    assert told[0] == told[1]
    assert told[0].startswith(f"{str(file)!r} is no whole trace file: it is ")


def test_a_folder_and_nothing(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="is a folder, needs a file"):
        read_traces_header(tmp_path)
    with pytest.raises(RegardError, match="no trace file"):
        read_traces_header(tmp_path / "none")


def test_what_goes_wrong_is_one_line_with_the_file_s_name() -> None:
    with pytest.raises(RegardError, match="^cannot read 'a': it is gone$"), errors_name_trace_file(Path("a")):
        raise OSError(2, "it is gone")
    with pytest.raises(RegardError, match="^'a' is no whole trace file: KeyError$"), errors_name_trace_file(Path("a")):
        raise KeyError


@pytest.mark.parametrize("dtype", [None, "bfloat16", "float16", "float32"])
@pytest.mark.parametrize("heads", [None, [0]])
@pytest.mark.parametrize("outputs", [False, True])
def test_attention_outputs_need_all_heads_and_the_dtype(dtype, heads, outputs) -> None:
    if outputs and (heads or dtype in ("bfloat16", "float16")):
        with pytest.raises(RegardError, match="attention outputs with"):
            check_saving(dtype, outputs, heads)
    else:
        check_saving(dtype, outputs, heads)


def test_a_file_of_traces_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="no trace file '.*none.safetensors'"):
        check_trace_file(tmp_path / "none.safetensors")
    with pytest.raises(RegardError, match="is a folder, needs a file that regard.save wrote"):
        check_trace_file(tmp_path)
    (tmp_path / "a.safetensors").touch()
    check_trace_file(tmp_path / "a.safetensors")
