"""Every mask pattern against the tensor that transformers itself writes out."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from transformers import masking_utils as patterns

from regard.attention import masks
from regard.attention.masks import Mask
from regard.capture import hf_attention
from regard.capture.hf_masks import ModelMask, TensorMaskError, specification

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
