"""Digests of tensors, and the check that comes before a number is read."""

import hashlib

import pytest
import torch

from regard.errors import RegardError
from regard.tensor_files.digests import CODES, Check, MappedTensor, digest_of, why_invalid

NAN, INF = torch.nan, torch.inf


def test_a_digest_is_that_of_the_dtype_the_shape_and_the_bytes() -> None:
    tensor = torch.tensor([[1.0, 2.0, 3.0]])
    content = b"F32 [1, 3]\n" + bytes.fromhex("0000803f 00000040 00004040")
    assert digest_of(tensor) == hashlib.sha256(content).hexdigest()
    same_bytes = [tensor, tensor.view(3, 1), tensor.view(torch.bfloat16), tensor[0]]
    assert len({digest_of(each) for each in same_bytes}) == 4
    assert digest_of(torch.zeros(0, 5)) == hashlib.sha256(b"F32 [0, 5]\n").hexdigest()


@pytest.mark.parametrize("dtype", [dtype for dtype in CODES if dtype.is_floating_point])
@pytest.mark.parametrize(
    ("value", "valid", "valid_score"),
    [(0.0, True, True), (-1e4, True, True), (NAN, False, False), (INF, False, False), (-INF, False, True)],
)
def test_numbers_that_are_none(dtype: torch.dtype, value: float, valid: bool, valid_score: bool) -> None:
    tensor = torch.arange(35, dtype=dtype).view(5, 7)
    tensor[3, 2] = value
    assert (why_invalid(tensor, False) is None) == valid
    assert (why_invalid(tensor, True) is None) == valid_score
    assert why_invalid(tensor[:0], False) is None


def test_booleans_are_0_or_1() -> None:
    tensor = torch.tensor([0, 1, 2], dtype=torch.uint8).view(torch.bool)
    assert why_invalid(tensor[:2], False) is None
    assert why_invalid(tensor, False) == "values that are neither true nor false"


def test_a_tensor_is_checked_once_and_before_its_numbers_are_read() -> None:
    stored = torch.arange(6.0).view(2, 3)
    mapped = MappedTensor.of(stored, Check("a file", "x", stored, digest_of(stored), False))
    stored[1, 1] = 99.0
    assert (mapped.shape, mapped.dtype, mapped.numel(), mapped.is_contiguous()) == ((2, 3), torch.float32, 6, True)
    with pytest.raises(RegardError, match="'a file' is damaged: tensor 'x' is not what was saved"):
        mapped.sum()
    stored[1, 1] = 4.0
    assert float(mapped.sum()) == 15.0
    assert type(mapped + 1) is torch.Tensor
    stored[1, 1] = 99.0  # it was checked: nobody looks again
    assert float(mapped[1, 1]) == 99.0


def test_a_view_is_checked_as_the_whole_that_is_stored() -> None:
    stored = torch.arange(6.0).view(2, 3)
    check = Check("a file", "x", stored, digest_of(stored), False)
    view = MappedTensor.of(stored.T, check)
    stored[0, 0] = 7.0
    with pytest.raises(RegardError, match="is damaged"):
        torch.stack([view, view])
