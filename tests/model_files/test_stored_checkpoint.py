"""Tensors of safetensors files as they are stored."""

from pathlib import Path

import pytest
import safetensors.torch
import torch

from regard.errors import RegardError
from regard.model_files import stored_checkpoint
from regard.model_files.stored_checkpoint import stored_tensors
from regard.model_files.stored_weight import StoredWeight


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_large_matrices_in_half_precision_stay_so(tmp_path: Path, monkeypatch, dtype: torch.dtype) -> None:
    monkeypatch.setattr(stored_checkpoint, "LEAST", 7 * 11)
    held = {
        "large": torch.randn(7, 11).to(dtype), "small": torch.randn(7, 10).to(dtype), "flat": torch.randn(77).to(dtype),
        "wide": torch.randn(7, 11), "count": torch.arange(77).view(7, 11),
    }  # fmt: skip
    files = [tmp_path / "a.safetensors", tmp_path / "b.safetensors"]
    safetensors.torch.save_file({name: held[name] for name in ("large", "small")}, files[0])
    safetensors.torch.save_file({name: held[name] for name in ("flat", "wide", "count")}, files[1])
    read = stored_tensors(files)
    assert read.keys() == held.keys()
    assert [name for name, each in read.items() if isinstance(each, StoredWeight)] == ["large"]
    large = read.pop("large")
    assert isinstance(large, StoredWeight)
    assert torch.equal(large.stored, held["large"])
    assert all(read[name].dtype == held[name].dtype and torch.equal(read[name], held[name]) for name in read)


def test_mxfp4_needs_blocks_and_scales_that_fit(tmp_path: Path) -> None:
    blocks, scales = torch.zeros(3, 5, 2, 16, dtype=torch.uint8), torch.full((3, 5, 2), 127, dtype=torch.uint8)
    file = tmp_path / "a.safetensors"
    safetensors.torch.save_file({"a_blocks": blocks, "a_scales": scales, "b_scales": torch.zeros(2)}, file)
    read = stored_tensors([file])
    assert sorted(read) == ["a", "b_scales"]
    assert (read["a"].shape, read["a"].untyped_storage().nbytes()) == ((3, 64, 5), blocks.nbytes)
    for wrong in ({"a_blocks": blocks}, {"a_blocks": blocks, "a_scales": scales[:2]}):
        safetensors.torch.save_file(wrong, file)
        with pytest.raises(RegardError, match=r"tensor 'a' in MXFP4 has blocks \(3, 5, 2, 16\) and scales"):
            stored_tensors([file])
