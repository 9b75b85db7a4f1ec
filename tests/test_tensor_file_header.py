"""Files that are none are refused in one line, by the early check as well as by opening them."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors.torch
import torch

import regard
from regard.tensor_file_header import MAP, TRACE, open_tensor_file


def look(file: Path) -> None:
    with open_tensor_file(file, TRACE, MAP):
        pass


def with_header(header: bytes) -> bytes:
    return len(header).to_bytes(8, "little") + header


@pytest.mark.parametrize("read", [look, regard.open, regard.AttentionMap.load])
@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "header too small"),
        (b"something else entirely", "header too large"),
        (b"\xff" * 7 + b"\x00{}", "header too large"),
        (with_header(b'{"a":' * 200_000), "invalid JSON in header"),
        (with_header(b'{"a":{"dtype":"F32","shape":[9],"data_offsets":[0,4]}}') + b"1234", "invalid"),
        (with_header(b"{}"), "its format is unknown"),
        (with_header(b'{"__metadata__":{"format":"pt"}}'), "its format is 'pt'"),
    ],
)
def test_no_file_of_regard(read: Callable[[Path], object], content: bytes, says: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(regard.RegardError, match=rf"a' is no whole .* file \({says}.*: give a file that") as caught:
        read(tmp_path / "a")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "description", ["", "[", "[" * 100_000, "[]", "{}", '{"type": "Tensor"}', '{"type": "os"}', "3"]
)
def test_a_description_that_is_none(description: str, tmp_path: Path) -> None:
    for form, read in ((TRACE, regard.open), (MAP, regard.AttentionMap.load)):
        for version, says in (("1", "its version is '1', this regard reads '2'"), ("2", "")):
            metadata = {"format": form, "version": version, "description": description}
            safetensors.torch.save_file({"a": torch.zeros(2)}, tmp_path / "a", metadata)
            with pytest.raises(regard.RegardError, match="is no whole") as caught:
                read(tmp_path / "a")
            assert says in str(caught.value)
            assert "\n" not in str(caught.value)


def test_nothing_a_folder_and_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, says in (("none", "No such file"), (".", "a regular file"), ("pipe", "a regular file")):
        with pytest.raises(regard.RegardError, match=f"trace or attention map file .* cannot be read: .*{says}"):
            look(tmp_path / name)


def test_a_file_is_refused_before_torch_is_imported() -> None:
    code = "import sys, regard.tensor_file_header; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
