"""Configs whose numbers no model has are refused."""

from typing import Any

import pytest

from regard.errors import RegardError
from regard.model_files.limits import FEW, LONGEST, MAX_COUNT, check_sizes_in_config
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
