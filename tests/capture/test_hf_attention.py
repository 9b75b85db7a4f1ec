"""A model's settings come back after a pass, and a mask meets the keys that it was made for."""

import pytest
import torch

from regard.capture import hf_attention
from regard.capture.hf_attention import attention_settings, through_interface
from regard.capture.hf_masks import ModelMask, TensorMaskError
from regard.capture.state import Capture
from tests.support.attention_outputs import make_model


def test_settings_and_mode_come_back_after_an_error() -> None:
    model = make_model("marian").train()
    before = [name for _, name in attention_settings(model)]
    with pytest.raises(ZeroDivisionError), through_interface(model, Capture({})):
        assert {name for _, name in attention_settings(model)} == {hf_attention.NAME}
        assert not model.training
        raise ZeroDivisionError
    assert [name for _, name in attention_settings(model)] == before
    assert model.training


def test_a_mask_for_other_keys_is_refused() -> None:
    """Where a family adds keys after its mask was made, what it would add to a mask's tensor is missing."""
    module, query = torch.nn.Identity(), torch.randn(1, 2, 3, 5)
    mask = hf_attention.mask(1, 3, 3)
    assert isinstance(mask, ModelMask)
    hf_attention.attention(module, query, query, query, mask)
    more = torch.cat([query, query[:, :, :1]], 2)
    with pytest.raises(TensorMaskError, match="a Mask for 3 keys met 4"):
        hf_attention.attention(module, query, more, more, mask)


def test_the_masks_of_calls_are_kept_where_they_are_wanted() -> None:
    model, capture = make_model("gpt2"), Capture({}, call_masks=[])
    with torch.no_grad(), through_interface(model, capture):
        model(torch.tensor([[5, 17, 31]]))
    first, second = capture.call_masks
    assert first is second
    assert (first.key_count, first.high) == (3, 0)


def test_written_masks_are_tensors() -> None:
    model, capture = make_model("gpt2"), Capture({}, call_masks=[], written_masks=True)
    with torch.no_grad(), through_interface(model, capture):
        model(torch.tensor([[5, 17, 31]]))
    allowed = capture.call_masks[0] == 0
    assert torch.equal(allowed[0, 0], torch.ones(3, 3).tril().bool())
