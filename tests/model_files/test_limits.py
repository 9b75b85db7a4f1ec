"""Configs whose numbers no model has are refused, and models that ask for more than their checkpoint holds."""

from typing import Any

import pytest
import torch

from regard.errors import RegardError
from regard.model_files.limits import (
    FEW,
    LONGEST,
    MAX_COUNT,
    MORE,
    PARTS,
    SHARED,
    SPARE,
    Budget,
    check_sizes_in_config,
    needs,
)
from regard.model_files.weight_headers import CheckpointSizes

GOOD = {
    "hidden_size": 384, "num_attention_heads": 12, "num_hidden_layers": 6, "encoder_layers": 0, "head_dim": 0,
    "num_key_value_heads": None, "intermediate_size": [7, 11], "max_position_embeddings": 512, "vocab_size": 30522,
    "architectures": ["BertModel"], "initializer_range": 0.02, "text_config": {"n_layer": 3, "n_head": 2},
}  # fmt: skip


def test_a_config_that_can_be() -> None:
    check_sizes_in_config(GOOD, None, "here")
    check_sizes_in_config(GOOD, CheckpointSizes(103, 10**6), "here")


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"hidden_size": 0}, "here: hidden_size is 0, needs a whole number of 1 or more"),
        ({"hidden_size": -1}, "hidden_size is -1"),
        ({"hidden_size": 1.5}, "hidden_size is 1.5"),
        ({"hidden_size": True}, "hidden_size is True"),
        ({"hidden_size": "384"}, "hidden_size is '384'"),
        ({"intermediate_size": [7, 0]}, "intermediate_size is 0"),
        ({"encoder_layers": -1}, "encoder_layers is -1, needs a whole number of 0 or more"),
        ({"text_config": {"vision": {"n_head": 0}}}, "text_config.vision.n_head is 0"),
        ({"num_local_experts": MAX_COUNT + 1}, "num_local_experts is 65,537, no model has so many"),
        ({"num_labels": 1 << 20}, "num_labels is 1,048,576, no model has so many"),
        ({"suppress_tokens": [1] * 2_000_000}, "suppress_tokens has 2,000,000 items, 65,536 are the most"),
        ({"max_position_embeddings": LONGEST + 1}, "max_position_embeddings is 16,777,217, no model has so many"),
    ],
)
def test_numbers_that_cannot_be(changed: dict[str, Any], says: str) -> None:
    with pytest.raises(RegardError, match=says):
        check_sizes_in_config(GOOD | changed, None, "here")


@pytest.mark.parametrize("tensors", [FEW - 1, FEW, FEW + 1, 1000])
def test_as_many_layers_as_tensors(tensors: int) -> None:
    most = max(tensors, FEW)
    check_sizes_in_config({"num_hidden_layers": most}, CheckpointSizes(tensors, 1), "here")
    with pytest.raises(RegardError, match="num_hidden_layers is .*, its checkpoint holds .* tensors, less than one"):
        check_sizes_in_config({"num_hidden_layers": most + 1}, CheckpointSizes(tensors, 1), "here")
    check_sizes_in_config({"num_hidden_layers": most + 1}, None, "here")  # the checkpoint is not known yet


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
    assert needs(CheckpointSizes(3, 101)) == 404
