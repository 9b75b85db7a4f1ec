"""What was packed is unpacked, each tensor is stored once, and a file is whole or damaged, not something in between."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest
import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open

import regard
from regard.tensor_file import MAP, TRACE, Packer, open_tensor_file, read_tensor_file, unpack, write_tensor_file


@dataclass
class Pair:
    first: Any
    second: Any


def written(file: Path, value: Any, dtype: torch.dtype | None = None) -> Any:
    packer = Packer(dtype)
    write_tensor_file(file, MAP, packer.pack("a", value), packer.tensors)
    return read_tensor_file(file, {MAP: {"Pair": Pair}}, verify=True)


def test_values_come_back(tmp_path: Path) -> None:
    base = torch.arange(24.0).reshape(4, 6)
    tensors = (
        base, base.mT, base[1:3], base[:, 2:], base[:0], torch.tensor(3.5), torch.tensor([True, False]),
        torch.zeros(1).expand(5, 1, 7), torch.randn(3, 2).bfloat16(), torch.tensor([torch.nan, torch.inf]),
    )  # fmt: skip
    value = Pair((1, -0.1, 1e300, None, True, "ä\ud800"), {"b": Pair(tensors, ())})
    again = written(tmp_path / "a", value)
    assert again.first == value.first
    for a, b in zip(tensors, again.second["b"].first, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert torch.equal(a.nan_to_num(), b.nan_to_num())
    assert again.second["b"].second == ()


def test_a_tensor_is_stored_once_and_without_expanded_axes(tmp_path: Path) -> None:
    one = torch.randn(3, 5)
    written(tmp_path / "a", [one, one.detach(), {"again": one}, one[0].expand(9, 5)])
    with safe_open(tmp_path / "a", "pt") as opened:
        assert [tuple(opened.get_tensor(name).shape) for name in opened.keys()] == [(3, 5), (1, 5)]  # noqa: SIM118


def test_wider_tensors_alone_are_rounded(tmp_path: Path) -> None:
    found = written(
        tmp_path / "a", [torch.ones(2).double(), torch.ones(2).bfloat16(), torch.ones(2) > 0], torch.float32
    )
    assert [each.dtype for each in found] == [torch.float32, torch.bfloat16, torch.bool]
    with pytest.raises(regard.RegardError, match=r"float16 cannot hold 1e\+06: choose another dtype, or none"):
        written(tmp_path / "b", torch.tensor([1.0, 1e6]), torch.float16)
    assert not (tmp_path / "b").exists()


def test_every_flipped_bit_is_found(tmp_path: Path) -> None:
    query = torch.randn(2, 5, 3)
    regard.attend(query, query, query, causal=True, sinks=torch.zeros(2)).weights.save(tmp_path / "a")
    right = (tmp_path / "a").read_bytes()
    for place in Random(3).sample(range(8 * len(right)), 300):
        changed = bytearray(right)
        changed[place // 8] ^= 1 << place % 8
        (tmp_path / "a").write_bytes(changed)
        with pytest.raises(regard.RegardError, match="not a valid attention map file"):
            regard.AttentionMap.load(tmp_path / "a")
    for size in (0, 8, 100, len(right) - 1):
        (tmp_path / "a").write_bytes(right[:size])
        with pytest.raises(regard.RegardError, match="not a valid attention map file"):
            regard.AttentionMap.load(tmp_path / "a", verify=False)


def test_the_checksum_is_not_compared_on_request(tmp_path: Path) -> None:
    query = torch.ones(1, 2, 2)
    regard.attend(query, query, query).weights.save(tmp_path / "a")
    content = (tmp_path / "a").read_bytes()
    (tmp_path / "a").write_bytes(content[:-1] + b"\x40")
    with pytest.raises(regard.RegardError, match="it is damaged: its checksum differs from the saved one"):
        regard.AttentionMap.load(tmp_path / "a")
    assert regard.AttentionMap.load(tmp_path / "a", verify=False).shape == (1, 2, 2)


def test_a_tensor_of_another_shape_is_refused(tmp_path: Path) -> None:
    with pytest.raises((RuntimeError, LookupError)):
        unpack({"type": "Tensor", "name": "a", "shape": [3]}, {"a": torch.zeros(2)}, {})


def test_a_file_that_was_there_stays_after_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "a", 1)
    before = (tmp_path / "a").read_bytes()
    with pytest.raises(regard.RegardError, match="cannot write .*header.*: save fewer traces in one file"):
        written(tmp_path / "a", "x" * 100_000_001)

    def full(tensors: object, part: Path, metadata: object) -> None:
        part.write_bytes(b"half of it")
        raise SafetensorError("I/O error: No space left on device")

    monkeypatch.setattr("regard.tensor_file.save_file", full)
    with pytest.raises(regard.RegardError, match="cannot write '.*a': I/O error: No space left on device$"):
        written(tmp_path / "a", 2)
    assert (tmp_path / "a").read_bytes() == before
    assert list(tmp_path.iterdir()) == [tmp_path / "a"]
    with pytest.raises(regard.RegardError, match="cannot write '.*a': No such file"):
        written(tmp_path / "gone" / "a", 3)


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
    with pytest.raises(regard.RegardError, match=rf"a' is not a valid .* file \({says}.*: pass a file") as caught:
        read(tmp_path / "a")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "description", ["", "[", "[" * 100_000, "[]", "{}", '{"type": "Tensor"}', '{"type": "os"}', "3"]
)
def test_a_description_that_is_none(description: str, tmp_path: Path) -> None:
    for form, read in ((TRACE, regard.open), (MAP, regard.AttentionMap.load)):
        for version, says in (("1", "its version is '1', but this version of regard reads '2'"), ("2", "")):
            metadata = {"format": form, "version": version, "description": description}
            safetensors.torch.save_file({"a": torch.zeros(2)}, tmp_path / "a", metadata)
            with pytest.raises(regard.RegardError, match="is not a valid") as caught:
                read(tmp_path / "a")
            assert says in str(caught.value)
            assert "\n" not in str(caught.value)


def test_nothing_a_folder_and_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, says in (("none", "No such file"), (".", "a regular file"), ("pipe", "a regular file")):
        with pytest.raises(regard.RegardError, match=f"trace or attention map file .* cannot be read: .*{says}"):
            look(tmp_path / name)
