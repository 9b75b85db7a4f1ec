"""Headers of safetensors files: as the library writes them, and anything else refused, without torch."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import safetensors.torch
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import RegardError
from regard.tensor_files.header import BITS, MOST, parse_header, read_safetensors_header

DTYPES = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64",
    torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL", torch.float8_e4m3fn: "F8_E4M3", torch.complex64: "C64",
}  # fmt: skip


def test_what_the_library_writes_is_read(tmp_path: Path) -> None:
    tensors = {str(n): torch.zeros(2, n, 3, dtype=dtype) for n, dtype in enumerate(DTYPES)}
    safetensors.torch.save_file(tensors, tmp_path / "a", {"made": "here"})
    header = read_safetensors_header(tmp_path / "a")
    content = (tmp_path / "a").read_bytes()
    assert header.metadata == {"made": "here"}
    assert set(header.tensors) == set(tensors)
    for name, tensor in tensors.items():
        entry = header.tensors[name]
        assert (entry.dtype, entry.shape) == (DTYPES[tensor.dtype], tuple(tensor.shape))
        assert entry.end - entry.begin == tensor.nbytes == BITS[entry.dtype] * tensor.numel() // 8
    assert max(entry.end for entry in header.tensors.values()) == len(content)


@given(
    st.lists(st.tuples(st.sampled_from(sorted(BITS)), st.lists(st.integers(0, 3), max_size=3)), max_size=6), st.data()
)
def test_every_byte_is_described_once(made: list[tuple[str, list[int]]], data: st.DataObject) -> None:
    described, at = {}, 0
    for n, (dtype, shape) in enumerate(made):
        end = at + torch.Size(shape).numel() * BITS[dtype] // 8
        described[str(n)] = {"dtype": dtype, "shape": shape, "data_offsets": [at, end]}
        at = end
    content = json.dumps(described).encode()
    start, size = 8 + len(content), 8 + len(content) + at
    header = parse_header(content, size)
    spans = [(entry.begin, entry.end) for entry in header.tensors.values()]
    assert sum(end - begin for begin, end in spans) == at
    assert all(start <= begin <= end <= size for begin, end in spans)
    with pytest.raises(RegardError, match="it is (cut short|too long)"):
        parse_header(content, size + data.draw(st.integers(-at, 9).filter(bool)) if at else size + 1)


@pytest.mark.parametrize(
    ("entries", "size", "says"),
    [
        ({"a": [0, 4], "b": [8, 12]}, 12, "tensor 'b' begins at byte .*, needs"),  # a gap
        ({"a": [0, 4], "b": [0, 4]}, 4, "tensor 'b' begins at byte"),  # twice the same bytes
        ({"a": [4, 0]}, 4, "does not have the bytes of its shape"),
    ],
)
def test_gaps_and_overlaps(entries: dict[str, list[int]], size: int, says: str) -> None:
    described = {name: {"dtype": "F32", "shape": [1], "data_offsets": span} for name, span in entries.items()}
    content = json.dumps(described).encode()
    with pytest.raises(RegardError, match=says):
        parse_header(content, 8 + len(content) + size)


def test_more_tensors_than_anything_has_are_refused_before_they_are_parsed() -> None:
    content = b"{" + b",".join(b'"%d":{"data_offsets":[0,0]}' % n for n in range(MOST + 1)) + b"}"
    with pytest.raises(RegardError, match="its header names 131,073 tensors"):
        parse_header(content, 8 + len(content) + 16 * MOST)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RegardError, match="it needs to be a regular file"):
        read_safetensors_header(tmp_path / "pipe")


def test_a_header_is_read_without_torch() -> None:
    names = "header, description"
    code = f"import sys; from regard.tensor_files import {names}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
