"""A model's settings come back after a pass, and a mask meets the keys that it was made for."""

from typing import Any

import pytest
import torch

from regard.capture import hf_attention, session
from regard.capture.hf_attention import attention_settings, through_interface
from regard.capture.hf_masks import ModelMask, TensorMaskError
from regard.capture.options import CaptureOptions
from regard.capture.state import Capture
from regard.models.model import Model
from tests.support.attention_outputs import make_model


def test_settings_come_back_after_an_error() -> None:
    model = make_model("marian")
    before = [name for _, name in attention_settings(model.modules())]
    with pytest.raises(ZeroDivisionError), through_interface(model, Capture()):
        assert {name for _, name in attention_settings(model.modules())} == {hf_attention.NAME}
        raise ZeroDivisionError
    assert [name for _, name in attention_settings(model.modules())] == before


def test_a_mask_for_other_keys_is_refused() -> None:
    """Where a family adds keys after its mask was made, what it would add to a mask's tensor is missing."""
    module, query = torch.nn.Identity(), torch.randn(1, 2, 3, 5)
    mask = hf_attention.mask(1, 3, 3)
    assert isinstance(mask, ModelMask)
    hf_attention.attention(module, query, query, query, mask)
    more = torch.cat([query, query[:, :, :1]], 2)
    with pytest.raises(TensorMaskError, match="a Mask for 3 keys met 4"):
        hf_attention.attention(module, query, more, more, mask)


def test_written_masks_are_tensors(monkeypatch: Any) -> None:
    biases: list[Any] = []
    right = hf_attention.attend

    def attend(*tensors: Any, **rule: Any) -> Any:
        biases.append(rule["bias"])
        return right(*tensors, **rule)

    monkeypatch.setattr(hf_attention, "attend", attend)
    model, capture = make_model("gpt2"), Capture(keep=CaptureOptions(written_masks=True))
    with torch.no_grad(), through_interface(model, capture):
        model(torch.tensor([[5, 17, 31]]))
    assert torch.equal(biases[0][0, 0] == 0, torch.ones(3, 3).tril().bool())


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama"])
def test_rows_compared_after_a_short_pass_are_those_compared_within_it(family: str, monkeypatch: Any) -> None:
    ids = torch.randint(1, 101, (3, 13), generator=torch.Generator().manual_seed(0)).tolist()
    changes = {"num_key_value_heads": 2} if family == "llama" else {}
    opened = Model(make_model(family, **changes), None, name=family)
    after = opened.trace(ids=ids)[0].status
    monkeypatch.setattr(session, "FEW", 0)
    within = opened.trace(ids=ids)[0].status
    assert after.rows_compared == within.rows_compared == 2 * 2 * 4  # layers, texts of a call, rows
    assert after.difference == within.difference
    assert after.compared_with == within.compared_with
    assert after.difference is not None
    assert 0 < after.difference < 1e-5


def test_an_output_of_other_numbers_is_seen_after_a_short_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second layer of two is scaled: the comparison is of each call's own numbers."""
    plain, scale = hf_attention.attend, [1.0, 1.5]

    def other(query: torch.Tensor, *rest: Any, **options: Any) -> Any:
        return plain(query * scale.pop(0), *rest, **options)

    monkeypatch.setattr(hf_attention, "attend", other)
    trace = Model(make_model("bert"), None, name="bert").trace(ids=[[5, 17, 31, 8, 44]])[0]
    assert trace.status.difference is not None
    assert trace.status.difference > 1e-3
