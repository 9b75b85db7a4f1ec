"""A model's settings come back after a pass, and a mask meets the keys that it was made for."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from transformers import masking_utils as patterns

from regard.attention import masks
from regard.attention.masks import Mask
from regard.capture import hf_attention, session
from regard.capture.eager_attention import attention_settings
from regard.capture.hf_attention import ModelMask, TensorMaskError, specification, through_interface
from regard.capture.options import CaptureOptions
from regard.capture.state import Capture
from regard.models.model import Model
from tests.support.attention_outputs import make_model

LENGTHS = (5, 11, 6, 0)  # queries, keys, position of the first query, of the first key
LEFT = torch.tensor([0, 2])
SEQUENCES = torch.tensor([[0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2], [0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2]])
KNOWN = {
    "bidirectional": patterns.bidirectional_mask_function,
    "causal": patterns.causal_mask_function,
    "sliding": patterns.sliding_window_causal_mask_function(3),
    "sliding both ways": patterns.sliding_window_bidirectional_mask_function(2),
}
OTHER = {
    "chunked": patterns.chunked_causal_mask_function(4, LEFT),
    "packed": patterns.packed_sequence_mask_function(SEQUENCES),
    "causal or block": patterns.or_masks(patterns.causal_mask_function, patterns.blockwise_overlay(SEQUENCES)),
}


@pytest.mark.parametrize("name", [*KNOWN, *OTHER])
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("padded", [False, True])
def test_patterns_are_what_transformers_writes_out(name: str, batch: int, padded: bool) -> None:
    function = (KNOWN | OTHER)[name]
    queries, keys, first, start = LENGTHS
    exists = torch.ones(batch, keys, dtype=torch.bool)
    exists[-1, :2] = False
    padding = exists if padded else None
    expected = patterns.sdpa_mask(
        batch, queries, keys, first, start, function, padding, allow_is_causal_skip=False, use_vmap=False
    )
    got = hf_attention.mask(batch, queries, keys, first, start, function, padding)
    if isinstance(got, Mask):
        got = got.materialise(batch, 1, queries, keys, torch.device("cpu"))
    else:
        assert name in OTHER
        assert batch == 2
    assert torch.equal(got.expand(batch, 1, queries, keys), expected.expand(batch, 1, queries, keys))


def test_known_patterns_build_no_tensor() -> None:
    for function in KNOWN.values():
        mask = specification(function, 6, 0)
        assert mask is not None
        assert mask.only_band
    for function in OTHER.values():
        assert specification(function, 6, 0) is None


@pytest.mark.parametrize(
    "use",
    [
        lambda mask, x: x + mask,
        lambda mask, x: mask + x,
        lambda mask, x: 1.0 - mask,
        lambda mask, x: mask * 2,
        lambda mask, x: mask & (x > 0),
        lambda mask, x: (x > 0) & mask,
        lambda mask, x: ~mask,
        lambda mask, x: mask < 0,
        lambda mask, x: mask[:, :, :, :2],
        lambda mask, x: len(mask),
        lambda mask, x: mask.shape,
        lambda mask, x: mask.dtype == torch.bool,
        lambda mask, x: torch.where(mask, x, 0.0),
        lambda mask, x: x.masked_fill(mask, 0.0),
        lambda mask, x: torch.cat([x, mask]),
        lambda mask, x: torch.nn.functional.pad(mask, (0, 1)),
        lambda mask, x: torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=mask),
    ],
)
def test_a_model_that_computes_with_its_mask_is_recognised(use: Any) -> None:
    with pytest.raises(TensorMaskError):
        use(ModelMask.of(masks.causal(), key_count=3), torch.ones(1, 1, 3, 3))


def test_a_mask_that_is_handed_on_is_the_same_mask() -> None:
    exists = torch.tensor([[True, True, False]])
    mask = masks.window(1, 0) & masks.padding(exists)
    handed = ModelMask.of(mask, key_count=3)
    assert handed
    assert handed is not None
    assert not hasattr(handed, "shape")
    assert (handed.low, handed.high) == (mask.low, mask.high)
    assert type(replace(handed, keys=None) & masks.causal()) is Mask
    expected = mask.materialise(1, 1, 3, 3, torch.device("cpu"))
    assert torch.equal(handed.materialise(1, 1, 3, 3, torch.device("cpu")), expected)


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
