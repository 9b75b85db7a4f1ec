"""Tensor files: what is written is read, by the library too, each tensor aligned where sizes allow it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import safetensors.torch
import torch

from regard.errors import RegardError
from regard.tensor_files.file import read_tensor_file, write


def tensors(**named: torch.Tensor) -> Iterator[tuple[str, torch.dtype, tuple[int, ...], bool, Iterator[torch.Tensor]]]:
    for name, tensor in named.items():
        yield name, tensor.dtype, tuple(tensor.shape), False, iter(tensor.split(2))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    made = {"a": torch.arange(35.0).view(5, 7), "b": torch.zeros(0, 3), "c": torch.tensor([True, False, True])}
    write(tmp_path / "x", "a form", {"what": ["ever"]}, tensors(**made))
    opened = read_tensor_file(tmp_path / "x", "a form")
    assert opened.description == {"what": ["ever"]}
    library = safetensors.torch.load_file(tmp_path / "x")
    for name, tensor in made.items():
        assert torch.equal(opened.guarded(name, opened.tensors[name]), tensor)
        assert torch.equal(library[name], tensor)
    assert int.from_bytes((tmp_path / "x").read_bytes()[:8], "little") % 64 == 56  # the first tensor is aligned
    opened.verify()
    with pytest.raises(RegardError, match="it holds a 'a form', needs a 'another'"):
        read_tensor_file(tmp_path / "x", "another")


def test_only_what_was_passed_on_is_verified(tmp_path: Path) -> None:
    write(tmp_path / "x", "a form", {}, tensors(a=torch.ones(2), b=torch.ones(3)))
    content = bytearray((tmp_path / "x").read_bytes())
    content[-1] ^= 1  # of b
    (tmp_path / "x").write_bytes(content)
    opened = read_tensor_file(tmp_path / "x", "a form")
    opened.guarded("a", opened.tensors["a"])
    opened.verify()
    opened.guarded("b", opened.tensors["b"])
    with pytest.raises(RegardError, match="tensor 'b' is not what was saved"):
        opened.verify()


def test_dtypes_that_are_none_of_a_trace(tmp_path: Path) -> None:
    from regard.tensor_files.description import metadata_of

    metadata = metadata_of("a form", {}, {"ids": "1" * 64})
    safetensors.torch.save_file({"ids": torch.arange(3)}, tmp_path / "x", metadata)
    with pytest.raises(RegardError, match="tensor 'ids' is of 'I64', needs F64, F32, BF16, F16, BOOL"):
        read_tensor_file(tmp_path / "x", "a form")


def test_numbers_that_are_none_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="tensor 'a' holds numbers that are not finite: it cannot be saved"):
        write(tmp_path / "x", "a form", {}, tensors(a=torch.tensor([1.0, torch.nan])))
