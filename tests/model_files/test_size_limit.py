"""The budget of a model that is built: counted on "meta", a few times the checkpoint, in this thread alone."""

import pytest
import torch

from regard.errors import RegardError
from regard.model_files.limits import CheckpointSizes
from regard.model_files.size_limit import MORE, PARTS, SHARED, SPARE, Budget, nbytes


def test_numbers_up_to_the_budget_and_no_more() -> None:
    held = CheckpointSizes(1, 1000)
    most = SHARED * 1000 + SPARE
    with Budget(held, "m") as budget, torch.device("meta"):
        torch.empty(most)
        assert (budget.bytes, budget.tensors) == (4 * most, 1)
        with pytest.raises(RegardError, match="'m': its config asks for more than its checkpoint holds, 1 tensors"):
            torch.zeros(1)


def test_a_mask_has_a_byte_for_a_number() -> None:
    with Budget(CheckpointSizes(1, 1), "m") as budget:
        torch.ones(3, 5, dtype=torch.bool, device="meta")
        torch.full((7,), 2.0, dtype=torch.float64, device="meta")
    assert (budget.bytes, budget.tensors) == (15 + 56, 2)


def test_tensors_up_to_the_budget_and_no_more() -> None:
    with Budget(CheckpointSizes(2, 1), "m"), torch.device("meta"):
        for _ in range(2 * PARTS + MORE):
            torch.empty(0)
        with pytest.raises(RegardError, match="asks for more"):
            torch.empty(0)


def test_what_has_memory_is_not_counted_nor_what_is_made_outside() -> None:
    with Budget(CheckpointSizes(1, 1), "m") as budget:
        torch.zeros(9)
        torch.zeros(9, device="meta") + 1  # one is made, one is computed
    torch.empty(1 << 40, device="meta")
    assert (budget.bytes, budget.tensors) == (36, 1)


def test_a_model_in_float32() -> None:
    assert nbytes(CheckpointSizes(3, 101)) == 404
