"""A map cropped to one text, or moved to another dtype or device."""

import re
from typing import Any

import jaxtyping
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import regard
from tests.attention.cases import random, worst
from tests.attention.test_attention_map import some_map


@settings(max_examples=40)
@given(st.integers(0, 1), st.tuples(st.integers(0, 4), st.integers(5, 13)), st.booleans(), st.booleans())
def test_crop_is_the_call_of_the_text_alone(text: int, span: tuple[int, int], causal: bool, sided: bool) -> None:
    start, stop = span
    keys = torch.zeros(2, 13, dtype=torch.bool)
    keys[text, start:stop] = True
    keys[1 - text, 0] = True
    mask = regard.masks.padding(keys) & regard.masks.function(lambda i, j: (i + 2 * j) % 5 != 1)
    mask = mask & regard.masks.dense(random(6, 2, 1, 13, 13) > -1.5)
    query, key, bias, sinks = random(0, 2, 4, 13, 5), random(1, 2, 2, 13, 5), random(2, 4, 13, 13), random(3, 4)
    options: dict[str, Any] = {"causal": causal, "window": (4, 3) if sided else None, "sinks": sinks, "bias": bias}
    whole = regard.attend(query, key, key, mask=mask, **options).weights
    one = whole.crop(text, slice(start, stop), slice(start, stop))
    inside = (slice(start, stop), slice(start, stop))
    assert one.shape == (4, stop - start, stop - start)
    torch.testing.assert_close(one.dense(), whole.dense()[text, :, *inside], rtol=0, atol=1e-12)
    torch.testing.assert_close(one.entropy(), whole.entropy()[text, :, start:stop])
    torch.testing.assert_close(one.received(), whole[text, :, *inside].sum(-2))
    torch.testing.assert_close(one.distance(), whole.distance()[text, :, start:stop])
    torch.testing.assert_close(one.crop(0, slice(1, 3), slice(None))[...], one[:, 1:3], rtol=0, atol=1e-12)


def test_to_another_dtype_and_device() -> None:
    seen = some_map(mask=regard.masks.padding(torch.arange(11)[None].expand(2, 11) != 4), sinks=random(4, 6))
    single = seen.to(torch.float32)
    assert single.dtype == torch.float32
    torch.testing.assert_close(single.dense().double(), seen.dense(), rtol=0, atol=1e-6)
    half = seen.to(torch.bfloat16)
    assert (half.query.dtype, half.dtype) == (torch.bfloat16, torch.float32)
    assert worst(half.dense(), seen.dense()) < 0.05
    assert seen.to("cpu").device == torch.device("cpu")
    elsewhere = seen.to("meta")
    assert elsewhere.device.type == elsewhere.rule.bias.device.type == elsewhere.rule.mask.keys.device.type == "meta"
    assert seen.to(torch.float64).distance().equal(seen.distance())


@pytest.mark.parametrize(
    ("call", "error", "needed"),
    [
        (lambda m: m.crop(None, slice(0, 2), slice(0, 2)), TypeError, "crop: batch is None, it needs to be the number"),
        (lambda m: m.crop(2, slice(0, 2), slice(0, 2)), IndexError, "the map has 2 texts: it needs to be -2 to 1"),
        (lambda m: m.crop(0, None, slice(0, 2)), TypeError, "rows: given None, crop needs a slice of step 1"),
        (lambda m: m.to(3), TypeError, "to: given 3, needs a device such as 'cpu' or a dtype"),
        (lambda m: m.to("abc"), ValueError, "to: given 'abc', needs a device"),
        (lambda m: m.to(torch.int64), TypeError, "to: given torch.int64, needs to be float64"),
    ],
)
def test_what_cannot_be_cropped_or_moved(call: Any, error: type[Exception], needed: str) -> None:
    seen = some_map()
    jaxtyping.config.update("jaxtyping_disable", True)  # the run-time checks that tests have would speak first
    try:
        with pytest.raises(error, match=re.escape(needed)):
            call(seen)
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)


def test_crop_counts_texts_from_the_end_too() -> None:
    seen = some_map()
    run = slice(0, 7), slice(0, 11)
    assert torch.equal(seen.crop(-1, *run)[...], seen.crop(1, *run)[...])
